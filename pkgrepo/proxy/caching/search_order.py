"""
Who is asked for something, in order, and when the search ends: routes of a proxy, and members of a virtual repository.

============================  ========================================  ===============================================
an answer                     of one that is known to have had it       of another one
============================  ========================================  ===============================================
it has it                     it serves it                              it serves it
it does not have it           the next one is asked                     the next one is asked
it refuses (UpstreamDenied)   the search ends: that is a decision       the search ends
it fails                      the search ends: what it said before is   of those after it only known ones are asked:
                              better than what another one says         what another one has under this name could be
                                                                        of other people
... and all who have it       the next one is asked                     the next one is asked
have the same
============================  ========================================  ===============================================

All who have it have the same if the routes are replicas, if something is asked for by its digest, and if the answers of
all are joined.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from attrs import define, field, frozen

from pkgrepo.errors import NotFound, PkgrepoError, UpstreamDenied
from pkgrepo.proxy.caching.states import FAILURES
from pkgrepo.proxy.trace import StepKind, Trace, failed_step
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.clock import Clock

T = TypeVar("T")


@define(eq=False)
class SearchOrder:
    """
    One search. ``same``: all who have it have the same.

    ``failure`` is the refusal, or the first failure. The search has ``ended`` by it: nobody else is asked.
    """

    same: bool = False
    failure: PkgrepoError | None = None
    ended: bool = False

    @property
    def only_known(self) -> bool:
        """Whether of those that follow only the ones that have had it are asked."""
        return self.failure is not None and not self.same

    def fail(self, error: PkgrepoError, *, known: bool = False) -> None:
        """Note how one did not answer that is ``known`` to have had it."""
        is_decision = isinstance(error, UpstreamDenied)
        self.failure = error if is_decision else self.failure or error
        self.ended = is_decision or (known and not self.same)


@frozen
class Place:
    """Where something is asked for: a route of a proxy, and the ``name`` there, if that is another one for each."""

    repository_id: int
    route: Route
    name: str = ""


@define(eq=False)
class RouteSearch:
    """
    The search along the routes of a proxy: ``rest`` are the place that is asked, and those after it, in order.

    Its steps are about the ``repository`` (a path), if that is given. ``is_known`` tells whether a place is known to
    have had what is asked for, and ``order`` whether all have the same.
    """

    rest: list[Place]
    trace: Trace
    _clock: Clock
    order: SearchOrder = field(kw_only=True)
    _is_known: Callable[[Place], bool] = field(kw_only=True)
    _repository: str = field(kw_only=True, default="")

    async def first(self, ask: Callable[[Place], Awaitable[T]], absent: NotFound) -> T:
        """
        What the first place answers that has it; where a place does not, ``ask`` raises ``NotFound``.

        It may be called again: the same place is asked, unless that was left.

        :raises NotFound: none has it; this is ``absent``; :raises UpstreamFailed: that is not known
        """
        while self.rest and not self.order.ended:
            place = self.rest[0]
            try:
                return await ask(place)
            except NotFound:
                self.rest.pop(0)
                self.note(StepKind.ABSENT, place, at_ms=self._clock.now_ms())
            except FAILURES as error:
                self.leave(place, error)
        raise self.order.failure or absent

    def leave(self, place: Place, error: PkgrepoError) -> bool:
        """Note that a place failed. Returns whether another one is asked, by none of the names at the same route."""
        self.note(failed_step(error), place, at_ms=self._clock.now_ms(), why=str(error))
        self.order.fail(error, known=self._is_known(place))
        others = [each for each in self.rest if each.route is not place.route]
        self.rest = others
        if self.order.ended:
            return False
        if self.order.only_known:
            self.rest = [each for each in others if self._is_known(each)]
            for each in others:
                if each not in self.rest:
                    self.note(StepKind.WITHHELD, each)
        return bool(self.rest)

    def note(self, step: StepKind, place: Place, **details: Any) -> None:
        """Add a step about a place."""
        self.trace.add(step, repository=self._repository, route=place.route.name, what=place.name, **details)
