"""Questions to upstreams that are asked once for all who wait, and whose steps all of them get."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from attrs import frozen

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import PkgrepoError
from pkgrepo.model import Repository
from pkgrepo.proxy.trace import Trace
from pkgrepo.proxy.upstream.routes import refuse_proxy_loop

T = TypeVar("T")


@frozen
class _Ended(Generic[T]):
    """The steps of a question, and its answer or the error instead."""

    steps: Sequence[Mapping[str, Any]]
    answer: T | None = None
    error: PkgrepoError | None = None


class TracedFlight(Generic[T]):
    """The questions under way, by repository and key."""

    def __init__(self) -> None:
        self._flight: SingleFlight[tuple[int, str], _Ended[T]] = SingleFlight()

    async def run(self, repository: Repository, key: str, work: Callable[[Trace], Awaitable[T]], trace: Trace) -> T:
        """
        What ``work`` answers or raises; the steps that it adds to its trace are added to ``trace``, too.

        :raises UpstreamLoop: this request has passed the repository before
        """
        refuse_proxy_loop(repository.id, repository.path)

        async def traced() -> _Ended[T]:
            own = Trace()
            try:
                answer = await work(own)
            except PkgrepoError as error:
                return _Ended(own.store(), error=error)
            return _Ended(own.store(), answer)

        ended = await self._flight.run((repository.id, key), traced)
        trace.recall(repository.path, ended.steps)
        if ended.error is not None:
            raise ended.error.with_traceback(None)
        return ended.answer  # type: ignore[return-value]  # None only if that is what the work returns
