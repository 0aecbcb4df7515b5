"""Who is asked after an answer of another one."""

from __future__ import annotations

import pytest

from pkgrepo.errors import UpstreamDenied, UpstreamFailed
from pkgrepo.proxy.search_order import SearchOrder

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
