"""
Repositories of other package managers are taken in by their own APIs.

Nexus, Artifactory, Gitea and Harbor are stubs here, made from the documentation of their APIs: a table of paths and of
what is answered there. The other pkgrepo is a real one.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest

from tests.support.charts import make_chart, make_provenance
from tests.support.configurations import hosted
from tests.support.crates import index_line, make_crate
from tests.support.go_modules import go_mod, make_module
from tests.support.http_client import HttpClient
from tests.support.images import Image, digest_of, make_image
from tests.support.imports import counts, stub, take
from tests.support.npm_packages import make_manifest, make_publish, make_tarball
from tests.support.python_index import PASSWORD, USER, PythonIndex
from tests.support.python_packages import make_wheel
from tests.support.server_process import ServerProcess, running

JSON_PAGE = "application/vnd.pypi.simple.v1+json"
pytestmark = pytest.mark.server

AT = "2019-03-04T05:06:07.000+00:00"
WHEEL, WHEEL_DATA = make_wheel("team.lib", "1.0")
PACKED = make_manifest("@team/util", "1.2.0", os=["linux"], scripts={"postinstall": "node build.js"})
TARBALL = make_tarball("@team/util", "1.2.0", manifest=PACKED)
JAR = b"jar" * 100
JAR_PATH = "com/example/app/1.0/app-1.0.jar"
SECRET = "Basic " + base64.b64encode(b"bob:secret").decode()


def sums(data: bytes, **names: str) -> dict[str, str]:
    return {name: hashlib.new(algorithm, data).hexdigest() for name, algorithm in names.items()}


def packument(url: str) -> dict[str, Any]:
    """The document of a package; as those of Gitea, it lacks most of what only the tarball has."""
    integrity = base64.b64encode(hashlib.sha512(TARBALL).digest()).decode()
    dist = {"tarball": f"{url}/@team/util/-/util-1.2.0.tgz", "integrity": f"sha512-{integrity}"}
    manifest = {**make_manifest("@team/util", "1.2.0"), "dist": dist, "deprecated": "use other"}
    return {"name": "@team/util", "dist-tags": {"latest": "1.2.0"}, "versions": {"1.2.0": manifest}}


def python_pages(base: str) -> dict[str, Any]:
    digest = hashlib.sha256(WHEEL_DATA).hexdigest()
    return {
        f"{base}/simple/": b'<html><body><a href="team-lib/">team-lib</a></body></html>',
        f"{base}/simple/team-lib/": f'<a href="../../files/{WHEEL}#sha256={digest}">{WHEEL}</a>'.encode(),
        f"{base}/files/{WHEEL}": WHEEL_DATA,
    }


NEXUS = "/service/rest/v1/components?repository={}"


def component(group: str | None, name: str, version: str, path: str, data: bytes) -> dict[str, Any]:
    checksum = sums(data, sha1="sha1", md5="md5", sha256="sha256", sha512="sha512")
    asset = {"path": path, "checksum": checksum, "uploader": "ann", "lastModified": AT, "blobCreated": AT}
    return {"group": group, "name": name, "version": version, "assets": [asset]}


def nexus_answers() -> dict[str, Any]:
    other = component("com.example", "app", "1.0", "com/example/app/1.0/app-1.0.pom", b"<project/>")
    jar = component("com.example", "app", "1.0", JAR_PATH, JAR)
    wheel = component(None, "team.lib", "1.0", f"packages/team-lib/1.0/{WHEEL}", WHEEL_DATA)
    tarball = component("team", "util", "1.2.0", "@team/util/-/util-1.2.0.tgz", TARBALL)
    return {
        NEXUS.format("mvn"): {"items": [jar], "continuationToken": "more"},
        NEXUS.format("mvn") + "&continuationToken=more": {"items": [other], "continuationToken": None},
        f"/repository/mvn/{JAR_PATH}": JAR,
        "/repository/mvn/com/example/app/1.0/app-1.0.pom": b"<project/>",
        NEXUS.format("py"): {"items": [wheel], "continuationToken": None},
        **python_pages("/repository/py"),
        NEXUS.format("npm"): {"items": [tarball], "continuationToken": None},
        "/repository/npm/@team%2Futil": packument("{url}/repository/npm"),
        "/repository/npm/@team/util/-/util-1.2.0.tgz": TARBALL,
    }


def artifactory_answers() -> dict[str, Any]:
    def listed(path: str, data: bytes) -> dict[str, Any]:
        said = {"uri": f"/{path}", "size": len(data), "lastModified": AT, "folder": False}
        return {"files": [{**said, **sums(data, sha1="sha1", sha2="sha256")}]}

    def asked(repository: str, path: str) -> dict[str, Any]:
        folder, _, name = path.rpartition("/")
        found = {"repo": repository, "path": folder, "name": name, "stats": [{"downloads": 40}]}
        criteria = f'{{"repo":"{repository}","stat.downloads":{{"$gt":0}}}}'
        query = f'items.find({criteria}).include("repo","path","name","stat.downloads")'
        return {f"/artifactory/api/search/aql {query}": {"results": [found]}}

    rest = "?list&deep=1&listFolders=0&mdTimestamps=1"
    return {
        **asked("mvn", JAR_PATH),
        **asked("py", f"team-lib/1.0/{WHEEL}"),
        **asked("npm", "@team/util/-/@team/util-1.2.0.tgz"),
        f"/artifactory/api/storage/mvn{rest}": listed(JAR_PATH, JAR),
        f"/artifactory/mvn/{JAR_PATH}": JAR,
        f"/artifactory/api/storage/py{rest}": listed(f"team-lib/1.0/{WHEEL}", WHEEL_DATA),
        **python_pages("/artifactory/api/pypi/py"),
        f"/artifactory/api/storage/npm{rest}": listed("@team/util/-/@team/util-1.2.0.tgz", TARBALL),
        "/artifactory/api/npm/npm/@team%2Futil": packument("{url}/artifactory/api/npm/npm"),
        "/artifactory/api/npm/npm/@team/util/-/util-1.2.0.tgz": TARBALL,
    }


def gitea_answers() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind, name, version, file, data in (
        ("pypi", "team.lib", "1.0", WHEEL, WHEEL_DATA),
        ("npm", "@team/util", "1.2.0", "util-1.2.0.tgz", TARBALL),
        ("maven", "com.example:app", "1.0", "app-1.0.jar", JAR),
    ):
        about = {"name": name, "version": version, "created_at": "2019-03-04T05:06:07Z", "creator": {"login": "ann"}}
        api = f"/api/v1/packages/ann?type={kind}&limit=50&page="
        quoted = name.replace("@", "%40").replace("/", "%2F").replace(":", "%3A")
        files = [{"name": file, **sums(data, sha256="sha256", sha1="sha1", md5="md5", sha512="sha512")}]
        found |= {f"{api}1": [about], f"{api}2": [], f"/api/v1/packages/ann/{kind}/{quoted}/{version}/files": files}
    pages = {path: page for path, page in python_pages("/api/packages/ann/pypi").items() if path[-8:] != "/simple/"}
    return {
        **found,
        **pages,
        "/api/packages/ann/npm/@team%2Futil": packument("{url}/api/packages/ann/npm"),
        "/api/packages/ann/npm/@team/util/-/util-1.2.0.tgz": TARBALL,
        f"/api/packages/ann/maven/{JAR_PATH}": JAR,
    }


CRATE = make_crate("Old-Lib", "1.0.0")
LINE = index_line("Old-Lib", "1.0.0", CRATE, yanked=True)
MODULE, CHART = make_module("corp.example/Lib", "v1.0.0"), make_chart("app", "1.0.0")
PROVENANCE = make_provenance("app-1.0.0.tgz", hashlib.sha256(CHART).hexdigest())
INFO = b'{"Version":"v1.0.0","Time":"2019-03-04T05:06:07Z"}'
MODULE_PATH = "corp.example/!lib/@v/v1.0.0"
AFTER = {  # files by path, by format
    "raw": {"tools/1.0/tool.bin": b"tool", "notes.txt": b"notes"},
    "go": {f"{MODULE_PATH}.zip": MODULE, f"{MODULE_PATH}.info": INFO, f"{MODULE_PATH}.mod": go_mod("corp.example/Lib")},
    "helm": {"app-1.0.0.tgz": CHART, "app-1.0.0.tgz.prov": PROVENANCE},
}


def index_pages(base: str, crates: str) -> dict[str, Any]:
    """A sparse index with one crate, which is at another address."""
    return {
        f"{base}/config.json": {"dl": f"{{url}}{crates}"},
        f"{base}/ol/d-/old-lib": json.dumps(LINE).encode(),
        f"{crates}/Old-Lib/1.0.0/download": CRATE,
    }


def later_nexus() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, files in AFTER.items():
        # Nexus writes paths with a slash in front since its own database is SQL.
        listed = [component("/", path, "", f"/{path}", data) for path, data in files.items()]
        found |= {NEXUS.format(name): {"items": listed, "continuationToken": None}}
        found |= {f"/repository/{name}/{quote(path)}": data for path, data in files.items()}
    crate = component(None, "Old-Lib", "1.0.0", "crates/Old-Lib/1.0.0/download", CRATE)
    found[NEXUS.format("cargo")] = {"items": [crate], "continuationToken": None}
    return {**found, **index_pages("/repository/cargo", "/repository/cargo/crates")}


def later_artifactory() -> dict[str, Any]:
    found = index_pages("/artifactory/api/cargo/cargo/index", "/artifactory/api/cargo/cargo/v1/crates")
    for name, files in {**AFTER, "cargo": {"crates/Old-Lib/Old-Lib-1.0.0.crate": CRATE, ".cargo/x": b"x"}}.items():
        listed = [
            {"uri": f"/{path}", "size": len(data), "lastModified": AT, **sums(data, sha1="sha1", sha2="sha256")}
            for path, data in {**files, **({"index.yaml": b"x"} if name == "helm" else {})}.items()
        ]
        found[f"/artifactory/api/storage/{name}?list&deep=1&listFolders=0&mdTimestamps=1"] = {"files": listed}
        found |= {f"/artifactory/{name}/{quote(path)}": data for path, data in files.items()}
    return found


def later_gitea() -> dict[str, Any]:
    found: dict[str, Any] = index_pages("/api/packages/ann/cargo", "/api/packages/ann/cargo/api/v1/crates")
    for kind, name, version, file, data, path in (
        ("generic", "tools", "1.0", "tool.bin", b"tool", "tools/1.0/tool.bin"),
        ("cargo", "Old-Lib", "1.0.0", "old-lib-1.0.0.crate", CRATE, ""),
        ("go", "corp.example/Lib", "v1.0.0", "v1.0.0.zip", MODULE, "corp.example/Lib/@v/v1.0.0.zip"),
        ("helm", "app", "1.0.0", "app-1.0.0.tgz", CHART, "app-1.0.0.tgz"),
    ):
        about = {"name": name, "version": version, "created_at": "2019-03-04T05:06:07Z", "creator": {"login": "ann"}}
        api = f"/api/v1/packages/ann?type={kind}&limit=50&page="
        files = [{"name": file, **sums(data, sha256="sha256", sha1="sha1", md5="md5", sha512="sha512")}]
        quoted = name.replace("/", "%2F")
        found |= {f"{api}1": [about], f"{api}2": [], f"/api/v1/packages/ann/{kind}/{quoted}/{version}/files": files}
        found |= {f"/api/packages/ann/{kind}/{quote(path)}": data} if path else {}
    return found


LATER = {"nexus": (later_nexus, ""), "artifactory": (later_artifactory, "/artifactory"), "gitea": (later_gitea, "")}
PLACES = {  # what is asked for here, and its bytes
    "raw": ("tools/1.0/tool.bin", b"tool", "tools/versions/1.0"),
    "cargo": ("api/v1/crates/old-lib/1.0.0/download", CRATE, "old-lib/versions/1.0.0"),
    "go": (f"{MODULE_PATH}.zip", MODULE, "corp.example%2FLib/versions/v1.0.0"),
    "helm": ("charts/app-1.0.0.tgz", CHART, "app/versions/1.0.0"),
}


MANAGERS = {
    "nexus": (nexus_answers, ""),
    "artifactory": (artifactory_answers, "/artifactory"),
    "gitea": (gitea_answers, ""),
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    settings = 'proxy.allow_private = ["127.0.0.1"]\n'
    for format_name in ("python", "npm", "maven"):
        names = (*MANAGERS, "there", "here", "counted", "moved")
        settings += hosted(format_name, *(f"{each}-{format_name}" for each in names))
    for format_name in PLACES:
        settings += hosted(format_name, *(f"{each}-{format_name}" for each in LATER))
    settings += hosted("python", "named-python")
    settings += hosted("raw", "there-raw")
    settings += hosted("docker", "harbor", "gitea-docker", "counted-docker", "moved-docker")
    with running(tmp_path_factory.mktemp("server"), settings) as started:
        yield started


@pytest.fixture
def client(server: ServerProcess) -> HttpClient:
    return HttpClient(server.url, (USER, PASSWORD))


@pytest.mark.parametrize("manager", MANAGERS)
def test_the_packages_of_a_manager_are_taken_in_once(manager, client) -> None:
    answers, path = MANAGERS[manager]
    with stub(answers(), secret=SECRET) as url:
        for format_name, repository, files in (("python", "py", 1), ("npm", "npm", 1), ("maven", "mvn", None)):
            named = ["ann"] if manager == "gitea" else [repository]
            given = {"repositories": named, "credentials": {"username": "bob", "password": "secret"}}
            into = f"main/{manager}-{format_name}"
            first = take(client, manager, f"{url}{path}", into, **given)
            again = take(client, manager, f"{url}{path}", into, **given)
            assert first["left_out"] == []
            assert first["files"] == (files or (2 if manager == "nexus" else 1))
            assert (counts(again), again["unchanged"]) == ((0, 0, 0), first["packages"])
    for name, version in (("python", "team-lib/versions/1.0"), ("npm", "%40team%2Futil/versions/1.2.0")):
        record = client.get(f"/api/package/main%2F{manager}-{name}/{version}").json
        assert record["published_at"].startswith("2019-03-04T05:06:07")
        assert record["publisher"] == (USER if manager == "artifactory" else "ann")
    served = client.get(f"/repositories/main/{manager}-npm/@team/util").json["versions"]["1.2.0"]
    page = client.get(f"/repositories/main/{manager}-python/simple/team-lib/", accept=JSON_PAGE).json
    assert page["files"][0]["upload-time"].startswith("2019-03-04T05:06:07")  # by which clients hold new files back
    assert (served["deprecated"], served["os"], served["hasInstallScript"]) == ("use other", ["linux"], True)
    assert client.get(f"/repositories/main/{manager}-maven/{JAR_PATH}").body == JAR


@pytest.mark.parametrize("manager", LATER)
@pytest.mark.parametrize("format_name", PLACES)
def test_files_crates_modules_and_charts_of_a_manager_are_taken_in_once(manager, format_name, client) -> None:
    answers, path = LATER[manager]
    into = f"main/{manager}-{format_name}"
    with stub(answers(), secret=SECRET) as url:
        named = ["ann"] if manager == "gitea" else [format_name]
        given = {"repositories": named, "credentials": {"username": "bob", "password": "secret"}}
        first = take(client, manager, f"{url}{path}", into, **given)
        again = take(client, manager, f"{url}{path}", into, **given)
    count = 1 if manager == "gitea" or format_name == "cargo" else len(AFTER[format_name])
    assert (first["left_out"], first["files"]) == ([], count), first
    assert (counts(again), again["unchanged"]) == ((0, 0, 0), first["packages"])
    file, data, version = PLACES[format_name]
    assert client.get(f"/repositories/{into}/{file}").body == data
    record = client.get(f"/api/package/{into.replace('/', '%2F')}/{version}").json
    assert record["published_at"].startswith("2019-03-04T05:06:07")
    assert record["publisher"] == (USER if manager == "artifactory" else "ann")
    assert record["state"] == ("yanked" if format_name == "cargo" else "live")


def test_a_path_that_no_file_can_have_is_left_out_and_named(client) -> None:
    listed = [component("/", path, "", path, b"x") for path in ("ok/1.0/a.bin", "bad/../b.bin", "bad/ /c.bin")]
    answers = {NEXUS.format("odd"): {"items": listed}, "/repository/odd/ok/1.0/a.bin": b"x"}
    with stub(answers) as url:
        result = take(client, "nexus", url, "main/there-raw", repositories=["odd"])
    assert counts(result) == (1, 0, 2)
    assert {each["item"] for each in result["left_out"]} == {"bad/../b.bin", "bad/ /c.bin"}


def test_a_server_without_the_api_of_nexus_3_is_said_to_be_none(client) -> None:
    with stub({}) as url:
        asked = {"kind": "nexus", "source": url, "into": "main/nexus-maven", "repositories": ["releases"]}
        reply = client.post_json("/api/import?wait=300", asked)
        assert (reply.status >= 400, "is no Nexus 3" in reply.text) == (True, True)


def test_an_index_without_a_list_is_taken_in_by_names(client) -> None:
    pages = {path: page for path, page in python_pages("").items() if path != "/simple/"}
    with stub(pages) as url:
        asked = {"kind": "python", "source": url, "into": "main/named-python"}
        reply = client.post_json("/api/import?wait=300", asked)
        assert (reply.status >= 400, "give their names" in reply.text) == (True, True)
        assert counts(take(client, "python", url, "main/named-python", names=["team.lib"])) == (1, 0, 0)


def test_credentials_that_are_missing_or_wrong_are_those_of_the_import(client) -> None:
    with stub(nexus_answers(), secret=SECRET) as url:
        asked = {"kind": "nexus", "source": url, "into": "main/here-python", "repositories": ["py"]}
        for more, said in (
            ({}, "the import has none"),
            ({"credentials": {"username": "bob", "password": "x"}}, "refuses the credentials of"),
        ):
            reply = client.post_json("/api/import?wait=300", {**asked, **more})
            assert said in reply.text
            assert "--password-file" in reply.text


def image_answers(image: Image) -> dict[str, Any]:
    fields = {"Content-Type": image.media_type, "Docker-Content-Digest": image.digest}
    return {
        "/v2/lib/app/tags/list?n=1000": {"name": "lib/app", "tags": ["1.0"]},
        "/v2/lib/app/manifests/1.0": (fields, image.manifest),
        f"/v2/lib/app/manifests/{image.digest}": (fields, image.manifest),
        **{f"/v2/lib/app/blobs/{digest_of(blob)}": bytes(blob) for blob in image.blobs},
    }


def harbor_answers(image: Image) -> dict[str, Any]:
    listed = [{"name": "lib/app", "pull_count": 40}]
    return {"/api/v2.0/projects/lib/repositories?page=1&page_size=100": listed, **image_answers(image)}


def test_the_images_of_projects_of_harbor_are_taken_in(client) -> None:
    image = make_image("harbor")
    with stub(harbor_answers(image)) as url:
        assert counts(take(client, "harbor", url, "main/harbor", repositories=["lib"])) == (1, 0, 0)
        assert counts(take(client, "harbor", url, "main/harbor", repositories=["lib"])) == (0, 0, 0)
    assert client.get("/v2/main/harbor/lib/app/manifests/1.0", accept=image.media_type).body == image.manifest


def test_the_images_of_an_owner_in_gitea_are_listed_by_its_api(client) -> None:
    """Its catalog leaves out what the credentials may not read, and an import would be done at once."""
    image = make_image("gitea")
    api = "/api/v1/packages/lib?type=container&limit=50&page="
    listed = {
        f"{api}1": [{"name": "app", "version": "1.0"}],
        f"{api}2": [],
        "/v2/_catalog?n=1000": {"repositories": []},
    }
    asked = {"kind": "gitea", "into": "main/gitea-docker", "repositories": ["lib"]}
    given = {"credentials": {"username": "bob", "password": "secret"}}
    with stub({**image_answers(image), **listed}, secret=SECRET) as url:
        assert counts(take(client, "gitea", url, "main/gitea-docker", repositories=["lib"], **given)) == (1, 0, 0)
    assert client.get("/v2/main/gitea-docker/app/manifests/1.0", accept=image.media_type).body == image.manifest
    with stub({"/v2/_catalog?n=1000": {"repositories": ["other/app"]}}) as url:
        reply = client.post_json("/api/import?wait=300", {**asked, "source": url})
        assert "it shows no image of this owner without credentials" in reply.text
        reply = client.post_json("/api/import?wait=300", {**asked, "source": url, **given})
        assert reply.status >= 400
        assert "does not exist" in reply.text


def test_another_pkgrepo_is_taken_in_with_its_yanks_and_publishers(client, server) -> None:
    index = PythonIndex(server.url, "main/there-python")
    for version in ("1.0", "1.1"):
        index.publish("demo", version)
    yank = client.post("/repositories/main/there-python/api/v1/packages/demo/1.0/yank?reason=broken")
    if yank.status >= 300:
        yank = client.post_json("/api/package/main%2Fthere-python/demo/versions/1.0/yank", {"reason": "broken"})
    assert yank.status < 300, yank.text
    body = make_publish("@team/util", "1.0.0", registry=f"{server.url}/repositories/main/there-npm")
    sent = client.ask("PUT", "/repositories/main/there-npm/@team%2futil", body, {"Content-Type": "application/json"})
    assert sent.status < 300, sent.text
    given = {"credentials": {"username": USER, "password": PASSWORD}}
    for name, files, facts in (("python", 2, 1), ("npm", 1, 0)):
        url, into = f"{server.url}/repositories/main/there-{name}", f"main/here-{name}"
        first = take(client, "pkgrepo", url, into, **given)
        assert (counts(first), first["facts"] >= facts) == ((files, 0, 0), True), first
        assert counts(take(client, "pkgrepo", url, into, **given)) == (0, 0, 0)
    there, here = (
        client.get(f"/api/package/main%2F{each}-python/demo/versions").json["items"] for each in ("there", "here")
    )
    keys = ("version", "state", "reason", "published_at", "publisher", "size")
    assert [[each[key] for key in keys] for each in here] == [[each[key] for key in keys] for each in there]


@pytest.mark.parametrize("format_name", ["python", "npm", "maven", "docker"])
def test_downloads_come_along_from_one_server_to_the_next(format_name, client, server) -> None:
    package = {"python": "team-lib", "npm": "%40team%2Futil", "maven": "com.example:app", "docker": "lib%2Fapp"}
    version = {"npm": "1.2.0"}.get(format_name, "1.0")

    def figures(repository: str) -> tuple[Any, ...]:
        where = f"main%2F{repository}-{format_name}"
        api = f"/api/package/{where}/{package[format_name]}"
        shown, days = client.get(api).json["downloads"], client.get(f"{api}/downloads").json
        listed = client.get(f"/api/repository/{where}/packages?sort=-downloads").json["items"]
        versions = {each["version"]: each["downloads"] for each in client.get(f"{api}/versions").json["items"]}
        total = client.get(f"/api/repository/{where}/stats").json["downloads"]
        recent = [each["count"] for each in days["days"] if each["count"]], days["versions"]
        assert (days["total"], listed[0]["downloads"], total["total"], total["month"]) == (shown, shown, shown, 0)
        return shown, versions[version], *recent

    answers = harbor_answers(make_image("counted")) if format_name == "docker" else artifactory_answers()
    kind, path = ("harbor", "") if format_name == "docker" else ("artifactory", "/artifactory")
    named = {"python": "py", "npm": "npm", "maven": "mvn", "docker": "lib"}[format_name]
    expected = 40, 0 if format_name == "docker" else 40, [], []  # Harbor counts the pulls of an image
    counted = f"{server.url}/repositories/main/counted-{format_name}"
    with stub(answers) as url:
        given = {"repositories": [named]}
        into = f"main/counted-{format_name}"
        assert take(client, kind, f"{url}{path}", into, dry_run=True, **given)["facts"] == 0
        assert client.get(f"/api/package/main%2Fcounted-{format_name}/{package[format_name]}").status == 404
        take(client, kind, f"{url}{path}", into, **given)
        assert figures("counted") == expected
        assert take(client, kind, f"{url}{path}", into, again=True, **given)["facts"] == 0
    silent = {path: said for path, said in answers.items() if "aql" not in path}  # may not be queried
    with stub(silent) as url:
        again = take(client, kind, f"{url}{path}", into, **given)
        assert (counts(again), figures("counted")) == ((0, 1, 0), expected)
    given = {"credentials": {"username": USER, "password": PASSWORD}}
    take(client, "pkgrepo", counted, f"main/moved-{format_name}", **given)
    take(client, "pkgrepo", counted, f"main/moved-{format_name}", **given)
    assert (figures("counted"), figures("moved")) == (expected, expected)


def test_credentials_go_to_the_host_of_the_source_alone(client) -> None:
    seen: list[str | None] = []

    class Watcher(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization"))
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Watcher)
    thread = threading.Thread(target=other.serve_forever)
    thread.start()
    page = f'<a href="http://127.0.0.1:{other.server_port}/{WHEEL}">{WHEEL}</a>'.encode()
    answers = {"/simple/": b'<html><a href="team-lib/">team-lib</a></html>', "/simple/team-lib/": page}
    with stub(answers, secret=SECRET) as url:
        given = {"credentials": {"username": "bob", "password": "secret"}}
        result = take(client, "python", url, "main/here-python", **given)
    other.shutdown()
    other.server_close()
    thread.join()
    assert (counts(result), seen) == ((0, 0, 1), [None])


def test_what_is_no_source_is_refused(client) -> None:
    ask = partial(client.post_json, "/api/import")
    for kind, source, into, status in (
        ("nothing", "http://127.0.0.1/", "main/here-python", 400),
        ("npm", "http://127.0.0.1/", "main/here-python", 400),
        ("nexus", "/tmp", "main/here-python", 400),
        ("python", "http://a:b@127.0.0.1/", "main/here-python", 400),
        ("python", "relative/path", "main/here-python", 400),
        ("python", "ftp://127.0.0.1/", "main/here-python", 400),
        ("python", "http://127.0.0.1/", "main/none", 400),
    ):
        refused = ask({"kind": kind, "source": source, "into": into})
        assert refused.status in (status, 422), (kind, source, refused.text)
    nobody = client.as_user().post_json("/api/import", {"kind": "python", "source": "/tmp", "into": "main/here-python"})
    assert nobody.status == 401
