"""Queries of one statement run without a transaction, longer ones in one snapshot."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.engine.connections import SqliteReader, SqliteTransaction, open_reader, open_writer
from pkgrepo.storage.catalog.engine.snapshots import Snapshots, source_of

COUNT = "SELECT COUNT(*) FROM t"


@pytest.fixture
def writer(tmp_path: Path) -> SqliteTransaction:
    tx = SqliteTransaction(open_writer(tmp_path / "db"))
    tx.execute("CREATE TABLE t (x)")
    return tx


@pytest.fixture
def reader(writer: SqliteTransaction, tmp_path: Path) -> SqliteReader:
    return SqliteReader(open_reader(tmp_path / "db"))


def count(r: Reader) -> int:
    """How many rows there are."""
    return int(str((r.one(COUNT) or (0,))[0]))


def counting(r: Reader, wanted: int) -> bool:
    """The same with a parameter."""
    return count(r) == wanted


def test_a_query_of_one_statement_begins_no_transaction(reader: SqliteReader, writer: SqliteTransaction) -> None:
    snapshots, begun = Snapshots(), list[bool]()

    def query(r: Reader) -> int:
        found = count(r)
        begun.append(reader.connection.in_transaction)
        return found

    assert snapshots.run(reader, "code", query) == 0
    writer.execute("INSERT INTO t VALUES (1)")
    assert snapshots.run(reader, "code", query) == 1
    assert begun == [False, False]


def test_a_longer_query_reads_one_snapshot_from_the_first_time_on(
    reader: SqliteReader, writer: SqliteTransaction
) -> None:
    snapshots, runs = Snapshots(), list[object]()

    def query(r: Reader) -> tuple[int, int]:
        runs.append(r)
        first = count(r)
        writer.execute("INSERT INTO t VALUES (1)")
        return first, count(r)

    first, second = snapshots.run(reader, "code", query)
    assert (first, second) == (1, 1)  # it was run in vain once, and saw nothing of that afterwards
    assert len(runs) == 2
    assert snapshots.run(reader, "code", query) == (2, 2)
    assert len(runs) == 3
    assert not reader.connection.in_transaction


def test_what_is_learnt_of_a_function_is_kept_once_however_it_is_called() -> None:
    def query(wanted: int) -> Callable[[Reader], bool]:
        return lambda r: counting(r, wanted)

    assert source_of(query(1)) is source_of(query(2)) is not source_of(count)
    assert source_of(partial(partial(counting), wanted=1)) is source_of(counting) is counting.__code__
    assert source_of("{}".format) is source_of("".format)
