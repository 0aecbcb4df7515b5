"""Several works at a time, all of which are waited for, also when one fails."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from typing import Any

from twisted.internet.defer import Deferred, DeferredList


async def together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do some works at a time, and wait for all of them. :raises Exception: the first error, in their order"""
    found: list[Any] = await DeferredList([Deferred.fromCoroutine(each) for each in works], consumeErrors=True)
    for succeeded, result in found:
        if not succeeded:
            result.raiseException()
