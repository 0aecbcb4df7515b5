"""A backup that is restored to another folder by README's steps does not change the original's files."""

import shutil
import sqlite3
import subprocess
from contextlib import closing

import pytest
import requests

from tests.support.data_folder import DataFolder, pkgrepo, stop_in_step, tree, wait_for
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_sdist
from tests.support.server_process import restarts, twistd_process
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.faults

STORAGES = ("main", "second", "far")


def refused_start(home):
    """Start a server that must refuse to start, and return its output."""
    process = twistd_process(home)
    try:
        with pytest.raises(AssertionError, match="announced no address"):
            process.wait_ready()
    finally:
        status = process.kill()
    assert status == 1, process.output
    return process.output


def publish(server, name):
    """Publish a project in each storage, and check that it can be downloaded."""
    filename, body = make_sdist(name, "1.0")
    for storage in STORAGES:
        wire = HttpClient(f"{server.url}/repositories/{storage}/py", (USER, PASSWORD))
        assert wire.put(f"/{name}/1.0/{filename}", body).status == 201
        assert wire.get(f"/packages/{name}/1.0/{filename}").body == body


@pytest.fixture
def original(tmp_path):
    """A running server and its data folder; two of its storages are in that folder, one is outside."""
    home = tmp_path / "original"
    home.mkdir()
    with restarts(home, "") as start:
        server = start()
        for name, path in (("main", None), ("second", None), ("far", str(home / "far"))):
            body = {"name": name, **({"path": path} if path else {})}
            for kind, record in (
                ("storage", body),
                ("repository", {"name": "py", "storage": name, "format": "python", "visibility": "public"}),
            ):
                reply = requests.post(f"{server.url}/api/{kind}", json=record, auth=(USER, PASSWORD), timeout=TIMEOUT_S)
                assert reply.status_code < 300, reply.text
        publish(server, "demo")
        data = DataFolder(home / "data")
        wait_for(data.is_in_step, server)
        yield server, data


def back_up(data, target):
    """README's backup: the database, then the folders of the storages."""
    target.mkdir()
    with (
        closing(sqlite3.connect(data.folder / "pkgrepo.db")) as source,
        closing(sqlite3.connect(target / "db")) as copy,
    ):
        source.backup(copy)
    subprocess.run(["cp", "-a", data.folder / "storages", data.folder.parent / "far", target], check=True)


def restore(backup, home):
    """README's restore of the data folder, without the storage outside of it."""
    data = DataFolder(home / "data")
    data.folder.mkdir(parents=True)
    shutil.copy(backup / "db", data.folder / "pkgrepo.db")
    subprocess.run(["cp", "-a", backup / "storages", data.folder], check=True)
    return data


@pytest.fixture
def copy(original, tmp_path):
    back_up(original[1], tmp_path / "backup")
    return restore(tmp_path / "backup", tmp_path / "copy")


@pytest.mark.sqlite("restores a copy of the file")
def test_a_restored_copy_does_not_change_its_original(original, copy, tmp_path):
    server, data = original
    far = data.folder.parent / "far"
    before = tree(data.folder / "storages", far)

    refused = refused_start(tmp_path / "copy")
    for hint in (f"{far} ", str(data.folder), "pkgrepo storage move far PATH", "pkgrepo storage adopt far"):
        assert hint in refused, refused
    for command in (["verify", "--repair"], ["gc"], ["reindex"]):
        done = pkgrepo(copy, *command)
        assert (done.returncode, "pkgrepo storage adopt far" in done.stderr) == (5, True), (command, done.stderr)
    busy = pkgrepo(copy, "storage", "adopt", "far")
    assert (busy.returncode, "a server works in" in busy.stderr) == (5, True), busy.stderr

    subprocess.run(["cp", "-a", tmp_path / "backup" / "far", tmp_path / "copy"], check=True)
    moved = pkgrepo(copy, "storage", "move", "far", str(tmp_path / "copy" / "far"))
    assert moved.returncode == 0, moved.stderr
    assert tree(data.folder / "storages", far) == before

    with restarts(tmp_path / "copy", "") as start:
        second = start()
        publish(second, "other")
        for storage in STORAGES:
            wire = HttpClient(f"{second.url}/repositories/{storage}/py")
            assert wire.get("/packages/demo/1.0/demo-1.0.tar.gz").status == 200
        stop_in_step(second, copy)
    (copy.layout / "py" / "demo" / "1.0" / "demo-1.0.tar.gz").unlink()
    mended = pkgrepo(copy, "verify", "--repair")
    assert (mended.returncode, "1 mended" in mended.stdout) == (0, True), mended.stderr
    assert tree(data.folder / "storages", far) == before
    assert not list(tmp_path.joinpath("original").rglob("other*"))

    publish(server, "later")  # the original still works, with its own storage
    stop_in_step(server, data)
    assert pkgrepo(data, "verify").returncode == 0


@pytest.mark.sqlite("restores a copy of the file")
def test_a_copy_of_a_lost_catalog_does_not_take_its_originals_storages(original, copy):
    _, data = original
    before = tree(data.folder / "storages", data.folder.parent / "far")
    shutil.copy(data.folder / "storages.json", copy.folder)
    copy.delete_catalog()
    done = pkgrepo(copy, "reindex")
    assert done.returncode == 1
    assert f"belongs to the catalog in {data.folder}" in done.stderr
    assert "took in 2 repositories, 2 versions" in done.stdout, done.stderr
    assert copy.rows("SELECT name FROM storage ORDER BY name") == [("main",), ("second",)]
    assert tree(data.folder / "storages", data.folder.parent / "far") == before


@pytest.mark.sqlite("restores a copy of the file")
def test_a_storage_changes_hands_only_when_told(original, copy, tmp_path):
    server, data = original
    stop_in_step(server, data)
    adopted = pkgrepo(copy, "storage", "adopt", "far")
    assert adopted.returncode == 0, adopted.stderr
    with restarts(tmp_path / "copy", "") as start:
        publish(start(), "other")
        assert f"belongs to the catalog in {copy.folder}" in refused_start(tmp_path / "original")


@pytest.mark.parametrize("emptied", [False, True])
def test_nothing_is_made_where_a_storage_is_missing(original, tmp_path, emptied):
    server, data = original
    stop_in_step(server, data)
    far = data.folder.parent / "far"
    far.rename(tmp_path / "away")
    if emptied:  # what is left of a disk that is not mounted
        far.mkdir()
    assert "storage 'far' is not at" in refused_start(data.folder.parent)
    for command in (["verify", "--repair"], ["gc"], ["reindex"]):
        done = pkgrepo(data, *command)
        assert (done.returncode, "storage 'far' is not at" in done.stderr) == (5, True), (command, done.stderr)
    assert tree(far) == {}
    assert far.exists() == emptied


def test_a_storage_is_elsewhere_when_told_and_is_begun_anew_only_then(original, tmp_path):
    server, data = original
    stop_in_step(server, data)
    home = data.folder.parent
    (home / "far").rename(tmp_path / "away")
    for path, options, status in (
        (tmp_path / "nowhere", [], 2),
        (data.store, [], 5),
        (data.store / "below", ["--empty"], 5),
        (home / "data" / "storages" / "second", ["--empty"], 5),
    ):
        wrong = pkgrepo(data, "storage", "move", "far", str(path), *options)
        assert wrong.returncode == status, (path, wrong.stderr)
    assert not (tmp_path / "nowhere").exists()
    moved = pkgrepo(data, "storage", "move", "far", str(tmp_path / "away"))
    assert moved.returncode == 0, moved.stderr
    assert pkgrepo(data, "verify").returncode == 0
    (tmp_path / "away").rename(tmp_path / "lost")
    begun = pkgrepo(data, "storage", "move", "far", str(tmp_path / "new"), "--empty")
    assert begun.returncode == 0, begun.stderr
    with restarts(home, "") as start:
        publish(start(), "after")
