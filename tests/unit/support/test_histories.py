"""What the lab of faults calls a wrong history of a register, and what it does not."""

from __future__ import annotations

import time
from contextlib import suppress
from math import inf

import pytest

from tests.lab.faults.checkers.histories import History, Operation, disorder, stale_reads

FIRST = Operation("tag", "", -inf, -inf, answered=True)


def write(value: str, begun: float, ended: float) -> Operation:
    return Operation("tag", value, begun, ended, answered=ended < inf)


def read(value: str, begun: float, ended: float) -> Operation:
    return Operation("tag", value, begun, ended, write=False, answered=True)


A, B = write("a", 1, 2), write("b", 3, 4)
LOST = write("c", 5, inf)  # a write that had no answer


@pytest.mark.parametrize(
    ("operations", "stale"),
    [
        ([A, B, read("a", 2.5, 2.6)], []),
        ([A, B, read("a", 3.5, 3.6)], []),  # the second one has not ended
        ([A, B, read("a", 4.1, 4.2)], ["a"]),
        ([A, B, read("", 2.1, 2.2)], [""]),
        ([A, read("b", 2.5, 2.6), B], ["b"]),  # it was not written yet
        ([A, B, LOST, read("c", 9, 10)], []),
        ([A, B, LOST, read("b", 9, 10)], []),
        ([A, B, write("a", 5, 6), read("a", 7, 8)], []),
    ],
)
def test_reads_of_what_was_overwritten_are_stale(operations: list[Operation], stale: list[str]) -> None:
    assert [each.value for each in stale_reads([FIRST, *operations])] == stale


def test_a_node_may_lag_for_its_time() -> None:
    operations = [FIRST, A, B, read("a", 4.5, 4.6)]
    assert stale_reads(operations, lag_s=1) == []
    assert len(stale_reads(operations, lag_s=0.2)) == 1


@pytest.mark.parametrize(
    ("operations", "count"),
    [
        ([A, B, read("a", 1.5, 1.6), read("b", 3.5, 3.6)], 0),
        # Both are written at the same time, and who saw the one must not see the other again.
        ([write("a", 1, 9), write("b", 1, 9), read("a", 2, 3), read("b", 4, 5)], 0),
        ([write("a", 1, 9), write("b", 1, 9), read("a", 2, 3), read("b", 4, 5), read("a", 6, 7)], 1),
        # What was lost comes back.
        ([A, LOST, read("c", 6, 7), read("a", 8, 9), read("c", 10, 11)], 1),
        ([A, LOST, read("a", 6, 7)], 0),
    ],
)
def test_a_value_that_comes_back_is_no_order(operations: list[Operation], count: int) -> None:
    found = disorder([FIRST, *operations])
    assert (len(found) > 0) == (count > 0), found


def test_a_history_notes_what_had_no_answer() -> None:
    history = History()
    history.first("tag", "")
    with history.writing("tag", "a"):
        pass
    with pytest.raises(ConnectionError), history.writing("tag", "b"):
        raise ConnectionError
    begun = history.last("tag").begun
    history.read("tag", "a", begun)
    history.settle()
    history.read("tag", "b", history.last("tag").ended)
    assert (stale_reads(history.of("tag")), disorder(history.of("tag"))) == ([], [])
    history.read("tag", "", history.last("tag").ended)
    assert [each.value for each in stale_reads(history.of("tag"))] == [""]
    history.decided(history.last("tag"), "a")  # it did not take effect, so nothing explains its read
    assert sorted(each.value for each in stale_reads(history.of("tag"))) == ["", "b"]


def test_what_is_forgotten_explains_no_later_read() -> None:
    history = History()
    history.first("tag", "")
    for value in ("a", "b"):
        with history.writing("tag", value):
            pass
        history.read("tag", value, time.monotonic())
    with suppress(OSError), history.writing("tag", "c"):
        raise OSError
    history.forget(lag_s=60)
    assert [each.value for each in history.of("tag")] == ["", "a", "b", "c"], "a node may still serve them"
    history.settle()
    history.forget()
    assert [(each.value, each.answered) for each in history.of("tag")] == [("b", True), ("c", False)]
    for value in ("b", "c"):
        history.read("tag", value, time.monotonic())
    assert stale_reads(history.of("tag")) == []
    history.forget()
    assert [(each.value, each.answered) for each in history.of("tag")] == [("c", True)], "it was read"
    history.read("tag", "b", time.monotonic())
    assert [each.value for each in stale_reads(history.of("tag"))] == ["b"]


def test_a_write_without_an_answer_is_not_known_by_a_value_that_another_one_wrote() -> None:
    history = History()
    with history.writing("tag", "a"):
        pass
    with suppress(OSError), history.writing("tag", "a"):
        raise OSError
    history.settle()
    history.read("tag", "a", time.monotonic())
    history.forget()
    assert [each.answered for each in history.of("tag")] == [True, False]
