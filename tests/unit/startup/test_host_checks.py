"""What a server depends on at its machine is found, and named with what to do about it."""

from __future__ import annotations

import ctypes
import os
import resource
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import pkgrepo
from pkgrepo.config import Config, read_config
from pkgrepo.startup import host_checks
from pkgrepo.startup.host_checks import OK, PROBLEM, WARNING, Finding, host_findings
from tests.support.certificates import write_certificate

UNIT = Path(pkgrepo.__file__).parent / "systemd" / "pkgrepo.service"


def config_of(folder: Path, **settings: str) -> Config:
    return read_config(
        overrides={
            "data.dir": str(folder / "data"),
            **{name.replace("__", "."): each for name, each in settings.items()},
        }
    )


def findings(folder: Path, **settings: str) -> dict[str, Finding]:
    return {each.subject: each for each in host_findings(config_of(folder, **settings))}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o750)
    return folder


def test_a_new_machine_has_no_problem(tmp_path: Path) -> None:
    found = findings(tmp_path)
    assert {each.subject for each in found.values() if each.state == PROBLEM} <= {"database disk"}  # of this machine
    assert {"versions", "data folder", "database disk", "clock", "memory", "descriptors"} <= found.keys()
    assert "is made at the first start" in found["data folder"].sentence
    assert list(tmp_path.iterdir()) == []
    assert all(each.advice for each in found.values() if each.state != OK)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(data: Path, tmp_path: Path) -> None:
    data.chmod(0o500)
    assert findings(tmp_path)["data folder"].state == PROBLEM


def test_what_others_can_read(data: Path, tmp_path: Path) -> None:
    (data / "credentials.key").write_text("x")
    (data / "credentials.key").chmod(0o644)
    data.chmod(0o755)
    found = findings(tmp_path)
    assert (found["data folder"].state, found["data folder"].advice) == (WARNING, f"chmod o= {data}")
    assert found["secrets"].advice == f"chmod 600 {data / 'credentials.key'}"


def test_a_volume_and_a_mounted_secret_of_root_are_read_by_the_group(
    data: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    (data / "credentials.key").write_text("x")
    (data / "credentials.key").chmod(0o440)
    data.chmod(0o2777)
    user = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "access", lambda *_: True)
    monkeypatch.setattr(os.path, "ismount", lambda path: path == data)
    found = findings(tmp_path)
    assert (found["data folder"].state, "secrets" in found) == (OK, False)


@pytest.mark.parametrize(("free", "state"), [(500, OK), (50, WARNING), (10, PROBLEM)])
def test_disks(tmp_path: Path, monkeypatch: Any, free: int, state: str) -> None:
    monkeypatch.setattr(host_checks, "free_and_total", lambda _: (free * 2**20, 1000 * 2**20))
    assert findings(tmp_path)["database disk"].state == state


def test_a_clock_behind_what_was_written(data: Path, tmp_path: Path) -> None:
    (data / "pkgrepo.db").write_bytes(b"")
    (data / "pkgrepo.db").chmod(0o600)
    later = time.time() + 3600
    os.utime(data / "pkgrepo.db", (later, later))
    assert findings(tmp_path)["clock"].state == PROBLEM


@pytest.mark.parametrize(("answer", "state"), [(0, OK), (5, WARNING), (-1, OK)])
def test_a_clock_that_is_not_synchronised(tmp_path: Path, monkeypatch: Any, answer: int, state: str) -> None:
    class Library:
        def adjtimex(self, _: object) -> int:
            return answer

    monkeypatch.setattr(ctypes, "CDLL", lambda _: Library())
    assert host_checks._clock(config_of(tmp_path)).state == state


def test_memory_for_the_workers(tmp_path: Path) -> None:
    assert host_checks._memory(config_of(tmp_path, server__workers="1")).state == OK
    found = host_checks._memory(config_of(tmp_path, server__workers="256"))
    assert "256 workers take 7.6 GiB when idle" in found.sentence


@pytest.mark.parametrize(("caches", "state"), [("auto", OK), ("400MiB", OK), ("800MiB", WARNING)])
def test_memory_for_caches(tmp_path: Path, monkeypatch: Any, caches: str, state: str) -> None:
    monkeypatch.setattr(host_checks, "usable_memory", lambda: 2**30)
    found = host_checks._memory(config_of(tmp_path, server__workers="1", server__cache_memory=caches))
    assert found.state == state, found
    assert state == OK or "server.cache_memory" in found.advice


@pytest.mark.parametrize(("limit", "state"), [(1024, WARNING), (65_536, OK), (resource.RLIM_INFINITY, OK)])
def test_descriptors(monkeypatch: Any, limit: int, state: str) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, limit))
    assert host_checks._descriptors().state == state


@pytest.mark.parametrize(("days", "state"), [(-1, PROBLEM), (3, WARNING), (60, OK)])
def test_certificates(tmp_path: Path, monkeypatch: Any, days: int, state: str) -> None:
    certificate, key = write_certificate(tmp_path)
    config = config_of(tmp_path, tls__cert=str(certificate), tls__key=str(key))

    class Certificate:
        expires_at = datetime.now(UTC) + timedelta(days=days)

    monkeypatch.setattr(host_checks, "ServerCertificate", lambda *_: Certificate())
    (found,) = host_checks._certificate(config)
    assert (found.state, bool(found.advice)) == (state, state != OK)


def test_a_certificate_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    (found,) = host_checks._certificate(
        config_of(tmp_path, tls__cert=str(tmp_path / "x"), tls__key=str(tmp_path / "x"))
    )
    assert found.state == PROBLEM


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("", "", "confines the server"),
        ("SystemCallFilter=setpriority\n", "", "has not the lines SystemCallFilter=setpriority"),
        ("[Install]", "SystemCallFilter=~@network-io\n[Install]", "also forbids SystemCallFilter=~@network-io"),
    ],
)
def test_the_installed_unit_is_compared(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert list(host_checks._unit((str(tmp_path),))) == []
    (tmp_path / "pkgrepo.service").write_text(UNIT.read_text().replace(old, new) if old else UNIT.read_text())
    (found,) = host_checks._unit((str(tmp_path),))
    assert sentence in found.sentence
    assert (found.state == OK) == (old == "")
