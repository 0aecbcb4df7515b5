"""
What is known of who published a version, and how that compares with the versions before it.

What a document says is a claim. Of versions before it is enough: a rank that is too high makes a rule stricter. Of the
version that is judged a claimed provenance is verified, and one that is not verified counts as none, whatever else is
claimed.

Where documents do not say which versions have provenance, the attestations of each are asked for: of the version that
is judged, and if it has none, of those before it, the newest first, until one has any. One that has any counts, like a
claim.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from attrs import evolve, frozen

from pkgrepo.repositories.attestations import AttestedFile, Claim, Rank
from pkgrepo.storage.catalog.file_facts import Attested

Wanted = Literal["fell", "none"]


@frozen
class Trust:
    """
    What is known of a version: the ``claim`` of documents, and what its attestation was found to be (None: not read).

    ``before`` is the best rank of the versions before, which ``best`` has; None if that is not known.
    """

    claim: Claim
    attested: Attested | None = None
    before: Rank | None = None
    best: str = ""

    @property
    def rank(self) -> Rank | None:
        """Its rank; None if that is not known, as its attestation was not read, or is not there."""
        if not self.claim.provenance:
            return self.claim.rank
        if self.attested is None or self.is_absent:
            return None
        return self.claim.rank if self.attested.verified else Rank.NONE

    @property
    def is_absent(self) -> bool:
        """Whether the attestation that it claims is not there; one that is unsaid is not claimed."""
        claimed = self.claim.provenance and not self.claim.unsaid
        return claimed and self.attested is not None and self.attested.until_ms is not None

    def is_lacking(self, wanted: Wanted) -> bool:
        """Whether it is not known whether it is below, and ``why`` says what is lacking."""
        return self.is_absent or self.is_open_before(wanted)

    def is_below(self, wanted: Wanted) -> bool | None:
        """Whether it has no provenance (``none``), or less than a version before (``fell``); None if not known."""
        bar = Rank.PROVENANCE if wanted == "none" else self.before
        if bar is None:
            return False if self.claim.unsaid and self.rank is self.claim.rank else None  # none can be higher
        if self.claim.rank < bar:
            return True
        if bar is Rank.NONE:
            return False
        return None if self.rank is None else self.rank < bar

    def is_open(self, wanted: Wanted) -> bool:
        """Whether reading its attestation decides that."""
        unread = self.claim.provenance and self.attested is None
        compared = wanted == "none" or self.before is not None or self.claim.unsaid
        return unread and self.is_below(wanted) is None and compared

    def is_open_before(self, wanted: Wanted) -> bool:
        """Whether reading the attestations of versions before decides that."""
        return self.claim.unsaid and self.attested is not None and self.is_below(wanted) is None

    def why(self, wanted: Wanted) -> str:
        """A clause that says so of a version that is below, or of which that is not known."""
        if self.is_absent and not self.is_below(wanted):
            return "the attestation that is claimed is not there"
        if self.claim.unsaid and self.attested is None:
            return "its attestations were not read"
        has = (self.claim.rank if self.rank is None else self.rank).words
        none = self.attested is None or self.attested.verified or self.attested.until_ms is not None
        failed = "" if self.attested is None or none else f" that is verified: {self.attested.why}"
        if wanted == "fell" and self.before is None and self.claim.unsaid:
            return f"it has {has}{failed}, and of versions before it the attestations were not all read"
        if wanted == "none" or self.before is None:
            return f"it has {has}{failed}"
        return f"{self.best} before it had {self.before.words}, and it has {has}{failed}"


@frozen
class Unsaid:
    """
    A file of which no document says whether it is attested, and when it was published (ms); ``name`` is that by which
    it is noted.
    """

    name: str
    file: AttestedFile
    published_ms: int


@frozen
class Released:
    """
    A version, or a file of one: when it was published (ms), and its rank as it is claimed.

    Of one that is ``unsaid`` the rank is not known by this alone.
    """

    version: str
    published_ms: int
    rank: Rank
    prerelease: bool = False
    unsaid: Unsaid | None = None


_Best = tuple[Rank, str, Rank, str]  # the best with its version, and the best of another version

_NOTHING: Final[_Best] = (Rank.NONE, "", Rank.NONE, "")


class History:
    """
    The best ranks of a package over time, out of all versions that there are, also those that rules hide.

    ``claims`` are those of its files that have any, by their paths. Unless it is ``complete`` other versions may have
    been better.
    """

    def __init__(
        self,
        released: Iterable[Released],
        claims: Mapping[str, Claim] = MappingProxyType({}),
        *,
        complete: bool = True,
    ) -> None:
        self._every = sorted(released, key=lambda each: each.published_ms)
        self._all = _bests(self._every)
        self._stable = _bests([each for each in self._every if not each.prerelease])
        self._complete = complete
        self.claims = claims
        self._unsaid = [each for each in self._every if each.unsaid is not None]
        self._stable_unsaid = [each for each in self._unsaid if not each.prerelease]

    def known_by(self, found: Callable[[str], Attested | None]) -> History:
        """The history with what was ``found`` of files that are unsaid, by their names; None of those not asked for."""
        if not self._unsaid:
            return self
        return History((_known(each, found) for each in self._every), self.claims, complete=self._complete)

    def unsaid_before(
        self, version: str, at_ms: int, most: int, *, prerelease: bool, dated: bool = True
    ) -> Sequence[Unsaid]:
        """The files of versions before one, ``most`` of the newest, which may be attested or not."""
        unsaid = self._unsaid if prerelease else self._stable_unsaid
        end = bisect_left(unsaid, at_ms if dated else at_ms + 1, key=lambda each: each.published_ms)
        found: dict[str, Unsaid] = {}
        for each in reversed(unsaid[:end]):
            if len(found) == most:
                break
            if each.version != version and each.unsaid is not None:
                found[each.unsaid.name] = each.unsaid
        return [*found.values()]

    def compare(self, trust: Trust, version: str, at_ms: int | None, *, prerelease: bool, dated: bool = True) -> Trust:
        """
        The trust of a version that was published at a time, with the best of the versions before.

        As in pnpm, prereleases count only for prereleases. Where the upstream gives no dates (not ``dated``), what was
        first seen at the same time may have come before.
        """
        if at_ms is None:
            return trust
        times, bests = self._all if prerelease else self._stable
        rank, best = _other(bests[bisect_left(times, at_ms)], version)
        sure = self._complete
        if self._unsaid and rank < Rank.PROVENANCE:  # than which nothing that is unsaid is better
            sure = sure and not self.unsaid_before(version, at_ms, 1, prerelease=prerelease, dated=dated)
        if not dated:
            sure = sure and _other(bests[bisect_left(times, at_ms + 1)], version)[0] <= rank
        sure = sure or rank > trust.claim.rank or (trust.claim.unsaid and rank >= Rank.PROVENANCE)
        return evolve(trust, before=rank, best=best) if sure else trust


def _known(released: Released, found: Callable[[str], Attested | None]) -> Released:
    known = None if released.unsaid is None else found(released.unsaid.name)
    if known is None:
        return released
    return evolve(released, rank=Rank.NONE if known.until_ms is not None else Rank.PROVENANCE, unsaid=None)


def _bests(released: Sequence[Released]) -> tuple[Sequence[int], Sequence[_Best]]:
    """The times, and what was best before each of them; one more at the end."""
    best = _NOTHING
    found = [best]
    for each in released:
        rank, version, second, other = best
        if each.version == version:
            best = (max(rank, each.rank), version, second, other)
        elif each.rank > rank:
            best = (each.rank, each.version, rank, version)
        elif each.rank > second:
            best = (rank, version, each.rank, each.version)
        found.append(best)
    return [each.published_ms for each in released], found


def _other(best: _Best, version: str) -> tuple[Rank, str]:
    rank, text, second, other = best
    return (second, other) if text == version else (rank, text)
