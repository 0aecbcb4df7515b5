"""News as notifications: texts of a bounded length."""

from __future__ import annotations

import os

import pytest

from pkgrepo.storage.catalog.postgresql.nodes import MOST_SENDERS, NewsParts

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
