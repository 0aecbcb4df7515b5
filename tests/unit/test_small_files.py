from __future__ import annotations

import os
import stat

import pytest

from pkgrepo.small_files import ensure_private, private_opener, tighten, write_at


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(autouse=True)
def generous_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def test_a_new_file_has_mode_0600(tmp_path):
    ensure_private(tmp_path / "made")
    assert mode(tmp_path / "made") == 0o600
    with open(tmp_path / "opened", "ab", opener=private_opener):
        pass
    assert mode(tmp_path / "opened") == 0o600


def test_an_existing_file_loses_the_rights_of_others_and_keeps_its_content(tmp_path):
    path = tmp_path / "there"
    path.write_text("secret")
    path.chmod(0o664)
    ensure_private(path)
    assert mode(path) == 0o600
    assert path.read_text() == "secret"


def test_a_private_file_is_not_changed(tmp_path):
    path = tmp_path / "there"
    path.touch()
    path.chmod(0o400)
    ensure_private(path)
    assert mode(path) == 0o400


def test_a_pipe_keeps_its_mode_and_a_missing_file_is_ignored(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "pipe").chmod(0o622)
    tighten(tmp_path / "pipe")
    assert mode(tmp_path / "pipe") == 0o622
    tighten(tmp_path / "gone")


def test_all_bytes_are_written_in_as_many_calls_as_it_takes(tmp_path, monkeypatch):
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: write(fd, data[:3], at))
    with open(tmp_path / "file", "w+b") as file:
        write_at(file.fileno(), b"0123456789", 2)
        assert file.read() == b"\0\x000123456789"


def test_a_write_that_writes_nothing_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    with open(tmp_path / "file", "wb") as file, pytest.raises(OSError, match="written nothing"):
        write_at(file.fileno(), b"x", 0)
