"""Known vulnerabilities: what a record of an advisory database says about one package."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Final

from attrs import frozen

# From the least to the worst; a record that gives no severity, and no vector that gives one, is "unknown".
SEVERITIES: Final = ("unknown", "info", "low", "moderate", "high", "critical")

PLACES: Final = 8  # of a package among the bits of a filter

Span = tuple[bytes, bytes]  # sort keys: from the first, to the second (exclusive)
HIGHEST: Final = b"\xff"  # above every sort key of every format: the end of a span that has none
MALWARE: Final = "MAL-"  # how the ids of records begin that say that a package is hostile


@frozen
class AffectedRange:
    """
    A range of affected versions, from ``introduced`` (inclusive; empty for the first version) to an end.

    The end is ``fixed`` or ``limit`` (both exclusive) or ``last_affected`` (inclusive); when all are empty the range
    has no end. Of a ``limit`` it is not known that it is free of the vulnerability.
    """

    introduced: str = ""
    fixed: str = ""
    last_affected: str = ""
    limit: str = ""

    def __str__(self) -> str:
        """The range as comparators with blanks between them; ``*`` for all versions."""
        parts = [f">={self.introduced}"] if self.introduced else []
        parts += [f"<{each}" for each in (self.fixed, self.limit) if each]
        parts += [f"<={self.last_affected}"] if self.last_affected else []
        return " ".join(parts) or "*"


@frozen(kw_only=True)
class Advisory:
    """
    One vulnerability of one package, as a record of the database describes it.

    ``package`` is the key of the package in repositories of the format with this ``ecosystem`` (OSV's word for it).
    ``versions`` are affected ones that the record lists beside the ``ranges``. Both are for people; ``spans`` are the
    same as sort keys of the format, in order and without overlaps. ``score`` is 0 when the record has no vector of
    which it can be computed. ``published`` and ``modified`` are as in the record.

    Databases have records of one vulnerability under several ids. ``shown_as`` is the one that is shown for all that
    name each other as aliases; what is read from the catalog has the severity of that one. ``number`` is the one that
    an npm registry has given it; 0: none has.
    """

    id: str
    ecosystem: str
    package: str
    title: str
    overview: str = ""
    url: str
    severity: str
    score: float = 0.0
    vector: str = ""
    cwe: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    ranges: tuple[AffectedRange, ...] = ()
    versions: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    published: str = ""
    modified: str = ""
    shown_as: str = ""
    number: int = 0

    def affects(self, sort: bytes) -> bool:
        """Whether the version with a sort key has the vulnerability."""
        return any(low <= sort < high for low, high in self.spans)

    @property
    def affects_all(self) -> bool:
        """Whether every version has it, also one that has no place in the order."""
        return self.spans == ((b"", HIGHEST),)

    @property
    def is_malware(self) -> bool:
        """Whether it says that what it affects is hostile, and not only vulnerable."""
        return self.id.startswith(MALWARE)

    def affects_any(self, sorts: Iterable[bytes]) -> bool:
        """Whether any of some versions has the vulnerability."""
        return any(map(self.affects, sorts))

    @property
    def affected(self) -> str:
        """The affected versions as ranges in npm's syntax, which people can read for all formats."""
        return " || ".join([*map(str, self.ranges), *(f"={each}" for each in self.versions)])

    @property
    def fixed_versions(self) -> list[str]:
        """The versions from which on each range is free of the vulnerability, in the order of the ranges."""
        return list(dict.fromkeys(each.fixed for each in self.ranges if each.fixed))

    @property
    def has_open_end(self) -> bool:
        """Whether a range has no end, so that the newest versions are affected."""
        return any(not (each.fixed or each.last_affected or each.limit) for each in self.ranges)


MalwareName = tuple[str, str]  # an ecosystem, and the key of a package


@frozen
class MalwareNames:
    """
    The packages of which there may be records of malware, as a Bloom filter; without ``bits``, all.

    See L{pkgrepo.storage.catalog.malware}.
    """

    bits: bytes = b""

    def may_have(self, ecosystem: str, package: str) -> bool:
        """Whether there may be a record of malware about a package (a key)."""
        bits = self.bits
        return not bits or all(bits[at >> 3] & (1 << (at & 7)) for at in places_of((ecosystem, package), len(bits) * 8))


def places_of(name: MalwareName, size: int) -> Iterable[int]:
    """The places of a package among ``size`` bits (Kirsch and Mitzenmacher 2006: two hashes stand for all)."""
    digest = blake2b("\0".join(name).encode(), digest_size=16).digest()
    first, step = int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:], "big") | 1
    return ((first + each * step) % size for each in range(PLACES))


def distinct(found: Iterable[Advisory]) -> Sequence[Advisory]:
    """One of the advisories for each vulnerability, the worst first."""
    shown: dict[str, Advisory] = {}
    for each in found:
        name = each.shown_as or each.id
        if name not in shown or each.id == name:
            shown[name] = each
    return sorted(shown.values(), key=lambda each: (-SEVERITIES.index(each.severity), each.id))
