import os
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from pkgrepo.storage.catalog.engine.generation import (
    COUNT_BYTES,
    RECHECK_S,
    CommitCount,
    Generation,
    WriteLock,
    lock_path,
)
from pkgrepo.storage.catalog.server import settings
from tests.support.catalogs import SqliteCase


class Scene:
    """A count of commits, and a generation whose clock and SQLite counter the tests set."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = WriteLock(path)
        self.commit()
        self.version, self.now, self.asked = 7, 100.0, 0
        self.commits = CommitCount(path)
        self.generation = Generation(self.commits, self._read, lambda: self.now)

    def _read(self) -> int:
        self.asked += 1
        return self.version

    def commit(self) -> None:
        with self.lock.hold(), self.lock.count_commit():
            pass

    def asks(self) -> bool:
        """Whether the next generation comes from SQLite."""
        before = self.asked
        assert self.generation() == self.version
        return self.asked > before


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "pkgrepo.db")
    yield made
    made.commits.close()
    made.lock.close()


def test_sqlite_is_asked_once_while_nobody_commits(scene: Scene) -> None:
    assert [scene.asks() for _ in range(4)] == [True, False, False, False]


def test_a_commit_of_another_process_is_seen_at_once(scene: Scene) -> None:
    scene.asks()
    scene.commit()
    scene.version += 1
    assert [scene.asks(), scene.asks()] == [True, False]


def test_sqlite_is_asked_as_long_as_a_commit_is_under_way(scene: Scene) -> None:
    scene.asks()
    with scene.lock.hold(), scene.lock.count_commit():
        assert [scene.asks(), scene.asks()] == [True, True]
        scene.version += 1  # visible, and not counted yet
        assert scene.asks()
    assert [scene.asks(), scene.asks()] == [True, False]


def test_a_commit_that_begins_while_sqlite_is_asked_is_not_missed(scene: Scene) -> None:
    committing = [True]

    def read() -> int:
        if committing.pop():
            scene.commit()  # after its answer is made
        return scene._read()

    generation = Generation(scene.commits, read, lambda: scene.now)
    generation()
    scene.version += 1
    committing.append(False)
    assert generation() == scene.version


def test_after_a_death_within_a_commit_sqlite_is_asked_until_the_next_one(scene: Scene) -> None:
    with lock_path(scene.path).open("r+b") as file:
        file.write((3).to_bytes(COUNT_BYTES, sys.byteorder))
    assert [scene.asks(), scene.asks()] == [True, True]
    other = WriteLock(scene.path)
    with other.hold(), other.count_commit():
        pass
    other.close()
    assert scene.commits.cell[0] == 6
    assert [scene.asks(), scene.asks()] == [True, False]


def test_a_failed_commit_is_counted_too(scene: Scene) -> None:
    scene.asks()
    with pytest.raises(apsw.FullError), scene.lock.hold(), scene.lock.count_commit():
        raise apsw.FullError
    assert [scene.asks(), scene.asks()] == [True, False]


def test_a_program_that_does_not_count_is_noticed_soon(scene: Scene) -> None:
    scene.asks()
    scene.version += 1
    scene.now += RECHECK_S
    assert [scene.asks(), scene.asks()] == [True, False]


def test_nothing_is_committed_when_the_count_cannot_be_written(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space"), scene.lock.hold(), scene.lock.count_commit():
        pytest.fail("the commit was made")


def test_the_count_keeps_its_size(scene: Scene) -> None:
    for _ in range(3):
        scene.commit()
    assert lock_path(scene.path).stat().st_size == COUNT_BYTES
    assert scene.commits.cell[0] == 8


async def test_a_commit_by_another_program_changes_the_generation_soon(tmp_path: Path) -> None:
    case = SqliteCase(tmp_path)
    catalog = await case.another()
    await catalog.write(settings.increment, "serial")
    before = catalog.generation()
    other = apsw.Connection(str(case.path))
    other.execute("UPDATE setting SET value = '9' WHERE key = 'serial'")
    other.close()
    catalog._generation._recheck_at = 0.0  # as after RECHECK_S
    assert catalog.generation() != before
    await case.stop()
