"""What becomes of commands and queries when connections break, other nodes stop, or the server is away."""

import os
import socket
import traceback
from contextlib import suppress

import psycopg
import pytest
import pytest_twisted
from twisted.internet import reactor
from twisted.internet.defer import gatherResults

from pkgrepo.errors import Invalid, StorageFailed
from pkgrepo.storage.catalog.engine.connections import CatalogUnusable
from pkgrepo.storage.catalog.engine.schema import Migration, Schema, load_schema
from pkgrepo.storage.catalog.postgresql import Address, PostgresCatalog, batches, changes, reading_once, sessions
from pkgrepo.storage.catalog.postgresql.batches import LOCK
from pkgrepo.storage.catalog.postgresql.sessions import PACE, Pace
from pkgrepo.storage.catalog.server import settings
from tests.support.inprocess_server import turn
from tests.support.postgresql import postgresql_server
from tests.support.postgresql_catalogs import Databases, PostgresCase

NOWHERE = Address("postgresql://127.0.0.1:1/none")


@pytest.fixture
def url(databases):
    with databases.another() as url:
        yield url


@pytest.fixture
def case(url):
    return PostgresCase(url)


@pytest_twisted.async_yield_fixture
async def catalog(case):
    yield await case.another()
    await case.stop()


def break_connections(url):
    """End all connections to the database, as a restart of the server does."""
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


@pytest.fixture
def break_at_commit(monkeypatch):
    """Make the connection of the next batch break at its COMMIT: before it is sent, or after it was made."""

    def arrange(*, made):
        pending, commit = [True], batches.commit

        def breaking(session):
            if not pending:
                return commit(session)
            pending.clear()
            if made:
                commit(session)
            with socket.socket(fileno=os.dup(session.fileno())) as connection:
                connection.shutdown(socket.SHUT_RDWR)
            return session.execute("SELECT 1").rowcount

        monkeypatch.setattr(batches, "commit", breaking)

    return arrange


async def test_commands_and_queries_after_broken_connections_use_new_ones(catalog, url):
    assert await catalog.write(settings.increment, "serial") == 1
    await gatherResults([catalog.look(settings.get, "serial"), catalog.scan(settings.get, "serial")])
    break_connections(url)
    assert await catalog.look(settings.get, "serial") == "1"
    assert await catalog.scan(settings.get, "serial") == "1"
    assert await catalog.write(settings.increment, "serial") == 2


async def test_a_command_whose_connection_breaks_fails_and_the_next_succeeds(catalog, url):
    def breaking(tx):
        settings.put(tx, "half", "x")
        break_connections(url)
        settings.put(tx, "other half", "x")

    first, second = catalog.write(breaking), catalog.write(settings.increment, "serial")
    with pytest.raises(StorageFailed):
        await first
    with suppress(StorageFailed):  # it is in the same transaction, or in the next
        await second
    assert await catalog.look(settings.get, "half") is None
    assert await catalog.write(settings.put, "next", "x") is None


async def test_a_commit_that_was_made_before_its_connection_broke_is_answered_as_made(catalog, break_at_commit):
    break_at_commit(made=True)
    before = catalog.generation()
    assert await catalog.write(settings.increment, "serial") == 1
    assert catalog.generation() != before
    assert await catalog.look(settings.get, "serial") == "1"


async def test_a_fault_of_the_writer_fails_its_commands_and_the_next_ones_succeed(catalog, monkeypatch):
    pending, commit = [RuntimeError("unexpected")], batches.commit

    def faulty(session):
        if pending:
            raise pending.pop()
        return commit(session)

    monkeypatch.setattr(batches, "commit", faulty)
    with pytest.raises(StorageFailed) as refused:
        await catalog.write(settings.put, "lost", "x")
    assert isinstance(refused.value.__cause__, RuntimeError)
    assert await catalog.write(settings.increment, "serial") == 1
    assert await catalog.look(settings.get, "lost") is None


async def test_a_commit_that_was_not_made_fails(catalog, break_at_commit):
    break_at_commit(made=False)
    with pytest.raises(StorageFailed):
        await catalog.write(settings.increment, "serial")
    assert await catalog.look(settings.get, "serial") is None
    assert await catalog.write(settings.increment, "serial") == 1


async def test_a_commit_that_a_crash_lost_is_not_taken_for_another_one_of_its_number(monkeypatch):
    with postgresql_server() as server, Databases(server.address) as databases, databases.another() as url:
        catalog = await PostgresCase(url).another()
        commit = batches.commit

        def crash(session):
            """Kill the server, start it again, and commit until the number of the transaction was used."""
            monkeypatch.setattr(batches, "commit", commit)
            (lost,) = session.execute("SELECT pg_current_xact_id()::text").fetchone()
            server.kill()
            server.restart()
            with psycopg.connect(url, autocommit=True) as other:
                while int(other.execute("SELECT pg_current_xact_id()::text").fetchone()[0]) < int(lost):
                    pass
            return commit(session)

        monkeypatch.setattr(batches, "commit", crash)
        try:
            with pytest.raises(StorageFailed):
                await catalog.write(settings.increment, "serial")
            assert await catalog.look(settings.get, "serial") is None
        finally:
            await catalog.stop()


async def test_a_node_that_stops_within_its_turn_loses_it(url):
    catalog = await PostgresCase(url).another()
    try:
        with sessions.open_writer(Address(url), idle_in_transaction_ms=100) as stopped:
            stopped.execute("BEGIN")
            stopped.execute("SELECT pg_advisory_xact_lock($1)", (LOCK,))
            assert await catalog.write(settings.increment, "serial") == 1
            with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
                stopped.execute("COMMIT")
    finally:
        await catalog.stop()


async def test_conflicts_with_other_programs_are_tried_again(catalog, monkeypatch):
    conflicts = [psycopg.errors.DeadlockDetected(), psycopg.errors.SerializationFailure()]

    def conflicting(tx):
        number = settings.increment(tx, "serial")
        if conflicts:
            raise conflicts.pop()
        return number

    assert await catalog.write(conflicting) == 1
    assert await catalog.look(settings.get, "serial") == "1"
    conflicts[:] = [psycopg.errors.DeadlockDetected() for _ in range(PACE.attempts)]
    with pytest.raises(StorageFailed):
        await catalog.write(conflicting)
    assert not conflicts


async def test_a_refusal_by_the_server_fails_its_batch_and_the_next_succeeds(catalog, url):
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("ALTER TABLE catalog_state RENAME TO elsewhere")
        with pytest.raises(StorageFailed):
            await catalog.write(settings.increment, "serial")
        session.execute("ALTER TABLE elsewhere RENAME TO catalog_state")
    assert await catalog.write(settings.increment, "serial") == 1


async def test_memory_is_trusted_for_a_while_without_the_server_and_then_no_more(catalog, monkeypatch):
    def refuse(_address):
        raise psycopg.OperationalError("away")

    before = catalog.generation()
    assert catalog.generation() == before
    monkeypatch.setattr(changes, "open_listener", refuse)
    catalog._changes._trusted_until = 0.0  # as after ``trusted_s`` without an answer
    catalog._changes._pace = Pace(trusted_s=-1.0)
    first = catalog.generation()
    assert first != before
    assert catalog.generation() != first


async def test_a_lost_notification_is_noticed(case, catalog, url):
    before = catalog.generation()
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("UPDATE catalog_state SET commits = commits + 1")
    while catalog.generation() == before:
        await turn()


async def test_a_text_with_nul_is_refused(catalog):
    with pytest.raises(Invalid, match="NUL"):
        await catalog.write(settings.put, "key", "a\0b")
    with pytest.raises(Invalid, match="NUL"):
        await catalog.look(settings.get, "a\0b")
    assert await catalog.write(settings.increment, "serial") == 1


async def test_a_server_that_cannot_be_reached_prevents_the_start():
    with pytest.raises(CatalogUnusable, match="cannot be used"):
        await PostgresCatalog(NOWHERE, reactor=reactor).start()
    with pytest.raises(CatalogUnusable, match="cannot be read"), reading_once(NOWHERE):
        pass


async def test_a_database_of_another_program_is_refused(databases):
    with databases.another() as url:
        with psycopg.connect(url, autocommit=True) as session:
            session.execute("DROP TABLE catalog_state")
        with pytest.raises(CatalogUnusable, match="another program"):
            await PostgresCatalog(Address(url), reactor=reactor).start()


async def test_a_newer_database_is_refused_and_an_older_one_is_upgraded(case, url):
    schema = load_schema()
    last = schema.version
    more = Migration(last + 1, "more", "CREATE TABLE more (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    changed = Schema(schema.sql, (*schema.migrations, more))
    newer = PostgresCatalog(Address(url), reactor=reactor, schema=changed)
    await newer.start()
    await newer.stop()
    with pytest.raises(CatalogUnusable, match=f"newer pkgrepo .schema {last + 1}"):
        await case.another()


async def test_a_database_from_before_the_first_release_is_refused_and_left_alone(case, url):
    with psycopg.connect(url, autocommit=True) as session:
        session.execute("UPDATE catalog_state SET version = 64")
        with pytest.raises(CatalogUnusable, match=r"before the first release \(schema 64\).*pkgrepo import pkgrepo"):
            await case.another()
        assert session.execute("SELECT version FROM catalog_state").fetchall() == [(64,)]


async def test_the_catalog_is_read_without_a_start(catalog, url, databases):
    await catalog.write(settings.put, "key", "value")
    with reading_once(Address(url)) as reader:
        assert reader is not None
        assert settings.get(reader, "key") == "value"
    with databases.another(empty=True) as empty, reading_once(Address(empty)) as reader:
        assert reader is None


def test_a_password_is_not_shown():
    assert "hunter2" not in repr(Address("postgresql://somewhere/", "hunter2"))


@pytest.mark.parametrize("rest", ["u@h/db?passwrd=hunter2", "u@h/db?application_name=hunter2%", "u:hunter2@[h"])
def test_an_address_that_is_not_valid_is_not_shown(rest):
    with pytest.raises(CatalogUnusable, match="not valid") as caught, reading_once(Address(f"postgresql://{rest}")):
        pass
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
