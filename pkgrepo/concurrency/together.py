"""Several works at a time, all of which are waited for, also when one fails."""

from __future__ import annotations

from collections.abc import AsyncIterable, Coroutine, Iterable
from typing import Any, TypeVar

from twisted.internet.defer import Deferred, DeferredList

T = TypeVar("T")


async def together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of some works, after all of them. :raises Exception: the first error, in their order"""
    found: list[Any] = await DeferredList([Deferred.fromCoroutine(each) for each in works], consumeErrors=True)
    for succeeded, result in found:
        if not succeeded:
            result.raiseException()
    return [result for _, result in found]


async def in_batches(works: AsyncIterable[Coroutine[Any, Any, object]], size: int) -> None:
    """Do works, ``size`` at a time, each batch when the one before is done. :raises Exception: as ``together`` does"""
    waiting: list[Coroutine[Any, Any, object]] = []
    async for each in works:
        waiting.append(each)
        if len(waiting) == size:
            await together(waiting)
            waiting = []
    await together(waiting)
