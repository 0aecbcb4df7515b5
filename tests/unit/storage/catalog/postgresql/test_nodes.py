"""The locks and the news of the processes of all nodes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import pytest_twisted
from twisted.internet import reactor as _reactor

from pkgrepo.errors import StorageFailed
from pkgrepo.storage.catalog.postgresql import Address, PostgresCatalog
from pkgrepo.storage.catalog.postgresql.nodes import MOST_SENDERS, NewsParts, Nodes
from tests.support.inprocess_server import until
from tests.support.postgresql_catalogs import Databases

reactor: Any = _reactor


@pytest.fixture
def url(databases: Databases) -> Iterator[str]:
    with databases.another() as url:
        yield url


@pytest_twisted.async_yield_fixture
async def make(url: str) -> Any:
    """Make what a process knows of the others."""
    made: list[Nodes] = []

    def make() -> Nodes:
        made.append(Nodes(Address(url), reactor))
        made[-1].start()
        return made[-1]

    yield make
    for each in made:
        await each.stop()


def end_connections(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"  # waits until they have ended
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


async def test_the_first_and_the_last_one_know_that_they_are(make: Any) -> None:
    one, other = make(), make()
    assert await one.enter()
    assert not await other.enter()
    assert [await each.count_others() for each in (one, other)] == [1, 1]
    assert not await one.leave()
    assert await other.leave()
    assert not await other.leave()
    assert not await one.enter()  # the last one stays present until its stop


async def test_one_at_a_time_has_the_right_to_work(make: Any) -> None:
    one, other = make(), make()
    assert [await one.hold_work(), await one.hold_work(), await other.hold_work()] == [True, True, False]
    await one.release_work()
    assert [await other.hold_work(), await one.hold_work()] == [True, False]
    await other.stop()
    while not await one.hold_work():  # the server notices the end of a connection a moment later
        pass


async def test_a_lost_connection_loses_the_right_and_restores_presence(make: Any, url: str) -> None:
    one, other = make(), make()
    await one.enter()
    assert await one.hold_work()
    end_connections(url)
    while not await other.hold_work():
        pass
    assert not await one.hold_work()  # with a new connection
    assert not await other.enter()
    end_connections(url)
    assert await one.count_others() == 0  # the other one has not noticed yet
    assert not await other.leave()
    assert await one.leave()


async def test_one_of_two_has_the_lease_of_a_name(make: Any, url: str) -> None:
    one, other = make(), make()
    assert [await one.acquire_lease("a"), await other.acquire_lease("a")] == [True, False]
    assert await other.acquire_lease("b")
    one.release_lease("a")
    one.release_lease("b")  # it has none
    assert not await one.acquire_lease("b")
    assert await other.acquire_lease("a")
    end_connections(url)
    assert await one.acquire_lease("a")
    other.release_lease("a")  # it has lost it
    assert not await other.acquire_lease("a")


async def test_databases_on_one_server_have_nothing_to_do_with_each_other(make: Any, databases: Databases) -> None:
    one = make()
    assert await one.enter()
    with databases.another() as url:
        stranger = Nodes(Address(url), reactor)
        stranger.start()
        try:
            assert await stranger.enter()
            assert await stranger.count_others() == 0
            assert await one.database() != await stranger.database()
        finally:
            await stranger.stop()


async def test_a_database_that_cannot_be_reached_gives_no_rights() -> None:
    nodes = Nodes(Address("postgresql://127.0.0.1:1/none"), reactor)
    nodes.start()
    try:
        assert not await nodes.hold_work()
        assert not await nodes.leave()
        assert await nodes.acquire_lease("a")  # whatever is fetched says what is wrong
        nodes.release_lease("a")
        nodes.send(b"nobody gets this")
        with pytest.raises(StorageFailed):
            await nodes.enter()
    finally:
        await nodes.stop()


async def test_news_reach_all_others(url: str) -> None:
    catalogs = [PostgresCatalog(Address(url), reactor=reactor) for _ in range(3)]
    received: list[list[bytes]] = [[] for _ in catalogs]
    for catalog, news in zip(catalogs, received, strict=True):
        catalog.nodes.subscribe(news.append)
        await catalog.start()
    try:
        for catalog in catalogs:
            await catalog.nodes.enter()
        news = [b"short", b"long" * 10_000]
        for each in news:
            catalogs[0].nodes.send(each)
        await until(lambda: all(len(each) == 2 for each in received[1:]))
        catalogs[2].nodes.mute()
        catalogs[0].nodes.send(b"late")
        await until(lambda: len(received[1]) == 3)
        assert received == [[], [*news, b"late"], news]
    finally:
        for catalog in catalogs:
            await catalog.stop()


def test_news_and_released_leases_are_given_up_when_the_process_ends() -> None:
    untyped: Any = Nodes
    nodes, calls = untyped(None, reactor), list[object]()
    nodes._thread = lambda *work: calls.append(work)
    nodes.send(b"news")
    nodes.release_lease("name")
    assert not calls


LARGEST = 8000  # bytes; a payload must be shorter (documentation of NOTIFY)


@pytest.mark.parametrize("size", [0, 1, 5_000, 5_700, 50_000])
def test_news_arrive_whole_at_others(size: int) -> None:
    here, there = NewsParts(), NewsParts()
    data = os.urandom(size)
    payloads = list(here.split(data))
    assert max(map(len, payloads)) < LARGEST
    assert [there.join(each) for each in payloads] == [None] * (len(payloads) - 1) + [data]
    assert [here.join(each) for each in payloads] == [None] * len(payloads)


def test_parts_of_several_senders_do_not_mix() -> None:
    one, other, there = NewsParts(), NewsParts(), NewsParts()
    pairs = zip(one.split(b"1" * 20_000), other.split(b"2" * 20_000), strict=True)
    found = [there.join(each) for pair in pairs for each in pair]
    assert found[-2:] == [b"1" * 20_000, b"2" * 20_000]
    assert not any(found[:-2])


def test_news_that_lack_their_end_do_not_spoil_the_next_ones() -> None:
    here, there = NewsParts(), NewsParts()
    first, *_ = here.split(os.urandom(20_000))
    assert there.join(first) is None
    assert [there.join(each) for each in here.split(b"next")] == [b"next"]


def test_unfinished_news_of_many_senders_are_bounded() -> None:
    there = NewsParts()
    for _ in range(MOST_SENDERS + 10):
        there.join(next(NewsParts().split(os.urandom(10_000))))
    assert len(there._unfinished) == MOST_SENDERS


@pytest.mark.parametrize("payload", ["", "x", "a b c d", "a 1 0 ***", "a 1 0 YQ==\x00", "a 1 0 YQ== more"])
def test_what_is_no_news_is_ignored(payload: str) -> None:
    assert NewsParts().join(payload) is None
