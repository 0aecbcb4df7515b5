"""Registries and folders of other programs are taken in: Verdaccio, by its address and by its storage folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.http_client import HttpClient
from tests.support.imports import counts, take
from tests.support.npm_packages import make_publish
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, running
from tests.support.verdaccio import verdaccio

VERSIONS = [("@team/util", "1.0.0"), ("@team/util", "1.1.0"), ("left", "0.1.0"), ("left", "0.2.0-rc.1")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Verdaccio."""
    return tmp_path_factory.mktemp("verdaccio")


@pytest.fixture(scope="module")
def registry(place: Path) -> Iterator[str]:
    """A Verdaccio with some packages, one of whose versions is deprecated."""
    with verdaccio(place) as url:
        npm = HttpClient(url)
        for name, version in VERSIONS:
            body = make_publish(name, version, registry=url)
            path = f"/{name.replace('/', '%2f')}"
            reply = npm.ask("PUT", path, body, {"Content-Type": "application/json"})
            assert reply.status in (200, 201), reply.text
        document = npm.get("/left").json
        document["versions"]["0.1.0"]["deprecated"] = "use right"
        document["dist-tags"]["next"] = "0.2.0-rc.1"
        assert npm.post_json("/left", document, "PUT").status in (200, 201)
        yield url


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, place: Path) -> Iterator[ServerProcess]:
    settings = f'proxy.allow_private = ["127.0.0.1"]\nimports.folders = ["{place}"]\n'
    with running(tmp_path_factory.mktemp("server"), settings + hosted("npm", "address", "folder", "named")) as started:
        yield started


@pytest.mark.parametrize("into", ["address", "folder", "named"])
def test_a_registry_is_taken_in_once(into, registry, place, server) -> None:
    client = HttpClient(server.url, (USER, PASSWORD))
    source = place / "storage" if into == "folder" else registry
    more = {"names": ["left", "@team/util"]} if into == "named" else {}
    first = take(client, "verdaccio", source, f"main/{into}", **more)
    second = take(client, "verdaccio", source, f"main/{into}", **more)
    third = take(client, "npm", source, f"main/{into}", **more)
    assert counts(first) == (4, 0, 0), first
    assert (counts(second), second["unchanged"]) == ((0, 0, 0), 2)
    assert (counts(third), third["facts"]) == ((0, 4, 0), 0)
    theirs, ours = HttpClient(registry).get("/left").json, client.get(f"/repositories/main/{into}/left").json
    assert ours["dist-tags"] == theirs["dist-tags"]
    assert ours["versions"]["0.1.0"]["deprecated"] == "use right"
    for version, there in theirs["versions"].items():
        assert ours["versions"][version]["dist"]["integrity"] == there["dist"]["integrity"]
        assert ours["time"][version] == theirs["time"][version]
