"""Leases of names among processes; two objects are like two processes, since each has a descriptor of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pkgrepo.storage.key_leases import KeyLeases


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "leases"


def test_one_of_two_has_a_lease(path: Path) -> None:
    first, second = KeyLeases(path), KeyLeases(path)
    assert (first.acquire("a"), second.acquire("a"), second.acquire("b")) == (True, False, True)
    first.release("a")
    assert second.acquire("a")
    first.close()
    second.close()


def test_a_lease_is_not_given_twice_to_one_process(path: Path) -> None:
    leases = KeyLeases(path)
    assert (leases.acquire("a"), leases.acquire("a")) == (True, False)
    leases.release("a")
    assert leases.acquire("a")
    leases.close()


def test_names_may_have_any_characters_and_length(path: Path) -> None:
    first, second = KeyLeases(path), KeyLeases(path)
    for name in ("", "é/\0", "\udc80", "x" * 100_000):
        assert (first.acquire(name), second.acquire(name)) == (True, False)
    first.close()
    assert second.acquire("")
    second.close()


def test_the_leases_of_a_process_that_is_killed_are_free(path: Path) -> None:
    code = f"""
from pathlib import Path
from pkgrepo.storage.key_leases import KeyLeases
print(KeyLeases(Path({str(path)!r})).acquire("a"), flush=True)
input()
"""
    leases = KeyLeases(path)
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=os.getcwd()) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"True\n"
        assert not leases.acquire("a")
        child.kill()
    assert leases.acquire("a")
    leases.close()


def test_without_a_lock_file_everybody_has_every_lease(tmp_path: Path) -> None:
    first, second = KeyLeases(tmp_path / "missing" / "leases"), KeyLeases(tmp_path / "missing" / "leases")
    assert (first.acquire("a"), second.acquire("a")) == (True, True)
    first.release("a")
    first.close()
    second.close()


def test_others_cannot_take_locks(path: Path) -> None:
    leases = KeyLeases(path)
    leases.acquire("a")
    assert path.stat().st_mode & 0o777 == 0o600
    leases.close()
