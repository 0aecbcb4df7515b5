"""Permissions of files with secrets that a server makes under umask 0."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import requests

from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def _embedded(pytestconfig):
    """These are about the files of the embedded database."""
    if pytestconfig.getoption("--postgresql"):
        pytest.skip("the catalog has no files")


ANOTHER = {"username": "mary", "name": "Mary", "email": "mary@example.org", "password": "correct horse battery"}


@pytest.fixture(autouse=True)
def _generous_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def readable_by_others(folder: Path) -> list[str]:
    """Files in the folder itself that group or others may open; storages.json tells no secret."""
    files = [each for each in folder.iterdir() if each.is_file() and each.name != "storages.json"]
    return sorted(each.name for each in files if stat.S_IMODE(each.stat().st_mode) & 0o077)


def test_files_of_a_server_are_not_readable_by_others(run_twistd, tmp_path):
    settings = {"PKGREPO_LOG__AUDIT_FILE": str(tmp_path / "audit.log")}
    url = run_twistd(environ=settings).wait_ready()
    made = requests.post(url + "/api/users", json=ANOTHER, auth=("admin", "correct horse battery"), timeout=TIMEOUT_S)
    assert made.ok, made.text
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o750  # what is below it may be readable
    names = {each.name for each in (tmp_path / "data").iterdir()}
    assert {"pkgrepo.db", "pkgrepo.db-wal", "pkgrepo.db-shm"} <= names
    assert (tmp_path / "audit.log").read_text().count("\n") > 0
    assert readable_by_others(tmp_path / "data") == []
    assert readable_by_others(tmp_path) == []


def test_a_start_removes_permissions_of_others_from_existing_files(run_twistd, tmp_path):
    settings = {"PKGREPO_LOG__AUDIT_FILE": str(tmp_path / "audit.log")}
    first = run_twistd(environ=settings)
    first.wait_ready()
    first.kill()  # so that the write-ahead log is not deleted
    (tmp_path / "data" / "pkgrepo.db.v1").write_bytes(b"a copy from before an upgrade")
    (tmp_path / "audit.log").touch()
    for folder in (tmp_path, tmp_path / "data"):
        for each in folder.iterdir():
            if each.is_file():
                each.chmod(0o644)
    run_twistd(environ=settings).wait_ready()
    assert readable_by_others(tmp_path / "data") == []
    assert readable_by_others(tmp_path) == []
