import errno
import os

import apsw
import pytest

from pkgrepo.errors import StorageFailed, StorageFull, TooManyOpenFiles
from pkgrepo.storage.catalog.engine.connections import (
    CatalogUnusable,
    SqliteReader,
    check_library,
    explain,
    limit_page_caches,
    open_reader,
    open_writer,
)
from pkgrepo.storage.catalog.engine.schema import load_schema, upgrade
from pkgrepo.storage.catalog.packages.files import find_file


@pytest.mark.parametrize("version", ["3.51.2", "3.50.9", "3.40.1", "2.99.99"])
def test_a_library_that_can_corrupt_the_file_is_refused(version):
    with pytest.raises(CatalogUnusable, match=r"3\.51\.3"):
        check_library(version)


@pytest.mark.parametrize("version", ["3.51.3", "3.52.0", "4.0.0", None])
def test_a_recent_library_is_accepted(version):
    check_library(version)


def test_a_writer_waits_for_the_disk_and_checks_references(tmp_path):
    connection = open_writer(tmp_path / "x.db")
    connection.execute("CREATE TABLE t (id INTEGER)")
    found = {
        name: connection.pragma(name)
        for name in ("page_size", "journal_mode", "synchronous", "foreign_keys", "wal_autocheckpoint")
    }
    assert found == {
        "page_size": 8192,
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "wal_autocheckpoint": 0,
    }


def test_a_reader_cannot_write(tmp_path):
    open_writer(tmp_path / "x.db").execute("CREATE TABLE t (id INTEGER)")
    with pytest.raises(apsw.ReadOnlyError):
        open_reader(tmp_path / "x.db").execute("INSERT INTO t VALUES (1)")


def test_queries_are_not_planned_again(tmp_path):
    path = tmp_path / "x.db"
    upgrade(open_writer(path), path, load_schema())
    reader, planned = open_reader(path), []

    def authorize(*what):
        planned.append(what)
        return apsw.SQLITE_OK

    reader.authorizer = authorize  # asked whenever a statement is prepared
    reader = SqliteReader(reader)
    find_file(reader, 1, "first")
    assert planned
    planned.clear()
    for n in range(5):
        find_file(reader, 1, f"{n}")
    assert planned == []


def test_page_caches_reuse_their_pages_when_memory_is_limited(tmp_path):
    connection = open_writer(tmp_path / "x.db")
    connection.execute("CREATE TABLE t (data BLOB)")
    with connection:
        connection.executemany("INSERT INTO t VALUES (randomblob(?))", [(1000,)] * 10_000)
    used = []
    try:
        for room in (None, 2 * 2**20):
            connection.close()
            connection = open_writer(tmp_path / "x.db")
            limit_page_caches(0 if room is None else apsw.memory_used() + room)
            connection.execute("SELECT sum(length(data)) FROM t WHERE data > x'80'").fetchall()
            used.append(connection.status(apsw.SQLITE_DBSTATUS_CACHE_USED)[0])
    finally:
        limit_page_caches(0)
        connection.close()
    assert used[0] > 1000 * 10_000
    assert used[1] < used[0] / 4


def test_a_file_that_cannot_be_opened_is_explained_by_the_descriptors(monkeypatch):
    assert type(explain(apsw.CantOpenError("unable to open database file"))) is StorageFailed

    def no_descriptor(*_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "open", no_descriptor)
    assert type(explain(apsw.CantOpenError("unable to open database file"))) is TooManyOpenFiles
    assert type(explain(OSError(errno.EMFILE, "too many"))) is TooManyOpenFiles
    assert type(explain(apsw.FullError("full"))) is StorageFull
    assert type(explain(apsw.IOError("broken"))) is StorageFailed
