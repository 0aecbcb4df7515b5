"""Starts that fail: a message for the operator, exit status 1, and no traceback."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.server

Run = Callable[..., ServerProcess]


def refused(server: ServerProcess) -> str:
    """Start a server that must fail, and return its error message."""
    assert server.wait() == 1, server.output
    assert "Traceback" not in server.output
    (sentence, *_) = [line for line in server.output.splitlines() if "pkgrepo could not start: " in line]
    return sentence.partition("pkgrepo could not start: ")[2]


def served_once(run: Run) -> None:
    server = run()
    server.wait_ready()
    server.stop()


def test_a_data_folder_that_is_a_file(run_twistd: Run, tmp_path: Path) -> None:
    (tmp_path / "data").touch()
    assert "data cannot be used: File exists" in refused(run_twistd())


def test_a_data_folder_that_cannot_be_made(run_twistd: Run) -> None:
    sentence = refused(run_twistd("--set", "data.dir=/proc/nowhere"))
    assert sentence.startswith("/proc/nowhere cannot be used: ")


def test_a_port_that_is_taken(run_twistd: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        sentence = refused(run_twistd("--set", f'server.listen=["tcp:{port}:interface=127.0.0.1"]'))
    assert str(port) in sentence
    assert "in use" in sentence


@pytest.mark.sqlite("damages the file")
@pytest.mark.parametrize("damage", [b"no database at all" * 1000, b"SQLite format 3\x00" + bytes(5000)])
def test_a_damaged_database(run_twistd: Run, tmp_path: Path, damage: bytes) -> None:
    served_once(run_twistd)
    (tmp_path / "data" / "pkgrepo.db").write_bytes(damage)
    sentence = refused(run_twistd())
    assert "pkgrepo.db cannot be used: " in sentence
    assert "pkgrepo reindex" in sentence


@pytest.mark.folder("changes its marker")
def test_a_storage_folder_of_another_server(run_twistd: Run, tmp_path: Path) -> None:
    served_once(run_twistd)
    (tmp_path / "data" / "storages" / "main" / "format").write_text("pkgrepo blobs 1\nstorage somebody-elses\n")
    assert "belongs to storage somebody-elses" in refused(run_twistd())
