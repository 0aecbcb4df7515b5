"""
Advisories: OSV records of known vulnerabilities, and the fields that npm's audit needs of them.

An operator exports the database (one JSON file for each vulnerability, in a folder or a zip). Nothing here uses the
network.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from attrs import evolve, frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import semver

ECOSYSTEM: Final = "npm"
UNFIXED: Final = "<0.0.0"  # the range of fixed versions when there are none, in npm's syntax
SEVERITIES: Final = ("info", "low", "moderate", "high", "critical")
RECORD_SIZE: Final = 8 * 1024 * 1024  # bytes of one record; a few list thousands of versions

_BEGINNING: Final = "0"  # OSV's spelling of "from the first version on"
_MALWARE: Final = "MAL-"  # the whole package is hostile; such records rarely carry a severity
_NO_SCORE: Final = 0.0

_METRICS: Final[dict[str, dict[str, float]]] = {
    "AV": {"N": 0.85, "A": 0.62, "L": 0.55, "P": 0.2},
    "AC": {"L": 0.77, "H": 0.44},
    "UI": {"N": 0.85, "R": 0.62},
    "C": {"H": 0.56, "L": 0.22, "N": 0.0},
    "I": {"H": 0.56, "L": 0.22, "N": 0.0},
    "A": {"H": 0.56, "L": 0.22, "N": 0.0},
}
# Required privileges lower the score less when the scope changes (S:C).
_PRIVILEGES: Final = {
    "U": {"N": 0.85, "L": 0.62, "H": 0.27},
    "C": {"N": 0.85, "L": 0.68, "H": 0.5},
}
_SEVERITIES: Final = ((9.0, "critical"), (7.0, "high"), (4.0, "moderate"), (0.1, "low"))


@frozen
class AffectedRange:
    """
    A range of affected versions, from ``introduced`` (inclusive; empty for the first version) to an end.

    The end is ``fixed`` (exclusive) or ``last_affected`` (inclusive); when both are empty the range has no end.
    """

    introduced: str = ""
    fixed: str = ""
    last_affected: str = ""

    def covers(self, version: semver.Version) -> bool:
        """Whether a version is in the range."""
        if self.introduced and version.sort < _sort(self.introduced):
            return False
        if self.fixed:
            return version.sort < _sort(self.fixed)
        return not self.last_affected or version.sort <= _sort(self.last_affected)

    def as_range(self) -> str:
        """The range in npm's syntax."""
        parts = [f">={self.introduced}"] if self.introduced else []
        parts += [f"<{self.fixed}"] if self.fixed else []
        parts += [f"<={self.last_affected}"] if self.last_affected else []
        return " ".join(parts) or "*"


EVERYTHING: Final = AffectedRange()


@frozen
class Advisory:
    """
    One vulnerability of one package.

    ``number`` is a hash of the record's id, since npm needs a number. ``versions`` are the keys of affected versions
    that the record lists one by one. ``score`` is 0 when the record has no score that can be computed.
    """

    id: str
    number: int
    package: str
    title: str
    overview: str
    url: str
    severity: str
    score: float
    vector: str
    cwe: tuple[str, ...]
    aliases: tuple[str, ...]
    ranges: tuple[AffectedRange, ...]
    versions: frozenset[str]
    published: str
    modified: str

    def affects(self, version: semver.Version) -> bool:
        """Whether a version has the vulnerability."""
        return version.key in self.versions or self._in_a_range(version)

    @property
    def vulnerable_versions(self) -> str:
        """The affected versions as a range in npm's syntax; clients compare installed versions with it."""
        listed = sorted(
            (
                each
                for each in map(semver.find_version, self.versions)
                if each is not None and not self._in_a_range(each)
            ),
            key=lambda version: version.sort,
        )
        return " || ".join([*(range_.as_range() for range_ in self.ranges), *(f"={version.key}" for version in listed)])

    @property
    def patched_versions(self) -> str:
        """The fixed versions as a range in npm's syntax; ``UNFIXED`` when there is no fix."""
        fixed = [range_.fixed for range_ in self.ranges if range_.fixed]
        if not fixed or any(not range_.fixed and not range_.last_affected for range_ in self.ranges):
            return UNFIXED
        return f">={max(fixed, key=_sort)}"

    def _in_a_range(self, version: semver.Version) -> bool:
        return any(range_.covers(version) for range_ in self.ranges)


class _Event(msgspec.Struct, frozen=True):
    introduced: str = ""
    fixed: str = ""
    last_affected: str = ""


class _Range(msgspec.Struct, frozen=True):
    type: str
    events: list[_Event] = []


class _Package(msgspec.Struct, frozen=True):
    ecosystem: str
    name: str


class _Severity(msgspec.Struct, frozen=True):
    type: str
    score: str


class _KnownRange(msgspec.Struct, frozen=True):
    last_known_affected_version_range: Any = None


class _Affected(msgspec.Struct, frozen=True):
    package: _Package | None = None
    ranges: list[_Range] = []
    versions: list[str] = []
    severity: list[_Severity] = []
    database_specific: _KnownRange = _KnownRange()


class _Details(msgspec.Struct, frozen=True):
    severity: Any = None
    cwe_ids: Any = None


class _Record(msgspec.Struct, frozen=True):
    """The fields of an OSV record that are read (OSV schema 1.7)."""

    id: str
    modified: str = ""
    published: str = ""
    withdrawn: str | None = None
    aliases: list[str] = []
    summary: str = ""
    details: str = ""
    severity: list[_Severity] = []
    affected: list[_Affected] = []
    database_specific: _Details = _Details()


_decode = msgspec.json.Decoder(_Record).decode


def read_record(data: bytes) -> list[Advisory]:
    """
    The advisories in one OSV record: one for each npm package in it, none when it is withdrawn.

    :raises Invalid: it is no OSV record
    """
    if len(data) > RECORD_SIZE:
        raise Invalid(f"the OSV record is longer than {RECORD_SIZE} bytes")
    try:
        record = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"this is no OSV record: {error}") from None
    if record.withdrawn is not None:
        return []
    affected: dict[str, list[_Affected]] = {}
    for each in record.affected:
        if each.package is not None and each.package.ecosystem == ECOSYSTEM:
            affected.setdefault(each.package.name, []).append(each)
    return [_advisory(record, package, parts) for package, parts in affected.items()]


def affecting(advisories: Iterable[Advisory], versions: Iterable[str]) -> list[Advisory]:
    """The advisories that affect any of these versions of their package; texts that are no versions are ignored."""
    found = [version for version in map(semver.find_version, versions) if version is not None]
    return [each for each in advisories if any(map(each.affects, found))]


def number_of(id: str) -> int:
    """The number of an advisory with this id, for clients that need one."""
    return int.from_bytes(hashlib.sha256(id.encode()).digest()[:6], "big")


def _advisory(record: _Record, package: str, parts: Sequence[_Affected]) -> Advisory:
    score, vector = _score([*record.severity, *(each for part in parts for each in part.severity)])
    listed = [version for part in parts for version in map(semver.find_version, part.versions) if version is not None]
    title = record.summary or record.details.partition("\n")[0][:200] or record.id
    cwe = record.database_specific.cwe_ids
    return Advisory(
        id=record.id,
        number=number_of(record.id),
        package=package,
        title=title,
        overview=record.details,
        url=f"https://osv.dev/vulnerability/{record.id}",
        severity=_severity(record, score, vector),
        score=score,
        vector=vector,
        cwe=tuple(each for each in cwe if isinstance(each, str)) if isinstance(cwe, list) else (),
        aliases=tuple(record.aliases),
        ranges=tuple(range_ for part in parts for range_ in _ranges_of(part)),
        versions=frozenset(version.key for version in listed),
        published=record.published,
        modified=record.modified,
    )


def _ranges_of(part: _Affected) -> list[AffectedRange]:
    ranges = [range_ for each in part.ranges for range_ in _read_events(each)]
    known = part.database_specific.last_known_affected_version_range
    if isinstance(known, str) and ranges and not (ranges[-1].fixed or ranges[-1].last_affected):
        # GitHub's database, the largest source, keeps the last affected version here when there is no fix.
        operator, _, text = known.partition(" ")
        version = semver.find_version(text)
        if version is not None and operator in ("<", "<="):
            end = "fixed" if operator == "<" else "last_affected"
            ranges[-1] = evolve(ranges[-1], **{end: version.text})
    return ranges


def _read_events(range_: _Range) -> list[AffectedRange]:
    """The affected ranges in the events of an OSV range; the events need not be sorted in the record."""
    if range_.type not in ("SEMVER", "ECOSYSTEM"):
        return []
    events: list[tuple[bytes, int, str, str]] = []
    for event in range_.events:
        # Sorted so that a range ends before another one begins at the same version.
        for rank, kind in enumerate(("fixed", "introduced", "last_affected")):
            text = getattr(event, kind)
            version = None if text in ("", _BEGINNING) else semver.find_version(text)
            if version is not None:
                events.append((version.sort, rank, kind, version.text))
            elif text == _BEGINNING and kind == "introduced":
                events.append((b"", rank, kind, ""))
    ranges: list[AffectedRange] = []
    begun: str | None = None
    for _, _, kind, text in sorted(events):
        if kind == "introduced":
            begun = text if begun is None else begun
        elif begun is not None:
            ranges.append(AffectedRange(introduced=begun, **{kind: text}))
            begun = None
    if begun is not None:
        ranges.append(AffectedRange(introduced=begun))
    return ranges


def _score(severities: Sequence[_Severity]) -> tuple[float, str]:
    """Score and vector. For a vector of another version than CVSS 3 the score is 0; npm shows the vector."""
    for each in severities:
        score = base_score(each.score)
        if score is not None:
            return score, each.score
    return _NO_SCORE, severities[0].score if severities else ""


def _severity(record: _Record, score: float, vector: str) -> str:
    said = record.database_specific.severity
    word = {"medium": "moderate"}.get(said.lower(), said.lower()) if isinstance(said, str) else ""
    if word in SEVERITIES:
        return word
    if record.id.startswith(_MALWARE):
        return "critical"
    return severity_of(score) if vector and score else "moderate"


def _sort(text: str) -> bytes:
    version = semver.find_version(text)
    assert version is not None
    return version.sort


def base_score(vector: str) -> float | None:
    """The score, 0 to 10 in tenths; None when the text is no complete vector of CVSS 3.0 or 3.1."""
    prefix, *parts = vector.split("/")
    if prefix not in ("CVSS:3.0", "CVSS:3.1"):
        return None
    given = dict(part.partition(":")[::2] for part in parts)
    try:
        weights = {metric: values[given[metric]] for metric, values in _METRICS.items()}
        privileges = _PRIVILEGES[given["S"]][given["PR"]]
    except KeyError:
        return None
    changed = given["S"] == "C"
    missing = 1 - (1 - weights["C"]) * (1 - weights["I"]) * (1 - weights["A"])
    impact = 7.52 * (missing - 0.029) - 3.25 * (missing - 0.02) ** 15 if changed else 6.42 * missing
    if impact <= 0:
        return 0.0
    exploitability = 8.22 * weights["AV"] * weights["AC"] * privileges * weights["UI"]
    return _round_up(min((1.08 if changed else 1.0) * (impact + exploitability), 10))


def severity_of(score: float) -> str:
    """Npm's severity for a score: ``info``, ``low``, ``moderate``, ``high`` or ``critical``."""
    return next((word for least, word in _SEVERITIES if score >= least), "info")


def _round_up(value: float) -> float:
    """A value rounded up to tenths, without the errors of floating point (appendix A)."""
    hundred_thousandths = round(value * 100_000)
    if hundred_thousandths % 10_000 == 0:
        return hundred_thousandths / 100_000
    return (math.floor(hundred_thousandths / 10_000) + 1) / 10
