"""
What is known of who published a version, and how that compares with the versions before it.

What a document says is a claim. Of versions before it is enough: a rank that is too high makes a rule stricter. Of the
version that is judged a claimed provenance is verified, and one that is not verified counts as none, whatever else is
claimed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from attrs import evolve, frozen

from pkgrepo.repositories.attestations import Claim, Rank
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
        """Whether the attestation that it claims is not there."""
        return self.claim.provenance and self.attested is not None and self.attested.until_ms is not None

    def is_below(self, wanted: Wanted) -> bool | None:
        """Whether it has no provenance (``none``), or less than a version before (``fell``); None if not known."""
        bar = Rank.PROVENANCE if wanted == "none" else self.before
        if bar is None:
            return None
        if self.claim.rank < bar:
            return True
        if bar is Rank.NONE:
            return False
        return None if self.rank is None else self.rank < bar

    def is_open(self, wanted: Wanted) -> bool:
        """Whether reading its attestation decides that."""
        unread = self.claim.provenance and self.attested is None
        return unread and self.is_below(wanted) is None and (wanted == "none" or self.before is not None)

    def why(self, wanted: Wanted) -> str:
        """A clause that says so of a version that is below, or of which that is not known."""
        if self.is_absent and not self.is_below(wanted):
            return "the attestation that is claimed is not there"
        has = (self.claim.rank if self.rank is None else self.rank).words
        failed = "" if self.attested is None or self.attested.verified else f" that is verified: {self.attested.why}"
        if wanted == "none" or self.before is None:
            return f"it has {has}{failed}"
        return f"{self.best} before it had {self.before.words}, and it has {has}{failed}"


@frozen
class Released:
    """A version, or a file of one: when it was published (ms), and its rank as it is claimed."""

    version: str
    published_ms: int
    rank: Rank
    prerelease: bool = False


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
        every = sorted(released, key=lambda each: each.published_ms)
        self._all = _bests(every)
        self._stable = _bests([each for each in every if not each.prerelease])
        self._complete = complete
        self.claims = claims

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
        if not dated:
            sure = sure and _other(bests[bisect_left(times, at_ms + 1)], version)[0] <= rank
        return evolve(trust, before=rank, best=best) if sure or rank > trust.claim.rank else trust


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
