"""The readable layout of npm packages, and a catalog rebuilt from it."""

import json
from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder, pkgrepo, stop_in_step
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_bundle, make_publish, make_tarball
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import restarts

pytestmark = [pytest.mark.server, pytest.mark.folder("reads the readable layout")]

BUNDLE = make_bundle("@team/tool", "0.1.0", make_tarball("@team/tool", "0.1.0"))


def files_below(folder: Path) -> list[str]:
    return sorted(each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.is_file())


def comparable(document):
    """Return a packument without revision and signatures, which differ after the catalog is rebuilt."""
    for version in document["versions"].values():
        assert version["dist"].pop("signatures")
    return {key: value for key, value in document.items() if key != "_rev"}


@pytest.fixture
def start(tmp_path):
    """Start servers on one data folder. Yields a function that returns a server and a client of ``npm``."""
    with restarts(tmp_path, hosted("npm", "npm")) as run:

        def start():
            server = run()
            return server, HttpClient(f"{server.url}/repositories/main/npm", (USER, PASSWORD))

        yield start


def fill(npm):
    """Make versions, tags, deprecations, an owner, a star, and an unpublished version."""
    for name, version, options in (
        ("plain", "1.0.0", {}),
        ("plain", "1.1.0", {}),
        ("plain", "1.2.0", {}),
        ("plain", "2.0.0-rc.1+b", {"tag": "next"}),
        ("@team/tool", "0.1.0", {"bundle": BUNDLE}),
    ):
        assert npm.put(f"/{name}", make_publish(name, version, **options)).status == 201
    assert npm.ask("PUT", "/-/package/plain/dist-tags/latest", '"1.0.0"').status == 201
    assert npm.ask("PUT", "/-/package/plain/dist-tags/stable", '"1.1.0"').status == 201
    deprecated = {"versions": {"1.1.0": {"deprecated": "too new"}}}
    assert npm.ask("PUT", "/plain", json.dumps(deprecated)).status == 201
    assert npm.ask("PUT", "/plain", json.dumps({"users": {USER: True}})).status == 201
    document = npm.get("/plain?write=true").json
    del document["versions"]["1.2.0"]
    assert npm.ask("PUT", f"/plain/-rev/{document['_rev']}", json.dumps(document)).status == 200
    rev = npm.get("/@team%2ftool?write=true").json["_rev"]
    owners = {"maintainers": [{"name": "carol", "email": "carol@example.org"}]}
    assert npm.ask("PUT", f"/@team%2ftool/-rev/{rev}", json.dumps(owners)).status == 200


def test_files_lie_under_readable_names(tmp_path, start):
    server, npm = start()
    fill(npm)
    data = DataFolder(tmp_path / "data")
    assert stop_in_step(server, data) in (0, -15)
    layout = data.layout / "npm"
    assert files_below(layout) == [
        ".repository.json",
        "@team/tool/.package.json",
        "@team/tool/0.1.0/tool-0.1.0.json",
        "@team/tool/0.1.0/tool-0.1.0.sigstore",
        "@team/tool/0.1.0/tool-0.1.0.tgz",
        "plain/.burned.json",
        "plain/.package.json",
        "plain/1.0.0/plain-1.0.0.json",
        "plain/1.0.0/plain-1.0.0.tgz",
        "plain/1.1.0/plain-1.1.0.json",
        "plain/1.1.0/plain-1.1.0.tgz",
        "plain/2.0.0-rc.1/plain-2.0.0-rc.1.json",
        "plain/2.0.0-rc.1/plain-2.0.0-rc.1.tgz",
    ]
    assert (layout / "@team/tool/0.1.0/tool-0.1.0.tgz").read_bytes() == make_tarball("@team/tool", "0.1.0")


def test_a_lost_catalog_is_rebuilt(tmp_path, start):
    server, npm = start()
    fill(npm)
    names = ("plain", "@team%2ftool")
    before = [comparable(npm.get(f"/{name}").json) for name in names]
    data = DataFolder(tmp_path / "data")
    stop_in_step(server, data)
    data.delete_catalog()
    done = pkgrepo(data, "reindex")
    assert done.returncode == 0, done.stderr
    server, npm = start()
    after = [comparable(npm.get(f"/{name}").json) for name in names]
    for old, new in zip(before, after, strict=True):
        address = new["versions"][new["dist-tags"]["latest"]]["dist"]["tarball"].partition("/repositories/")[0]
        base = old["versions"][old["dist-tags"]["latest"]]["dist"]["tarball"].partition("/repositories/")[0]
        assert json.loads(json.dumps(old).replace(base, address)) == new
    assert npm.get("/plain/-/plain-1.1.0.tgz").body == make_tarball("plain", "1.1.0")
    assert npm.get("/-/npm/v1/attestations/@team%2ftool@0.1.0").status == 200
    assert npm.put("/plain", make_publish("plain", "1.1.0")).status == 403
    assert npm.put("/plain", make_publish("plain", "1.2.0")).status == 403  # it was unpublished
    server.stop()


def test_versions_with_the_longest_names_are_stored_and_rebuilt(tmp_path, start):
    """File systems take names of 255 bytes; a name has up to 214 characters, and a version 256."""
    server, npm = start()
    name, tail = "@team/" + "n" * 208, "a" * 249
    versions = [f"1.0.0-{tail}a", f"1.0.0-{tail}b", "1.0.0"]
    for version in versions:
        assert npm.put(f"/{name}", make_publish(name, version)).status == 201
    before = comparable(npm.get(f"/{name}").json)
    data = DataFolder(tmp_path / "data")
    stop_in_step(server, data)
    assert len(files_below(data.layout / "npm" / name)) == 1 + 2 * len(versions)
    done = pkgrepo(data, "verify")
    assert done.returncode == 0, done.stderr
    data.delete_catalog()
    done = pkgrepo(data, "reindex")
    assert done.returncode == 0, done.stderr
    done = pkgrepo(data, "verify")
    assert done.returncode == 0, done.stderr
    server, npm = start()
    after = comparable(npm.get(f"/{name}").json)
    assert set(after["versions"]) == set(before["versions"]) == set(versions)
    unscoped = name.rpartition("/")[2]
    for version in versions:
        assert npm.get(f"/{name}/-/{unscoped}-{version}.tgz").body == make_tarball(name, version)
    rev = npm.get(f"/{name}?write=true").json["_rev"]
    assert npm.ask("DELETE", f"/{name}/-rev/{rev}", "").status == 200
    stop_in_step(server, data)
    assert files_below(data.layout / "npm" / name) == [".burned.json"]
