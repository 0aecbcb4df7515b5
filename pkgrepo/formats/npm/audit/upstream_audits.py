"""
What upstreams are told of an audit, and what is taken from their answers.

They are asked the bulk question only, whatever the client asked: registries have retired the one about trees. They are
told names and versions, but neither names of packages that are our own nor that of the project.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm import semver
from pkgrepo.model import ReadLimits
from pkgrepo.proxy.uncached import UncachedQuestion
from pkgrepo.untrusted.strict_json import ERRORS

from .advisories import EVERYTHING, SEVERITIES, Advisory, AffectedRange, number_of

LIMITS: Final = ReadLimits(max_bytes=16 * 1024 * 1024, total_s=30.0)  # clients wait 60 s and longer
BULK: Final = "-/npm/v1/security/advisories/bulk"

_GHSA: Final = re.compile(r"GHSA(?:-[0-9a-z]{4}){3}")
_PARTIAL: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_COMPARATOR: Final = re.compile(r"\s*(>=|<=|>|<|=|)\s*([^\s<>=]+)")

Entries = Mapping[str, Sequence[Mapping[str, Any]]]


def bulk_question(told: Mapping[str, Sequence[str]]) -> UncachedQuestion:
    """The question about the versions of each package."""
    return UncachedQuestion("audit", BULK, LIMITS, body=msgspec.json.encode(told))


def read_bulk_answer(body: bytes, asked: Collection[str]) -> Entries:
    """
    The advisories by package, of those that were asked about.

    :raises Invalid: it is no answer to an audit, such as a page, or an error in JSON
    """
    try:
        body.decode()
        found = msgspec.json.decode(body, type=dict[str, list[dict[str, Any]]])
    except ERRORS:
        raise Invalid("its answer to an audit cannot be read") from None
    return {name: each for name, each in found.items() if name in asked}


def read_advisory(package: str, entry: Mapping[str, Any]) -> Advisory:
    """
    An advisory of a bulk answer, for an answer about a tree.

    What it does not say is taken for the worst: an unknown severity, and versions in a form that is not understood.
    """
    url = _text(entry, "url")
    found = _GHSA.search(url)
    number = entry.get("id")
    name = found[0] if found else url or str(number)[:100]
    severity = _text(entry, "severity")
    cvss = entry.get("cvss")
    score = cvss.get("score") if isinstance(cvss, dict) else None
    vector = cvss.get("vectorString") if isinstance(cvss, dict) else None
    cwe = entry.get("cwe")
    return Advisory(
        id=name,
        number=number if isinstance(number, int) else number_of(name),
        package=package,
        title=_text(entry, "title"),
        overview="",
        url=url,
        severity=severity if severity in SEVERITIES else SEVERITIES[-1],
        score=score if isinstance(score, int | float) else 0.0,
        vector=vector if isinstance(vector, str) else "",
        cwe=tuple(each for each in cwe if isinstance(each, str)) if isinstance(cwe, list) else (),
        aliases=(),
        ranges=read_ranges(_text(entry, "vulnerable_versions")),
        versions=frozenset(),
        published="",
        modified="",
    )


def read_ranges(text: str) -> tuple[AffectedRange, ...]:
    """The ranges in npm's syntax, as advisories have them; one that is not understood has all versions."""
    return tuple(_read_range(each) for each in text.split("||"))


def _read_range(text: str) -> AffectedRange:
    lower = upper = ""
    included = False  # the upper end
    at = 0
    text = text.strip()
    while at < len(text):
        match = _COMPARATOR.match(text, at)
        version = None if match is None else _version(match[1], match[2])
        if match is None or version is None:
            return EVERYTHING
        at = match.end()
        if match[1] in (">=", ">", "=", ""):
            bound = _next(version) if match[1] == ">" else version.text
            lower = max(lower, bound, key=_order)
        if match[1] in ("<", "<=", "=", ""):
            with_end = match[1] != "<"
            if not upper or (_order(version.text), with_end) < (_order(upper), included):
                upper, included = version.text, with_end
    return AffectedRange(lower, "" if included else upper, upper if included else "")


def _version(operator: str, text: str) -> semver.Version | None:
    """The version of a bound. Missing parts are zero where npm takes them for that."""
    if operator in (">=", "<") and _PARTIAL.fullmatch(text):
        text += ".0" * (2 - text.count("."))
    return semver.find_version(text)


def _next(version: semver.Version) -> str:
    """The lowest version above another one: the first prerelease behind it."""
    if version.is_prerelease:
        return f"{version.key}.0"
    major, minor, patch = version.key.split(".")
    return f"{major}.{minor}.{int(patch) + 1}-0"


def _order(text: str) -> bytes:
    version = semver.find_version(text)
    return b"" if version is None else version.sort


def _text(entry: Mapping[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else ""
