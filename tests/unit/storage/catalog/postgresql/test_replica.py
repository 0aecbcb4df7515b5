"""Queries go to a replica of the database while it has the newest commit, and to the primary otherwise."""

import signal
from contextlib import suppress

import psycopg
import pytest
import pytest_twisted

from pkgrepo.errors import StorageFailed
from pkgrepo.storage.catalog.postgresql import replica
from pkgrepo.storage.catalog.postgresql.sessions import Pace
from pkgrepo.storage.catalog.server import settings
from tests.support.inprocess_server import until
from tests.support.postgresql import postgresql_server, replica_of
from tests.support.postgresql_catalogs import Databases, PostgresCase, replicated
from tests.support.timeouts import TIMEOUT_S


@pytest.fixture(scope="module")
def standby(primary):
    with replica_of(primary) as standby:
        yield standby


@pytest.fixture
def case(databases, standby):
    with databases.another() as url:
        yield replicated(url, standby, Pace(away_s=0.2))


@pytest_twisted.async_yield_fixture
async def catalog(case):
    yield await case.another()
    await case.stop()


@pytest.fixture
def logged(monkeypatch):
    """What failed, as the log has it."""
    found = []
    monkeypatch.setattr(replica.FailureLog, "failed", lambda _, error: found.append(error))
    return found


def is_replica(reader):
    return reader.one("SELECT pg_is_in_recovery()")[0]


def look_around(reader):
    return [reader.one("SELECT pg_is_in_recovery()")[0] for _ in range(3)]


def value(reader):
    return settings.get(reader, "key"), is_replica(reader)


def run(server, sql):
    with psycopg.connect(server.address, autocommit=True) as session:
        session.execute(sql)


async def until_asked(catalog):
    """Wait until the replica answers."""
    while not await catalog.look(is_replica):
        pass


async def test_queries_are_answered_by_the_replica(catalog):
    await until_asked(catalog)
    assert await catalog.look(look_around) == [True] * 3
    assert await catalog.scan(look_around) == [True] * 3


async def test_a_commit_is_visible_to_all_at_once(case, catalog):
    other = await case.another()
    answered = set()
    for number in range(100):
        await catalog.write(settings.put, "key", str(number))
        for each in (catalog, other):
            found, from_replica = await each.look(value)
            assert found == str(number)
            answered.add(from_replica)
        await until_asked(other)
    assert True in answered


async def test_a_replica_that_lags_is_not_read(catalog, standby):
    await catalog.write(settings.put, "key", "old")
    await until_asked(catalog)
    run(standby, "SELECT pg_wal_replay_pause()")
    try:
        await catalog.write(settings.put, "key", "new")
        for _ in range(20):
            assert await catalog.look(value) == ("new", False)
            assert await catalog.scan(value) == ("new", False)
    finally:
        run(standby, "SELECT pg_wal_replay_resume()")
    await until_asked(catalog)
    assert await catalog.look(value) == ("new", True)


async def test_a_replica_that_is_away_costs_no_query(catalog, standby, logged):
    await until_asked(catalog)
    standby.kill()
    assert not await catalog.look(is_replica)
    assert not await catalog.scan(is_replica)
    assert logged
    standby.restart()
    await until_asked(catalog)


async def test_a_replica_that_says_nothing_is_given_up(case, catalog, standby, logged):
    catalog._replica._pace = Pace(away_s=0.2, look_s=0.3)
    await until_asked(catalog)
    standby.signal(signal.SIGSTOP)
    try:
        assert not await catalog.look(is_replica)
        assert "said nothing" in str(logged[0])
        scan = catalog.scan(is_replica)
        await case.stop()  # it does not wait for that one
        assert not await scan
    finally:
        standby.signal(signal.SIGCONT)


async def test_a_replica_of_another_database_is_not_read(primary, databases, case, logged):
    with databases.another() as url, postgresql_server() as stranger:
        for address in (stranger.address, primary.address, url):
            logged.clear()
            wrong = PostgresCase(case.url, address)
            catalog = await wrong.another()
            assert not await catalog.look(is_replica)
            assert len(logged) == 1
            await wrong.stop()


async def test_without_the_primary_nothing_old_is_shown(case):
    trusting = Pace(trusted_s=TIMEOUT_S)
    with (
        postgresql_server() as primary,
        replica_of(primary) as standby,
        Databases(primary.address) as databases,
        databases.another() as url,
    ):
        replicas = replicated(url, standby, trusting)
        catalog = await replicas.another()
        await catalog.write(settings.put, "key", "kept")
        await until_asked(catalog)
        primary.kill()
        assert await catalog.look(value) == ("kept", True)  # what memory would answer, too
        catalog._changes._pace = Pace(trusted_s=-1.0)

        async def is_refused():
            catalog._changes._trusted_until = 0.0  # as after ``trusted_s`` without an answer
            with suppress(StorageFailed):
                return await catalog.look(value) != ("kept", True)
            return True

        while not await is_refused():
            pass
        catalog._changes._pace = trusting
        primary.restart()
        with suppress(StorageFailed):
            await until(lambda: catalog._changes.known_commit() is not None)
        await until_asked(catalog)
        await replicas.stop()
