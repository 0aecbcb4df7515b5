"""
How a file differs from that of the newest version before it that is served.

==========================================  ==========================================================================
the versions before                         the comparison
==========================================  ==========================================================================
there is none                               nothing is different
one is served                               with the newest of these, in the order of L{Line}
none is served                              is not known
one of them was not read yet                is not known until it is (``Compared.lacking``)
the line is not known, or not whole         is not known
==========================================  ==========================================================================

Whether a version is served may depend on a comparison with one before it, and so on. These are worked out one after the
other, each once, however many there are.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from attrs import define, evolve, field

from pkgrepo.errors import Invalid

from .conditions import Facts
from .differences import NO_LINE, NOTHING_BEFORE, UNKNOWN, Compared, Seen, compare
from .line import Line, Peer
from .rules import Verdict

CompareFacts = Callable[[Facts, int], Compared]


class Decides(Protocol):
    """What decides about files: the L{Judge}."""

    @property
    def line(self) -> Line | None:
        """The versions of the package; None while they are not known."""

    def decide(self, facts: Facts, at_ms: int | None = None) -> Verdict:
        """The verdict over what is known."""

    def of_peer(self, peer: Peer, compare: CompareFacts) -> Facts:
        """What is known of a file of the line."""

    def lacks(self, peer: Peer, facts: Facts) -> bool:
        """Whether something of it is still to be read."""


class _Before(Exception):  # noqa: N818 - no error
    """A file is to be compared before."""

    def __init__(self, path: str, facts: Facts) -> None:
        super().__init__(path)
        self.path = path
        self.facts = facts


@define(eq=False)
class Comparisons:
    """Those of one judge, which are kept with it."""

    _judge: Decides
    _found: dict[tuple[str, int], Compared] = field(factory=dict)

    def compare(self, path: str, facts: Facts, at_ms: int) -> Compared:
        """How the file at a path, of which these are the facts, differs from that of the version before, at a time."""
        waiting = [(path, facts)]
        while waiting:
            place, its = waiting[-1]
            try:
                found = self._found.get((place, at_ms)) or self._compare(place, its, at_ms)
            except _Before as error:
                if any(error.path == each for each, _ in waiting):  # which the order of a line does not let be
                    self._found[error.path, at_ms] = UNKNOWN
                waiting.append((error.path, error.facts))
                continue
            self._found[place, at_ms] = found
            waiting.pop()
        return self._found[path, at_ms]

    def _compare(self, path: str, facts: Facts, at_ms: int) -> Compared:
        """:raises _Before: another one is to be compared before"""
        if self._judge.line is None:
            return NO_LINE
        if "differs" in facts.unread:
            return evolve(UNKNOWN, lacking=path)
        if not facts.versions or facts.unreadable:
            return UNKNOWN
        try:
            return self._with_line(self._judge.line, path, facts, at_ms)
        except Invalid:  # nothing says what is before it
            return UNKNOWN

    def _with_line(self, line: Line, path: str, facts: Facts, at_ms: int) -> Compared:
        first = line.whole
        for peer in line.before(facts.versions[0], path, facts.published_ms):
            its, first = self._judge.of_peer(peer, partial(self._known, peer.path)), False
            if self._judge.lacks(peer, its):
                return evolve(UNKNOWN, lacking=peer.path)
            served = self._judge.decide(its, at_ms).served
            known = self._found.get((peer.path, at_ms))
            if known is not None and known.lacking is not None:
                return evolve(UNKNOWN, lacking=known.lacking)
            if served:
                return compare(_seen(its), _seen(facts), peer.version)
        return NOTHING_BEFORE if first else UNKNOWN

    def _known(self, path: str, facts: Facts, at_ms: int) -> Compared:
        known = self._found.get((path, at_ms))
        if known is None:
            raise _Before(path, facts)
        return known


def _seen(facts: Facts) -> Seen:
    return Seen(facts.contents, facts.shape, facts.told)
