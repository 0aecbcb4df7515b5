"""The reserve file beside the database."""

from pkgrepo.storage.catalog.engine import sqlite as module
from pkgrepo.storage.catalog.engine.sqlite import SIZE, DiskReserve


def test_the_reserve_is_allocated_and_released_once(tmp_path):
    reserve = DiskReserve(tmp_path / "pkgrepo.db")
    reserve.allocate()
    reserve.allocate()
    (file,) = tmp_path.iterdir()
    assert (file.name, file.stat().st_size, file.stat().st_mode & 0o077) == ("pkgrepo.db-reserve", SIZE, 0)
    assert file.stat().st_blocks * 512 >= SIZE  # not a hole
    assert reserve.release()
    assert not reserve.release()
    assert list(tmp_path.iterdir()) == []


def test_a_reserve_that_does_not_fit_leaves_no_file(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(28, "no space")

    monkeypatch.setattr(module.os, "posix_fallocate", refuse)
    DiskReserve(tmp_path / "pkgrepo.db").allocate()
    assert list(tmp_path.iterdir()) == []
