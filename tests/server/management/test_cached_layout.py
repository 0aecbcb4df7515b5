"""Cached packages in the readable layout, and a catalog rebuilt from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest

from tests.support.configurations import proxy
from tests.support.data_folder import DataFolder, pkgrepo, stop_in_step, wait_for
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_tarball
from tests.support.proxied import PRIVATE
from tests.support.python_index import JSON, PASSWORD, USER
from tests.support.server_process import restarts
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.python import PythonUpstream

pytestmark = [pytest.mark.server, pytest.mark.folder("reads the readable layout")]

FETCHED = "SELECT COUNT(*) FROM file WHERE attrs LIKE '%\"upstream\"%'"


@pytest.fixture
def registry() -> Iterator[NpmUpstream]:
    with NpmUpstream() as upstream:
        yield upstream


@pytest.fixture
def index() -> Iterator[PythonUpstream]:
    with PythonUpstream() as upstream:
        yield upstream


def versions(server: HttpClient) -> list[Any]:
    """The records of the cached versions, with where their files came from and when."""
    found = []
    for path in ("npm/@sc%2ftool/versions/1.0.0", "py/demo/versions/1.0"):
        record = server.get(f"/api/package/main%2F{path}").json
        for file in record["files"]:
            file.pop("url")  # the port of the server
        found.append(record)
    return found


def test_a_lost_catalog_is_rebuilt_with_the_origin_of_cached_files(
    tmp_path: Path, registry: NpmUpstream, index: PythonUpstream
) -> None:
    registry.add("@sc/tool")
    wheel, data = index.add("demo", "1.0")
    configuration = PRIVATE + proxy("npm", "npm", registry.url) + proxy("python", "py", index.simple)
    folder = DataFolder(tmp_path / "data")
    with restarts(tmp_path, configuration) as run:
        server = run()
        client = HttpClient(server.url, (USER, PASSWORD))
        assert client.get("/repositories/main/npm/@sc%2ftool").status == 200
        assert client.get("/repositories/main/npm/@sc/tool/-/tool-1.0.0.tgz").body == make_tarball("@sc/tool", "1.0.0")
        page = client.get("/repositories/main/py/simple/demo/", Accept=JSON).json
        (address,) = (file["url"] for file in page["files"])
        path = urlsplit(urljoin("/repositories/main/py/simple/demo/", address)).path
        assert client.get(path).body == data
        wait_for(lambda: folder.rows(FETCHED) == [(2,)], server)
        before = versions(client)
        assert [file["upstream"]["route"] for each in before for file in each["files"] if file["upstream"]]
        stop_in_step(server, folder)
        shown = folder.shown()
        assert {"npm/@sc/tool/1.0.0/tool-1.0.0.tgz", "npm/@sc/tool/1.0.0/tool-1.0.0.json"} <= shown
        assert any(each.startswith("py/demo/") and each.endswith(wheel) for each in shown)
        folder.delete_catalog()
        done = pkgrepo(folder, "reindex")
        assert done.returncode == 0, done.stderr
        server = run()
        client = HttpClient(server.url, (USER, PASSWORD))
        registry.stop()
        index.stop()
        assert versions(client) == before
        assert client.get("/repositories/main/npm/@sc/tool/-/tool-1.0.0.tgz").body == make_tarball("@sc/tool", "1.0.0")
        listed = client.get("/api/repository/main%2Fnpm/packages").json["items"]
        [route] = client.get("/api/repository/main%2Fnpm/upstream").json["routes"]
        shown = [(each["name"], each["source"], each["route"]) for each in listed]
        assert shown == [("@sc/tool", "cached", route["name"])]
