"""Values that are made at their first use, once, in a thread."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Thread
from typing import Any

import pytest
from twisted.internet import reactor as _reactor
from twisted.internet.threads import deferToThreadPool

from pkgrepo.concurrency.late import Late

reactor: Any = _reactor


def in_thread(func: Callable[[], Any]) -> Any:
    return deferToThreadPool(reactor, reactor.getThreadPool(), func)


def test_it_is_made_once_by_several_threads() -> None:
    together, made, found = Barrier(4), list[object](), list[object]()

    def make() -> object:
        made.append(object())
        return made[-1]

    late = Late(make)

    def use() -> None:
        together.wait()
        found.append(late())

    threads = [Thread(target=use) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == made * 4


def test_what_is_made_may_need_another_one() -> None:
    first = Late(lambda: 1)
    assert Late(lambda: first() + 1)() == 2


def test_a_failure_is_tried_again() -> None:
    outcomes = iter([ImportError("not there"), "made"])

    def make() -> str:
        outcome = next(outcomes)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    late = Late(make)
    with pytest.raises(ImportError):
        late()
    assert not late.is_made
    assert (late(), late.is_made) == ("made", True)


async def test_callers_wait_for_the_thread_that_makes_it() -> None:
    late = Late(lambda: "made")
    assert await late.get(in_thread) == "made"
    assert late.is_made
    assert await late.get(lambda _: pytest.fail("it is there")) == "made"
