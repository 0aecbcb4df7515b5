"""
Records of the OSV schema (1.7): which versions of which packages each one affects.

A record whose bounds cannot all be read affects more versions, not fewer: a range that begins at something that is no
version begins at the first one, and such an end is none.

=====================  =============================================================================================
what a record has      affected are
=====================  =============================================================================================
introduced             versions from it on; "0" is the first one
fixed                  those before it
last_affected          those before it, itself, and builds of it
limit                  those before it, whatever the other events say
versions               these, beside those of the ranges
withdrawn              none: the record counts as absent
a range of commits     none; the record lists the versions, too
no end, and GitHub's   those up to it; a database that is not kept up would say that all later ones are affected
last known version
=====================  =============================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from attrs import evolve, frozen

from pkgrepo.errors import Invalid
from pkgrepo.model.advisories import HIGHEST, MALWARE, SEVERITIES, Advisory, AffectedRange, Span
from pkgrepo.repositories.format import Ecosystem

from .scores import base_score, severity_of

READER: Final = 1  # increased when stored records have to be read again, such as for another order of versions
RECORD_SIZE: Final = 8 * 1024 * 1024  # bytes of one record; a few list thousands of versions
LONGEST_ID: Final = 200  # characters
LONGEST_TITLE: Final = 500
LONGEST_OVERVIEW: Final = 4000
MOST_ALIASES: Final = 50

_BEGINNING: Final = "0"  # OSV's spelling of "from the first version on"
_NO_SCORE: Final = 0.0


@frozen
class Record:
    """One record: what it says of each package of the ecosystems that were asked for, and when it was changed."""

    id: str
    modified: str
    advisories: tuple[Advisory, ...]


class _Event(msgspec.Struct, frozen=True):
    introduced: str = ""
    fixed: str = ""
    last_affected: str = ""
    limit: str = ""


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
    """The fields that are read."""

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


def read_record(data: bytes, ecosystems: Mapping[str, Ecosystem]) -> Record:
    """
    What a record says of packages of the ``ecosystems``, by OSV's names.

    :raises Invalid: it is no OSV record
    """
    if len(data) > RECORD_SIZE:
        raise Invalid(f"the OSV record is longer than {RECORD_SIZE} bytes")
    try:
        record = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"this is no OSV record: {error}") from None
    if not 0 < len(record.id) <= LONGEST_ID or "\0" in record.id:
        raise Invalid(f"this is no OSV record: its id has not 1 to {LONGEST_ID} characters")
    affected: dict[tuple[str, str], list[_Affected]] = {}
    for each in record.affected if record.withdrawn is None else ():
        place = _place(each.package, ecosystems)
        if place is not None:
            affected.setdefault(place, []).append(each)
    found = [_advisory(record, ecosystems[place[0]], place[1], parts) for place, parts in affected.items()]
    return Record(record.id, record.modified, tuple(found))


def _place(package: _Package | None, ecosystems: Mapping[str, Ecosystem]) -> tuple[str, str] | None:
    """The ecosystem and the key of a package; None if no repository can have it."""
    name = "" if package is None else package.ecosystem.partition(":")[0]  # Maven may have its repository behind it
    if package is None or name not in ecosystems:
        return None
    try:
        return name, ecosystems[name].package_key(package.name)
    except Invalid:
        return None


def _advisory(record: _Record, ecosystem: Ecosystem, package: str, parts: Sequence[_Affected]) -> Advisory:
    score, vector = _score([*record.severity, *(each for part in parts for each in part.severity)])
    found = sorted((each for part in parts for each in _ranges_of(part, ecosystem)), key=lambda each: each[1])
    ranges = [range_ for range_, _ in found]
    spans = _merged([span for _, span in found])
    listed: dict[bytes, tuple[str, Span]] = {}
    for text in dict.fromkeys(text for part in parts for text in part.versions):
        one = _listed(ecosystem, text)
        if one is not None and not any(low <= one[0] and one[1] <= high for low, high in spans):
            listed.setdefault(one[0], (text, one))
    in_order = [listed[each] for each in sorted(listed)]
    cwe = record.database_specific.cwe_ids
    title = record.summary or record.details.partition("\n")[0][:200] or record.id
    malware = record.id.startswith(MALWARE)
    return Advisory(
        id=record.id,
        ecosystem=ecosystem.name,
        package=package,
        title=_plain(title, LONGEST_TITLE),
        overview="" if malware else _plain(record.details, LONGEST_OVERVIEW),  # which says the same for each of them
        url=f"https://osv.dev/vulnerability/{record.id}",
        severity=_severity(record, score, vector),
        score=score,
        vector=_plain(vector, LONGEST_ID),
        cwe=tuple(each for each in cwe if isinstance(each, str)) if isinstance(cwe, list) else (),
        aliases=tuple(each for each in dict.fromkeys(record.aliases) if len(each) <= LONGEST_ID)[:MOST_ALIASES],
        ranges=tuple(ranges),
        versions=tuple(text for text, _ in in_order),
        spans=tuple(_merged([*spans, *(span for _, span in in_order)])),
        published=record.published,
        modified=record.modified,
    )


def _plain(text: str, most: int) -> str:
    return text[:most].replace("\0", "")  # PostgreSQL stores none


def _listed(ecosystem: Ecosystem, text: str) -> Span | None:
    try:
        return ecosystem.builds(text)
    except Invalid:
        return None  # which no repository has


def _ranges_of(part: _Affected, ecosystem: Ecosystem) -> list[tuple[AffectedRange, Span]]:
    found = [each for range_ in part.ranges for each in read_events(range_, ecosystem)]
    known = part.database_specific.last_known_affected_version_range
    if isinstance(known, str) and found and found[-1][1][1] == HIGHEST:
        # GitHub's database, the largest source, keeps the last affected version here when there is no fix.
        sign, _, text = known.partition(" ")
        range_, (low, _) = found[-1]
        try:
            if sign in ("<", "<="):
                strict = ecosystem.sort(text)
                end, high = ("last_affected", ecosystem.builds(text)[1]) if sign == "<=" else ("limit", strict)
                found[-1] = evolve(range_, **{end: text}), (low, high)
        except Invalid:
            pass  # it stays without an end
    return found


def read_events(range_: _Range, ecosystem: Ecosystem) -> list[tuple[AffectedRange, Span]]:
    """The affected ranges in the events of an OSV range, which need not be sorted in the record."""
    if range_.type not in ("SEMVER", "ECOSYSTEM"):
        return []
    events: list[tuple[bytes, int, str, str]] = []
    limits: list[tuple[bytes, str]] = []
    for event in range_.events:
        # Sorted so that a range ends before another one begins at the same version.
        for rank, kind in enumerate(("fixed", "introduced", "last_affected")):
            text = getattr(event, kind)
            key = _bound(kind, text, ecosystem) if text else None
            if key is not None:
                events.append((key, rank, kind, text if key else ""))
        if event.limit:
            limits.append((_bound("limit", event.limit, ecosystem) or HIGHEST, event.limit))
    found: list[tuple[AffectedRange, Span]] = []
    begun: tuple[bytes, str] | None = None
    for key, _, kind, text in sorted(events):
        if kind == "introduced":
            begun = (key, text) if begun is None else begun
        elif begun is not None:
            found.append((AffectedRange(introduced=begun[1], **{kind: text}), (begun[0], key)))
            begun = None
    if begun is not None:
        found.append((AffectedRange(introduced=begun[1]), (begun[0], HIGHEST)))
    limit = max(limits, default=(HIGHEST, ""))
    return [_limited(*each, *limit) for each in found if each[1][0] < limit[0]]


def _bound(kind: str, text: str, ecosystem: Ecosystem) -> bytes | None:
    """The sort key at which a range begins or ends; None for an end that is no version."""
    if kind == "introduced" and text == _BEGINNING:
        return b""
    try:
        key = ecosystem.sort(text)
        return ecosystem.builds(text)[1] if kind == "last_affected" else key
    except Invalid:
        return b"" if kind == "introduced" else None


def _limited(range_: AffectedRange, span: Span, limit: bytes, text: str) -> tuple[AffectedRange, Span]:
    if span[1] <= limit:
        return range_, span
    return AffectedRange(introduced=range_.introduced, limit=text), (span[0], limit)


def _merged(spans: Sequence[Span]) -> list[Span]:
    """The same versions as spans that do not touch, in order."""
    found: list[Span] = []
    for low, high in sorted(spans):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], high)
        elif low < high:
            found.append((low, high))
    return found


def _score(severities: Sequence[_Severity]) -> tuple[float, str]:
    """The highest score with its vector. For a vector that is not understood the score is 0; npm shows the vector."""
    scored = [(score, each.score) for each in severities if (score := base_score(each.score)) is not None]
    # Newer standards rate the same vulnerability otherwise; the higher score counts.
    return max(scored, default=(_NO_SCORE, severities[0].score if severities else ""))


def _severity(record: _Record, score: float, vector: str) -> str:
    said = record.database_specific.severity
    word = {"medium": "moderate"}.get(said.lower(), said.lower()) if isinstance(said, str) else ""
    if word in SEVERITIES and word != SEVERITIES[0]:
        return word
    if record.id.startswith(MALWARE):  # such records rarely carry a severity
        return "critical"
    return severity_of(score) if base_score(vector) is not None else SEVERITIES[0]
