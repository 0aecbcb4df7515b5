"""The pages of sorted lists, put together, are the whole list, in every order; those of versions need no sorting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from pkgrepo.model import Actor, TokenKind
from pkgrepo.storage.catalog.orders import Order, both_ways
from pkgrepo.storage.catalog.packages import summaries
from pkgrepo.storage.catalog.people import projects, tokens, users
from pkgrepo.storage.catalog.server import audit, jobs
from tests.support.catalog import MemoryCatalog


@pytest.fixture
def catalog() -> MemoryCatalog:
    return MemoryCatalog()


def add_users(catalog: Any) -> None:
    for at, name in enumerate(("bob", "ada", "cyd")):
        user = catalog.do(users.add_user, username=name, name="same", now_ms=at // 2)
        if at:
            catalog.do(users.record_login, user.id, now_ms=9)


def add_projects(catalog: Any) -> None:
    for at, key in enumerate(("b", "a", "c")):
        catalog.do(projects.add_project, key=key, now_ms=at // 2)


def add_tokens(catalog: Any) -> None:
    user = catalog.do(users.add_user, username="ada", now_ms=1)
    for at, name in enumerate(("b", "a", "a")):
        catalog.do(
            tokens.add_token, user_id=user.id, hash=b"%d" % at, shown="", kind=TokenKind.PERSONAL, name=name, now_ms=at
        )


def add_jobs(catalog: Any) -> None:
    for at, kind in enumerate(("gc", "rebuild", "gc")):
        job = catalog.do(
            jobs.begin_job, uid=f"{at}", kind=kind, key=f"{at}", data={}, holder="me", until_ms=9, now_ms=at
        )
        if at:
            catalog.do(jobs.end_job, job.uid, "me", state="done", result={}, progress=[], now_ms=7)


def add_entries(catalog: Any) -> None:
    for at in range(3):
        catalog.do(audit.append_entry, audit.Entry(Actor(), "a"), at)


LISTS: Mapping[str, tuple[Callable[[Any], None], Callable[..., Any], Mapping[str, Order[Any]]]] = {
    "users": (add_users, users.list_users, users.USER_ORDERS),
    "projects": (add_projects, projects.list_projects, projects.PROJECT_ORDERS),
    "tokens": (add_tokens, lambda r, **how: tokens.list_tokens(r, 1, **how), tokens.TOKEN_ORDERS),
    "jobs": (add_jobs, jobs.list_jobs, jobs.JOB_ORDERS),
    "audit": (add_entries, audit.list_audit, audit.AUDIT_ORDERS),
}


@pytest.mark.parametrize(("name", "order"), [(name, order) for name, (_, _, some) in LISTS.items() for order in some])
def test_pages_are_the_whole_list(catalog: Any, name: str, order: str) -> None:
    add, listed, known = LISTS[name]
    add(catalog)
    every = catalog.peek(listed, order=order)
    positions = [known[order].position(each) for each in every]
    assert (len(every), positions) == (3, sorted(positions, reverse=order.startswith("-")))
    paged: list[Any] = []
    after: tuple[Any, ...] = ()
    while found := catalog.peek(listed, after=after, limit=1, order=order):
        paged += found
        after = known[order].position(found[0])
    assert paged == every


def test_an_order_has_a_condition_and_a_position() -> None:
    found = both_ways({"size": [("f.size", int, lambda each: each[0]), ("f.path", str, lambda each: each[1])]})
    assert list(found) == ["size", "-size"]
    order = found["-size"]
    assert (order.beyond, order.by) == ("(f.size, f.path) < (?, ?)", "f.size DESC, f.path DESC")
    assert order.place((3, "a")) == ("-size", 3, "a")


@pytest.mark.parametrize("order", summaries.VERSION_ORDERS)
def test_versions_are_read_in_the_order_of_an_index(catalog: Any, order: str) -> None:
    steps: list[str] = []

    class Planned:
        """A reader that asks for the plan of each query."""

        def __init__(self, reader: Any) -> None:
            self._reader = reader

        def all(self, sql: str, parameters: Any) -> list[Any]:
            steps.extend(str(row[3]) for row in self._reader.all(f"EXPLAIN QUERY PLAN {sql}", parameters))
            return []

    after = (1, "a") if "published" in order else (b"a", "a")
    catalog.peek(lambda r: summaries.list_version_summaries(Planned(r), 1, after=after, order=order))
    index = "version_published" if "published" in order else "version_order"
    assert any(f" v USING INDEX {index} " in each for each in steps), steps
