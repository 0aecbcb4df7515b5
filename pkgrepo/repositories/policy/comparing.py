"""
How a file differs from those of versions before it: of at most two of these more than is known is read.

A version before is *decided* if its own comparison changes nothing about it: it is older than the rule asks for, or
approved, or blocked, or the first of all. The others may be served or held, by what they differ in.

==========================================  ==========================================================================
versions before, in the order of L{Line}    what is done with them
==========================================  ==========================================================================
the nearest one that is not decided         the file is compared with it
further ones that are not decided           so with those of which the bytes are known
one that is decided, and not served         it is passed over
the nearest that is decided, and served     the file is compared with it, and the search ends: it is the base
==========================================  ==========================================================================

What is different from any of them is different. So a version that is held never lowers the bar for the next one, which
is compared with the base, too; and what was taken away and comes again is found by the versions between. Without any
version before nothing is different; if all of these are decided, and none is served, it is not known. What was not read
yet of the nearest one, or of the base, is named (``Compared.lacking``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from attrs import define, evolve, field

from pkgrepo.errors import Invalid

from .conditions import Facts
from .differences import EVERYTHING, NO_LINE, NOTHING_BEFORE, UNKNOWN, Compared, Seen, compare, with_ages
from .line import Line, Peer
from .rules import Verdict

MOST_BETWEEN: Final = 50  # versions that are not decided, with which one is compared

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

    @property
    def asks_ages(self) -> bool:
        """Whether rules ask when packages that a version needs were first published."""

    def first_published(self, name: str) -> int | None:
        """When that was (ms), None if nothing tells it. :raises LookupError: it was not asked yet"""

    @property
    def asks_sources(self) -> bool:
        """Whether rules ask for what archives of the source do not explain."""


@define(eq=False)
class Comparisons:
    """Those of one judge, which are kept with it."""

    _judge: Decides
    _found: dict[tuple[str, int], Compared] = field(factory=dict)
    _served: dict[tuple[str, int], bool | None] = field(factory=dict)

    def compare(self, path: str, facts: Facts, at_ms: int) -> Compared:
        """How the file at a path, of which these are the facts, differs from those before it, at a time."""
        found = self._found.get((path, at_ms))
        if found is None:
            found = self._found[path, at_ms] = self._compare(path, facts, at_ms)
        return found

    def _compare(self, path: str, facts: Facts, at_ms: int) -> Compared:
        if self._judge.line is None:
            return NO_LINE
        if "differs" in facts.unread and not facts.looked_into:
            return evolve(UNKNOWN, lacking=(path,))
        if not facts.versions or facts.unreadable:
            return UNKNOWN
        try:
            return self._with_line(self._judge.line, path, facts, at_ms)
        except Invalid:  # nothing says what is before it
            return UNKNOWN

    def lacking_before(self, path: str, facts: Facts, at_ms: int) -> Sequence[str]:
        """The paths of the files before one that are to be read, whether or not that one was read."""
        if self._judge.line is None or not facts.versions:
            return ()
        try:
            return self._with_line(self._judge.line, path, facts, at_ms).lacking
        except Invalid:
            return ()

    def _with_line(self, line: Line, path: str, facts: Facts, at_ms: int) -> Compared:
        found: list[Compared] = []
        lacking: list[str] = []
        served = False
        for peer, served in self._before(line, path, facts, at_ms):
            its = self._judge.of_peer(peer, _differing_in_nothing)
            if self._judge.lacks(peer, its):
                lacking += [peer.path] if served or not (found or lacking) else []
            elif served or len(found) < MOST_BETWEEN:
                compared = self._compare_two(its, facts, peer.version, at_ms)
                if self._judge.asks_sources and (served or not found):
                    open_ = ((path, facts), (peer.path, its))
                    compared = evolve(compared, unexplained=tuple(at for at, each in open_ if each.explained is None))
                elif its.explained is None and facts.explained is not None:  # further ones are not asked for
                    compared = evolve(compared, unknown=compared.unknown - {"unexplained"})
                found.append(compared)
            if served:
                break
        if lacking:
            return evolve(UNKNOWN, lacking=tuple(lacking))
        if served:
            return Compared.joined(reversed(found))
        if line.has_before(facts.versions[0], path, facts.published_ms):
            return evolve(Compared.joined(reversed(found)), unknown=UNKNOWN.unknown)
        return NOTHING_BEFORE

    def _compare_two(self, before: Facts, after: Facts, version: str, at_ms: int) -> Compared:
        seen = _seen(after)
        found = compare(_seen(before), seen, version)
        if not self._judge.asks_ages:
            return found
        published_ms = at_ms if after.published_ms is None else after.published_ms
        return with_ages(found, seen, published_ms, self._judge.first_published)

    def _before(self, line: Line, path: str, facts: Facts, at_ms: int) -> Iterator[tuple[Peer, bool]]:
        """The files before one, with whether they are served for certain, without those that are not."""
        for peer in line.before(facts.versions[0], path, facts.published_ms):
            served = self._is_served(line, peer, at_ms)
            if served is not False:
                yield peer, served is True

    def _is_served(self, line: Line, peer: Peer, at_ms: int) -> bool | None:
        """Whether a file of the line is served; None if that depends on what it differs in."""
        place = peer.path, at_ms
        if place not in self._served:
            same, other = (
                self._judge.decide(self._judge.of_peer(peer, each), at_ms).served
                for each in (_differing_in_nothing, _differing_in_everything)
            )
            decided = same == other or not line.has_before(peer.version, peer.path, peer.facts.published_ms)
            self._served[place] = same if decided else None
        return self._served[place]


def _differing_in_nothing(_facts: Facts, _at_ms: int) -> Compared:
    return NOTHING_BEFORE


def _differing_in_everything(_facts: Facts, _at_ms: int) -> Compared:
    return EVERYTHING


def _seen(facts: Facts) -> Seen:
    return Seen(facts.contents, facts.shape, facts.told, facts.explained)
