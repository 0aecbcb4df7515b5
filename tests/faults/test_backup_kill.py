"""A backup that is killed, or that finds its disk full, leaves the earlier ones whole, and the next one goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder, environment_of, pkgrepo
from tests.support.full_disk import file_system, filled
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_publish
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import restarts

pytestmark = [pytest.mark.faults, pytest.mark.folder("looks into a folder")]

PROGRAM = "from pkgrepo.cli import main; main()"
VERSIONS = 32


def publish(server, *versions: int) -> None:
    npm = HttpClient(f"{server.url}/repositories/main/npm", (USER, PASSWORD))
    for each in versions:
        assert npm.put("/demo", make_publish("demo", f"1.0.{each}")).status == 201


def copies(place: Path) -> int:
    return sum(each.is_file() for each in (place / "content" / "blobs").rglob("*.*"))


def check(data: DataFolder, place: Path) -> dict[str, object]:
    done = pkgrepo(data, "restore", str(place), "--check", "--json", "--sample", "1")
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_a_killed_backup_leaves_the_earlier_one_and_is_continued(tmp_path: Path) -> None:
    data, place = DataFolder(tmp_path / "data"), tmp_path / "backups"
    with restarts(tmp_path, hosted("npm", "npm")) as start:
        server = start()
        publish(server, 0)
        assert pkgrepo(data, "backup", str(place), "--keep", "1").returncode == 0
        first = check(data, place)
        publish(server, *range(1, VERSIONS))
        before = copies(place)
        command = [sys.executable, "-c", PROGRAM, "backup", str(place), "--keep", "1"]
        with subprocess.Popen(command, env=environment_of(data), stderr=subprocess.DEVNULL) as child:
            while copies(place) == before and child.poll() is None:
                assert server.url
            child.send_signal(signal.SIGKILL)
        killed = copies(place)
        found = check(data, place)
        assert found == first or found["blobs"] == VERSIONS, "a slow machine may have let it end"
        # The lease of the killed job still runs, and no other job may begin before its end.
        data.change("UPDATE job SET lease_until = 0 WHERE kind = 'backup' AND state = 'running'")
        again = pkgrepo(data, "backup", str(place), "--keep", "1")
        assert again.returncode == 0, again.stderr
        assert f"{VERSIONS} blobs" in again.stdout
        # Two of what was there may be parts of a backup, and no blobs.
        assert int(again.stdout.partition("of which ")[2].split()[0]) <= VERSIONS + 2 - (killed - before)
        assert check(data, place)["blobs"] == VERSIONS
        assert not (data.folder / "backup-scratch").exists()


def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    data = DataFolder(tmp_path / "data")
    low = "[data]\nlow_water = 0\n"
    with file_system(tmp_path / "small", "4m") as small, restarts(tmp_path, low + hosted("npm", "npm")) as start:
        server, place = start(), small / "backups"
        publish(server, 0)
        environ = {"PKGREPO_DATA__LOW_WATER": "0"}
        made = pkgrepo(data, "backup", str(place), "--keep", "1", environ=environ)
        assert made.returncode == 0, made.stderr
        first = check(data, place)
        publish(server, 1)
        with filled(small):
            full = pkgrepo(data, "backup", str(place), "--keep", "1", environ=environ)
            assert (full.returncode, "has no room left" in full.stderr) == (1, True), full
            assert check(data, place) == first
        assert pkgrepo(data, "backup", str(place), "--keep", "1", environ=environ).returncode == 0
        assert check(data, place)["blobs"] == 2
