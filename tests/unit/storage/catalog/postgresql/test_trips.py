"""Trips to the server: which statements travel together, and whose error is whose."""

import re

import psycopg
import pytest
from psycopg.pq import Trace

from pkgrepo.errors import Invalid
from pkgrepo.storage.catalog.engine.snapshots import Snapshots
from pkgrepo.storage.catalog.postgresql import Address, sessions
from pkgrepo.storage.catalog.postgresql.batches import BEGIN, commit
from pkgrepo.storage.catalog.postgresql.transactions import (
    MOST_WAITING,
    PostgresReader,
    PostgresTransaction,
)

PUT = "INSERT INTO setting (key, value) VALUES (?, '')"
KEYS = "SELECT key FROM setting WHERE key LIKE 'trip%' ORDER BY key"


@pytest.fixture
def session(databases):
    with databases.another() as url, sessions.open_writer(Address(url)) as session:
        yield session


@pytest.fixture
def trips(session, tmp_path):
    """Return a function that gives how often the server was waited for since its last call."""
    session.prepare_threshold = None  # a statement that is prepared costs one more, once
    path = tmp_path / "trace"
    with path.open("wb") as trace:
        session.pgconn.trace(trace.fileno())
        session.pgconn.set_trace_flags(Trace.SUPPRESS_TIMESTAMPS)
        seen = 0

        def count():
            nonlocal seen
            before, seen = seen, len(re.findall(r"^F\s.*\b(?:Sync|Query)\b", path.read_text(), re.MULTILINE))
            return seen - before

        yield count
        session.pgconn.untrace()


@pytest.fixture
def tx(session):
    """A transaction within the first command of a batch."""
    session.execute(BEGIN)
    tx = PostgresTransaction(session)
    tx.begin_command()
    return tx


def keys(reader):
    return [key for (key,) in reader.all(KEYS)]


def test_statements_without_a_result_travel_with_the_next_and_run_before_it(tx, trips):
    trips()
    for number in range(5):
        tx.send(PUT, (f"trip{number}",))
    assert trips() == 0
    assert keys(tx) == [f"trip{number}" for number in range(5)]
    assert trips() == 1
    tx.send(PUT, ("trip5",))
    tx.end_command()
    assert trips() == 1
    assert commit(tx.connection) == 1
    assert trips() == 1
    assert keys(PostgresReader(tx.connection))[-1] == "trip5"


def test_a_command_of_no_statement_costs_no_trip(tx, trips):
    trips()
    tx.end_command()
    tx.begin_command()
    tx.undo_command()
    assert trips() == 0


def test_what_waits_is_bounded(tx, trips):
    trips()
    for number in range(10 * MOST_WAITING):
        tx.send(PUT, (f"trip{number}",))
        assert len(tx._waiting) < MOST_WAITING
    assert trips() == 10
    assert len(keys(tx)) == 10 * MOST_WAITING


@pytest.mark.parametrize("end", ["a query", "the end"])
def test_a_sent_statement_that_fails_undoes_its_command_alone(tx, end):
    tx.send(PUT, ("trip1",))
    tx.end_command()
    tx.begin_command()
    tx.send(PUT, ("trip2",))
    tx.send(PUT, ("trip1",))
    tx.send(PUT, ("trip3",))
    with pytest.raises(psycopg.errors.UniqueViolation):
        keys(tx) if end == "a query" else tx.end_command()
    tx.undo_command()
    tx.begin_command()
    tx.send(PUT, ("trip4",))
    tx.end_command()
    commit(tx.connection)
    assert keys(PostgresReader(tx.connection)) == ["trip1", "trip4"]


def test_a_command_that_is_undone_does_not_run_what_waits(tx):
    tx.execute(PUT, ("trip1",))
    tx.send(PUT, ("trip1",))  # would fail
    tx.undo_command()
    tx.begin_command()
    with pytest.raises(Invalid, match="NUL"):
        tx.all(KEYS.replace("'trip%'", "?"), ("a\0b",))  # after the savepoint was sent
    tx.undo_command()
    assert keys(tx) == []


def test_a_query_of_one_statement_is_one_trip(session, trips):
    reader, snapshots = PostgresReader(session), Snapshots()
    trips()
    assert snapshots.run(reader, "keys", keys) == []
    assert trips() == 1


def test_a_longer_query_runs_again_in_a_transaction_and_from_then_on_at_once(session, trips):
    runs = []

    def longer(reader):
        runs.append(reader)
        try:
            return [reader.one("SELECT pg_current_snapshot()::text"), reader.one("SELECT pg_current_snapshot()::text")]
        except Exception:  # noqa: BLE001 - such a handler must not see how it is run again
            pytest.fail("the query saw an exception")

    reader, snapshots = PostgresReader(session), Snapshots()
    session.execute("SET default_transaction_isolation = 'repeatable read'")
    trips()
    first, second = snapshots.run(reader, "longer", longer)
    assert first == second
    assert (trips(), len(runs)) == (5, 2)  # one in vain, BEGIN, two, ROLLBACK
    snapshots.run(reader, "longer", longer)
    assert (trips(), len(runs)) == (4, 3)
