"""A server that is killed in the middle of an import goes on with it when asked again, and has nothing to do then."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.conda_packages import make_conda
from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder
from tests.support.format_cases import CASES
from tests.support.gems import make_gem
from tests.support.http_client import HttpClient
from tests.support.images import Image, digest_of, make_image
from tests.support.imports import counts, stub, take, write
from tests.support.npm_packages import make_manifest, make_tarball
from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_wheel
from tests.support.server_process import restarts

pytestmark = pytest.mark.faults

MANY = 90  # files of each kind
AT = "2019-03-04T05:06:07.000+00:00"
FOLDERS = {  # kinds, and the formats of their repositories
    "python": "python",
    "npm": "npm",
    "ruby": "ruby",
    "container": "docker",
    "maven": "maven",
    "conda": "conda",
    "devpi": "python",
    "verdaccio": "npm",
    **{name: name for name in ("cargo", "helm", "go", "raw")},
}
MANAGERS = ("nexus", "artifactory")  # whose stubs have a repository of Maven
FORMATS = {**FOLDERS, **dict.fromkeys(MANAGERS, "maven")}
FILES = "SELECT COUNT(*) FROM file WHERE repository_id = (SELECT id FROM repository WHERE name = '{0}')"
MANIFESTS = (
    "SELECT COUNT(*) FROM manifest m JOIN package p ON p.id = m.package_id "
    "WHERE p.repository_id = (SELECT id FROM repository WHERE name = '{0}')"
)


def make_source(folder: Path, kind: str) -> Path:
    files: dict[str, bytes] = {}
    if kind == "python":
        files = dict(make_wheel(f"lib{n % 10}", f"1.{n}", pad=1000) for n in range(MANY))
    elif kind == "ruby":
        files = {f"gem{n % 10}-1.{n}.gem": make_gem(f"gem{n % 10}", f"1.{n}") for n in range(MANY)}
    elif kind == "maven":
        files = {
            f"g/a{n}/1/a{n}-1.{ending}": b"%d" % n for n in range(MANY // 3) for ending in ("jar", "txt", "module")
        }
    elif kind == "conda":
        files = {f"noarch/lib{n}-1.0-0.conda": make_conda(f"lib{n}", "1.0", "0", subdir="noarch") for n in range(MANY)}
    elif kind == "devpi":
        listed = []
        for name, data in (make_wheel(f"lib{n % 10}", f"1.{n}", pad=1000) for n in range(MANY)):
            files[f"tests/dev/{name}"] = data
            project, version = name.split("-")[:2]
            hashes = {"sha256": hashlib.sha256(data).hexdigest()}
            about = {"type": "releasefile", "projectname": project, "version": version, "relpath": f"tests/dev/{name}"}
            listed.append({**about, "entrymapping": {"hashes": hashes}})
        files["dataindex.json"] = json.dumps({"indexes": {"tests/dev": {"files": listed}}}).encode()
    elif kind in ("npm", "verdaccio"):
        for package in range(10):
            name = f"pack{package}"
            versions = {}
            for n in range(MANY // 10):
                text, data = f"1.0.{n}", make_tarball(name, f"1.0.{n}", pad=1000)
                files[f"{name}/{name}-{text}.tgz"] = data
                integrity = f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}"
                dist = {"tarball": f"http://old/{name}/-/{name}-{text}.tgz", "integrity": integrity}
                versions[text] = {**make_manifest(name, text), "dist": dist}
            document = {"name": name, "versions": versions, "dist-tags": {"latest": "1.0.3"}}
            files[f"{name}/package.json"] = json.dumps(document).encode()
    elif kind in CASES:  # those that have files of one kind, where clients read them
        case = CASES[kind]
        named = [(f"lib{n % 10}", f"1.{n}.0") for n in range(MANY)]
        files = {case.file_of(*each)[1:]: case.sent(*each)[1] for each in named}
    else:
        for n in range(MANY):
            files |= layout(f"team/app{n}", make_image(f"app {n}"))
    return write(folder / kind, files)


def answers_of(kind: str) -> dict[str, Any]:
    """What a package manager says of a repository with many files of Maven."""
    files = {f"g/a{n}/1/a{n}-1.{ending}": b"%d" % n for n in range(MANY // 3) for ending in ("jar", "txt", "module")}
    listed: list[dict[str, Any]] = []
    for path, data in files.items():
        sums = {name: hashlib.new(name, data).hexdigest() for name in ("sha1", "sha256")}
        if kind == "nexus":
            artifact = path.split("/")[1]
            asset = {"path": path, "checksum": sums, "uploader": "ann", "lastModified": AT, "blobCreated": AT}
            listed.append({"group": "g", "name": artifact, "version": "1", "assets": [asset]})
        else:
            said = {"uri": f"/{path}", "size": len(data), "lastModified": AT, "folder": False}
            listed.append({**said, "sha1": sums["sha1"], "sha2": sums["sha256"]})
    if kind == "nexus":
        pages = {"/service/rest/v1/components?repository=mvn": {"items": listed, "continuationToken": None}}
        return {**pages, **{f"/repository/mvn/{path}": data for path, data in files.items()}}
    question = "?list&deep=1&listFolders=0&mdTimestamps=1"
    pages = {f"/artifactory/api/storage/mvn{question}": {"files": listed}}
    return {**pages, **{f"/artifactory/mvn/{path}": data for path, data in files.items()}}


def layout(name: str, image: Image) -> dict[str, bytes]:
    named = {**image.descriptor, "annotations": {"org.opencontainers.image.ref.name": "v1"}}
    blobs = {f"{name}/blobs/sha256/{digest_of(each)[7:]}": bytes(each) for each in (*image.blobs, image.manifest)}
    return {f"{name}/index.json": json.dumps({"schemaVersion": 2, "manifests": [named]}).encode(), **blobs}


@pytest.fixture
def sources(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The folder or the address of a source of each kind."""
    found = {kind: str(make_source(tmp_path / "sources", kind)) for kind in FOLDERS}
    with stub(answers_of("nexus")) as nexus, stub(answers_of("artifactory")) as artifactory:
        yield {**found, "nexus": nexus, "artifactory": f"{artifactory}/artifactory"}


def test_a_killed_import_is_continued(tmp_path: Path, sources: dict[str, str]) -> None:
    settings = f'imports.folders = ["{tmp_path / "sources"}"]\nproxy.allow_private = ["127.0.0.1"]\n'
    settings += "".join(hosted(format_name, kind) for kind, format_name in FORMATS.items())
    data = DataFolder(tmp_path / "data")
    with restarts(tmp_path, settings) as start:
        server = start()
        for kind, source in sources.items():
            count = (MANIFESTS if kind == "container" else FILES).format(kind)
            more = {"repositories": ["mvn"]} if kind in MANAGERS else {}
            given = {"kind": kind, "source": source, "into": f"main/{kind}", **more}
            client = HttpClient(server.url, (USER, PASSWORD))
            begun = client.post_json("/api/import?wait=0", given)
            assert begun.status == 202, begun.text
            while int(data.rows(count)[0][0]) < MANY // 6:
                assert client.get(f"/api/job/{begun.json['id']}").json["state"] == "running"
            server.kill()
            before = int(data.rows(count)[0][0])
            data.change("UPDATE job SET lease_until = 0 WHERE state = 'running'")  # a minute later
            server = start()
            client = HttpClient(server.url, (USER, PASSWORD))
            second = take(client, kind, source, f"main/{kind}", **more)
            assert second["left_out"] == []
            assert 0 < second["files"] < MANY, (kind, before, second)
            third = take(client, kind, source, f"main/{kind}", again=True, **more)
            assert counts(third) == (0, MANY, 0), kind
            fourth = take(client, kind, source, f"main/{kind}", **more)
            assert (counts(fourth), fourth["unchanged"]) == ((0, 0, 0), fourth["packages"])
    assert data.damaged() == []
