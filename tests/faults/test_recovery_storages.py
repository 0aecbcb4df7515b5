"""A rebuilt catalog has the storages that were made through the API, inside and outside the data folder."""

import json
import shlex
import shutil

import pytest
import requests

from pkgrepo.storage.folders import STORAGES_JSON
from tests.support import server_databases
from tests.support.data_folder import DataFolder, pkgrepo, wait_for
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_sdist
from tests.support.server_process import restarts
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.faults

FILE = make_sdist("demo", "1.0")


def api(server, method, path, body=None):
    reply = requests.request(method, f"{server.url}/api{path}", json=body, auth=(USER, PASSWORD), timeout=TIMEOUT_S)
    assert reply.status_code < 300, reply.text
    return reply


def adopt_outside(data, folder):
    """Assign a storage to a new database of a server, which cannot find out whether the earlier one still exists."""
    if server_databases.SERVER:
        refused = pkgrepo(data, "reindex", "--storage", f"remote={folder}")
        assert f"'pkgrepo storage adopt remote {shlex.quote(str(folder))}' takes this one over" in refused.stderr
        adopted = pkgrepo(data, "storage", "adopt", "remote", str(folder))
        assert adopted.returncode == 0, adopted.stderr


def test_storages_are_found_again(run, tmp_path):
    data, far = DataFolder(tmp_path / "data"), tmp_path / "far away"
    server = run()
    for name, path in (("far", str(far)), ("gone", None)):
        api(server, "POST", "/storage", {"name": name, **({"path": path} if path else {})})
    api(server, "DELETE", "/storage/gone")
    api(server, "PATCH", "/storage/far", {"name": "remote"})
    body = {"name": "py", "storage": "remote", "format": "python", "visibility": "public"}
    api(server, "POST", "/repository", body)
    py = HttpClient(f"{server.url}/repositories/remote/py", (USER, PASSWORD))
    assert py.put(f"/demo/1.0/{FILE[0]}", FILE[1]).status == 201
    wait_for((far / "repositories" / "py" / "demo" / ".package.json").exists, server)
    server.stop()

    data.delete_catalog()
    adopt_outside(data, far)
    done = pkgrepo(data, "reindex")
    assert (done.returncode, "took in 1 repositories, 1 versions" in done.stdout) == (0, True), done.stderr
    assert data.rows("SELECT name FROM storage ORDER BY name") == [("main",), ("remote",)]

    data.delete_catalog()  # and now the storage has another path
    moved = shutil.move(far, tmp_path / "moved")
    missed = pkgrepo(data, "reindex")
    assert (missed.returncode, "tell with --storage remote=PATH" in missed.stderr) == (1, True)
    wrong = pkgrepo(data, "reindex", "--storage", f"remote={tmp_path}")
    assert (wrong.returncode, "holds no storage" in wrong.stderr) == (2, True)
    adopt_outside(data, moved)
    found = pkgrepo(data, "reindex", "--storage", f"remote={moved}")
    assert (found.returncode, "took in 1 repositories, 1 versions" in found.stdout) == (0, True), found.stderr

    data.delete_catalog()
    (data.folder / STORAGES_JSON).unlink()
    adopt_outside(data, moved)
    named = pkgrepo(data, "reindex", "--storage", f"remote={moved}")
    assert (named.returncode, "took in 1 repositories" in named.stdout) == (0, True), named.stderr
    server = run()
    assert HttpClient(f"{server.url}/repositories/remote/py").get(f"/packages/demo/1.0/{FILE[0]}").body == FILE[1]


def test_reindex_reports_a_storage_without_a_readable_layout(tmp_path):
    data = DataFolder(tmp_path / "data")
    declared = (
        '[[bootstrap.storages]]\nname = "plain"\nreadable_layout = false\n'
        '[[bootstrap.repositories]]\nname = "py"\nstorage = "plain"\nformat = "python"\n'
    )
    with restarts(tmp_path, declared) as start:
        server = start()
        py = HttpClient(f"{server.url}/repositories/plain/py", (USER, PASSWORD))
        assert py.put(f"/demo/1.0/{FILE[0]}", FILE[1]).status == 201
        server.stop()
    store = data.folder / "storages" / "plain"
    assert [each.name for each in (store / "repositories").iterdir() if each.is_dir() and each.name != ".tmp"] == []
    checked = pkgrepo(data, "verify")
    assert (checked.returncode, "plain: no readable layout is kept" in checked.stderr) == (0, True), checked.stderr
    data.delete_catalog()
    done = pkgrepo(data, "reindex")
    assert (done.returncode, "plain: no readable layout is kept" in done.stderr) == (1, True), done.stderr
    assert f"1 blobs of {len(FILE[1])} bytes in storage plain belong to nothing" in done.stderr
    ((settings,),) = data.rows("SELECT settings FROM storage WHERE name = 'plain'")
    assert json.loads(str(settings))["readable_layout"] is False
    with restarts(tmp_path, declared) as start:
        start().stop()  # its housekeeping looks for copies without a catalog row
    assert [each.read_bytes() for each in (store / "blobs").rglob("*") if each.is_file()] == [FILE[1]]
