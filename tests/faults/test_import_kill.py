"""A server that is killed in the middle of an import goes on with it when asked again, and has nothing to do then."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder
from tests.support.gems import make_gem
from tests.support.http_client import HttpClient
from tests.support.images import Image, digest_of, make_image
from tests.support.imports import counts, take, write
from tests.support.npm_packages import make_manifest, make_tarball
from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_wheel
from tests.support.server_process import restarts

pytestmark = pytest.mark.faults

MANY = 90  # files of each kind
FORMATS = {"python": "python", "npm": "npm", "ruby": "ruby", "container": "docker", "maven": "maven"}  # by kind
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
    elif kind == "npm":
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
    else:
        for n in range(MANY):
            files |= layout(f"team/app{n}", make_image(f"app {n}"))
    return write(folder / kind, files)


def layout(name: str, image: Image) -> dict[str, bytes]:
    named = {**image.descriptor, "annotations": {"org.opencontainers.image.ref.name": "v1"}}
    blobs = {f"{name}/blobs/sha256/{digest_of(each)[7:]}": bytes(each) for each in (*image.blobs, image.manifest)}
    return {f"{name}/index.json": json.dumps({"schemaVersion": 2, "manifests": [named]}).encode(), **blobs}


def test_a_killed_import_is_continued(tmp_path: Path) -> None:
    sources = {kind: make_source(tmp_path / "sources", kind) for kind in FORMATS}
    settings = f'imports.folders = ["{tmp_path / "sources"}"]\n'
    settings += "".join(hosted(format_name, kind) for kind, format_name in FORMATS.items())
    data = DataFolder(tmp_path / "data")
    with restarts(tmp_path, settings) as start:
        server = start()
        for kind, source in sources.items():
            count = (MANIFESTS if kind == "container" else FILES).format(kind)
            given = {"kind": kind, "source": str(source), "into": f"main/{kind}"}
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
            second = take(client, kind, source, f"main/{kind}")
            assert second["left_out"] == []
            assert 0 < second["files"] < MANY, (kind, before, second)
            third = take(client, kind, source, f"main/{kind}", again=True)
            assert counts(third) == (0, MANY, 0), kind
            fourth = take(client, kind, source, f"main/{kind}")
            assert (counts(fourth), fourth["unchanged"]) == ((0, 0, 0), fourth["packages"])
    assert data.damaged() == []
