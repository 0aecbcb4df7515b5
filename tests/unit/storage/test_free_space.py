"""The free space of a file system, in bytes and in files."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from pkgrepo.storage.free_space import free_and_total


@pytest.mark.parametrize(
    ("files", "left", "free"),
    [(0, 0, 600_000), (1000, 1000, 600_000), (1000, 20, 600_000), (1000, 19, 19_000), (1000, 0, 0)],
    ids=["no limit", "all", "2 %", "less", "none"],
)
def test_bytes_that_no_file_can_hold_are_not_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, left: int, free: int
) -> None:
    found = SimpleNamespace(f_bavail=600, f_frsize=1000, f_blocks=1000, f_files=files, f_favail=left)
    monkeypatch.setattr(os, "statvfs", lambda _: found)
    assert free_and_total(tmp_path) == (free, 1_000_000)
