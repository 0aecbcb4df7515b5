"""What a line of ``/info/<gem>`` says of a version, for the JSON API: only a part of its specification."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Final

from pkgrepo.formats.rubygems.api.records import Release
from pkgrepo.formats.rubygems.gemspec import ANY, RUNTIME, Dependency, GemSpec, Requirement
from pkgrepo.formats.rubygems.names import RUBY

_NO_DATE: Final = date(1980, 1, 2)  # what RubyGems takes for gems without one


def describe(name: str, line: bytes) -> Release:
    """The version that a line is about."""
    head, _, rest = line.decode("utf-8", "replace").partition("|")
    version, _, needed = head.partition(" ")
    number, _, platform = version.partition("-")
    said = dict(each.partition(":")[::2] for each in rest.split(","))
    created_at = _time(said.get("created_at", ""))
    return Release(
        GemSpec(
            name=name,
            number=number,
            platform=platform or RUBY,
            original_platform=platform or RUBY,
            rubygems_version="",
            date=_NO_DATE if created_at is None else created_at.date(),
            summary="",
            required_ruby=_requirement(said.get("ruby", "")),
            required_rubygems=_requirement(said.get("rubygems", "")),
            dependencies=tuple(map(_dependency, needed.split(","))) if needed else (),
        ),
        created_at,
        False,
        said.get("checksum", ""),
    )


def _dependency(text: str) -> Dependency:
    name, _, bounds = text.partition(":")
    return Dependency(name, RUNTIME, _requirement(bounds))


def _requirement(text: str) -> Requirement:
    if not text:
        return ANY
    pairs = (each.partition(" ") for each in text.split("&"))
    return tuple((operator, version) for operator, _, version in pairs)


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
