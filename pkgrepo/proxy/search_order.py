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
... and whoever answers has   the next one is asked                     the next one is asked
the same
============================  ========================================  ===============================================

Whoever answers has the same if the routes are replicas, if something is asked for by its digest, and if the answers of
all are joined.
"""

from __future__ import annotations

from attrs import define

from pkgrepo.errors import PkgrepoError, UpstreamDenied


@define(eq=False)
class SearchOrder:
    """
    One search. ``same``: whoever answers has the same.

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
