"""Indexes and folders of other programs are taken in: devpi, pypiserver, and a folder of old distributions."""

from __future__ import annotations

import io
import os
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client_programs import client as client_program
from tests.support.client_programs import client_environment, run_client
from tests.support.configurations import hosted
from tests.support.http_client import HttpClient
from tests.support.imports import counts, take, write
from tests.support.python_index import PASSWORD, USER, PythonBench, PythonIndex
from tests.support.python_packages import make_metadata, make_sdist, make_wheel
from tests.support.python_peers import DEVPI_USER, devpi, pypiserver
from tests.support.server_process import ServerProcess, running

LIBRARY = [("leaf-lib", "1.0", ()), ("leaf-lib", "1.1", ()), ("root-lib", "1.0", ("leaf-lib>=1.0",))]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with wheels."""
    folder = tmp_path_factory.mktemp("wheels")
    for project, version, requires in LIBRARY:
        name, data = make_wheel(project, version, fields=[("Requires-Dist", each) for each in requires])
        (folder / name).write_bytes(data)
    name, data = make_sdist("leaf-lib", "1.1")
    (folder / name).write_bytes(data)
    return folder


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the mirrors of a decade have them."""
    folder = tmp_path_factory.mktemp("old")
    with zipfile.ZipFile(folder / "Old.Lib-0.1-py2.7.egg", "w") as egg:
        egg.writestr("EGG-INFO/PKG-INFO", make_metadata("Old.Lib", "0.1", summary="an egg"))
    data = make_metadata("old-lib", "0.2")
    for name, mode in (("old-lib-0.2.tar.gz", "w:gz"), ("old-lib-0.2.tar.bz2", "w:bz2")):
        with tarfile.open(folder / name, mode) as archive:
            member = tarfile.TarInfo("old-lib-0.2/PKG-INFO")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    _, wheel = make_wheel("old-lib", "0.4")
    (folder / "old_lib-0.3-py3-none-any.whl").write_bytes(wheel)
    (folder / "notes.doc").write_bytes(b"no distribution")
    for each in folder.iterdir():
        os.utime(each, (1_300_000_000, 1_300_000_000))
    return folder


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exports")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, old: Path, exports: Path) -> Iterator[ServerProcess]:
    """A server that may import from the old folder, and reach this machine."""
    settings = f'proxy.allow_private = ["127.0.0.1"]\nimports.folders = ["{old}", "{exports}"]\n'
    with running(
        tmp_path_factory.mktemp("server"), settings + hosted("python", "devpi", "pypi", "old", "export")
    ) as started:
        yield started


@pytest.fixture
def client(server: ServerProcess) -> HttpClient:
    return HttpClient(server.url, (USER, PASSWORD))


@pytest.mark.parametrize("peer", [devpi, pypiserver], ids=["devpi", "pypi"])
def test_an_index_is_taken_in_once(peer, server, client, wheels, tmp_path) -> None:
    into = "main/devpi" if peer is devpi else "main/pypi"
    folder = tmp_path / "peer"
    folder.mkdir()
    with peer(folder, wheels) as url:
        foreseen = take(client, "python", url, into, dry_run=True)
        first = take(client, "python", url, into)
        second = take(client, "python", url, into)
        third = take(client, "python", url, into, again=True)
    assert counts(foreseen) == (4, 0, 0)
    assert counts(first) == (4, 0, 0)
    assert (counts(second), second["unchanged"]) == ((0, 0, 0), 2)
    assert (counts(third), third["facts"]) == ((0, 4, 0), 0)
    bench = PythonBench(tmp_path / "bench")
    python = bench.venv()
    bench.pip(python, "install", "-i", PythonIndex(server.url, into).simple, "root-lib")
    code = "import leaf_lib, root_lib; print(root_lib.__version__, leaf_lib.__version__)"
    assert bench.run(python, "-c", code).split() == ["1.0", "1.1"]


def test_an_export_of_devpi_is_taken_in(client, wheels, exports, tmp_path) -> None:
    with devpi(tmp_path, wheels):
        pass
    environ = client_environment(tmp_path / "home")
    export = [client_program("devpi", "devpi-export"), "--serverdir", tmp_path / "state", exports / "out"]
    run_client(export, environ=environ, folder=tmp_path)
    assert counts(take(client, "devpi", exports / "out", "main/export")) == (4, 0, 0)
    assert counts(take(client, "devpi", exports / "out", "main/export", again=True)) == (0, 4, 0)
    record = client.get("/api/package/main%2Fexport/root-lib/versions/1.0").json
    assert record["publisher"] == DEVPI_USER
    none = client.post_json("/api/import?wait=60", {**EXPORT, "source": str(exports / "out"), "repositories": ["a/b"]})
    assert (none.status, "tests/dev" in none.text) == (503, True)


EXPORT = {"kind": "devpi", "into": "main/export"}


def test_signatures_come_with_files(client, exports) -> None:
    name, data = make_wheel("signed-lib", "1.0")
    write(exports / "signed", {name: data, f"{name}.asc": b"a signature"})
    assert counts(take(client, "python", exports / "signed", "main/old")) == (1, 0, 0)
    url = f"/repositories/main/old/packages/signed-lib/1.0/{name}.asc"
    assert client.get(url).body == b"a signature"


def test_old_kinds_of_files_are_served_as_they_were(client, old) -> None:
    result = take(client, "python", old, "main/old")
    assert counts(result) == (4, 0, 1)
    assert result["left_out"][0]["item"] == "notes.doc"
    page = client.get("/repositories/main/old/simple/old-lib/", accept="application/vnd.pypi.simple.v1+json")
    listed = {each["filename"]: each for each in page.json["files"]}
    assert sorted(listed) == sorted(each.name for each in old.iterdir() if each.name != "notes.doc")
    for name, each in listed.items():
        assert each["upload-time"].startswith("2011-03-13"), name
        found = client.get(f"/repositories/main/old/{each['url'].removeprefix('../../')}")
        assert found.body == (old / name).read_bytes()
    assert counts(take(client, "python", old, "main/old")) == (0, 0, 1)


def test_a_push_of_today_stays_strict(client, old) -> None:
    name = "old_lib-0.3-py3-none-any.whl"
    url = f"/repositories/main/pypi/packages/old-lib/0.3/{name}"
    assert client.put(url, (old / name).read_bytes()).status == 400


def test_a_server_reads_only_the_folders_of_its_setting(client, wheels) -> None:
    for folder in (wheels, "/etc", "/nowhere"):
        refused = client.post_json("/api/import", {"kind": "python", "source": str(folder), "into": "main/old"})
        assert (refused.status, "imports.folders" in refused.text) == (403, True)
