"""Who is asked after an answer of another one."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred

from pkgrepo.errors import NotFound, PkgrepoError, UpstreamDenied, UpstreamFailed
from pkgrepo.proxy.caching.search_order import Place, RouteSearch, SearchOrder
from pkgrepo.proxy.trace import Trace
from pkgrepo.proxy.upstream.routes import Route
from tests.support.repositories import FixedClock

DOWN = UpstreamFailed("a", "it is down")
DENIED = UpstreamDenied("a", "it is malware")


@pytest.mark.parametrize(
    ("same", "known", "only_known", "ended"),
    [(False, False, True, False), (False, True, True, True), (True, False, False, False), (True, True, False, False)],
)
def test_a_failure_ends_the_search_or_limits_it_to_known_ones(
    same: bool, known: bool, only_known: bool, ended: bool
) -> None:
    order = SearchOrder(same=same)
    assert (order.only_known, order.ended) == (False, False)
    order.fail(DOWN, known=known)
    assert (order.only_known, order.ended) == (only_known, ended)
    assert order.failure is DOWN


@pytest.mark.parametrize("same", [False, True])
def test_a_refusal_is_a_decision_also_after_a_failure(same: bool) -> None:
    order = SearchOrder(same=same)
    order.fail(DOWN)
    order.fail(DENIED)
    assert (order.ended, order.failure) == (True, DENIED)


def test_the_first_failure_is_told() -> None:
    order = SearchOrder()
    order.fail(DOWN)
    order.fail(UpstreamFailed("b", "it is down, too"))
    assert order.failure is DOWN


ABSENT = NotFound("file", "a")


class Search:
    """A search of ``places``, each a route and perhaps a name there; each answers what ``says`` has for it."""

    def __init__(self, *places: str, known: str = "", same: bool = False, **says: Any) -> None:
        routes = {each[0]: Route(each[0], f"http://{each[0]}.example") for each in places}
        self.trace = Trace()
        self.asked: list[str] = []
        self.says = says
        self.search = RouteSearch(
            [Place(1, routes[each[0]], each[1:]) for each in places],
            self.trace,
            FixedClock(),
            order=SearchOrder(same=same),
            is_known=lambda place: place.route.name == known,
        )

    async def _ask(self, place: Place) -> str:
        name = place.route.name + place.name
        self.asked.append(name)
        said = self.says.get(name, ABSENT)
        if isinstance(said, PkgrepoError):
            raise said
        self.place = place
        return str(said)

    def run(self) -> Any:
        """What it finds, or the error."""
        found: list[Any] = []
        Deferred.fromCoroutine(self.search.first(self._ask, ABSENT)).addBoth(found.append)
        return getattr(found[0], "value", found[0])

    @property
    def steps(self) -> str:
        return " ".join(f"{each.route}{each.what}:{each.step}" for each in self.trace.steps)


@pytest.mark.parametrize(
    ("search", "found", "asked", "steps"),
    [
        (Search("a", "b", b="b's"), "b's", "ab", "a:absent"),
        (Search("a", "b"), ABSENT, "ab", "a:absent b:absent"),
        (Search("a", "b", "c", a=DOWN), DOWN, "a", "a:failed b:withheld c:withheld"),
        (Search("a", "b", "c", a=DOWN, c="c's", known="c"), "c's", "ac", "a:failed b:withheld"),
        (Search("a", "b", "c", a=DOWN, b=DENIED, c="c's", same=True), DENIED, "ab", "a:failed b:denied"),
        (Search("a", "b", a=DOWN, b="b's", same=True), "b's", "ab", "a:failed"),
        (Search("a", "b", a=DOWN, b="b's", known="a"), DOWN, "a", "a:failed"),
        (Search("a", "b", a=DENIED, b="b's", known="b"), DENIED, "a", "a:denied"),
        (Search("a1", "b", "a2", a1=DOWN, a2="a's", same=True), DOWN, "a1b", "a1:failed b:absent"),
    ],
)
def test_routes_are_asked_in_their_order_until_one_has_it(search: Search, found: Any, asked: str, steps: str) -> None:
    assert search.run() == found
    assert ("".join(search.asked), search.steps) == (asked, steps)


def test_a_search_goes_on_where_it_was() -> None:
    search = Search("a", "b", a="a's", b="b's", same=True)
    assert (search.run(), search.run()) == ("a's", "a's"), "the same route is asked again"
    assert search.search.leave(search.place, DOWN)
    assert search.run() == "b's"
    assert not search.search.leave(search.place, UpstreamFailed("b", "it breaks off"))
    assert search.run() is DOWN
    assert "".join(search.asked) == "aab"
