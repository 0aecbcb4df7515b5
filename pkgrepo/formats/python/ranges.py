"""Which versions a requirement accepts, and how people write which ones they mean, as PEP 440 has it."""

from __future__ import annotations

import re
from typing import Final

from packaging.requirements import Requirement
from packaging.specifiers import Specifier
from packaging.version import Version

from pkgrepo.errors import Invalid
from pkgrepo.repositories.version_ranges import Ranges, Test

from .versions import bound_key, builds, find_version

_OLDER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")  # versions from before PEP 440, such as 2004d


def accepts(dependency: str, version: str) -> bool | None:
    """
    Whether a requirement accepts a version; prereleases that are within its bounds count.

    None if it names an address, or if one of them cannot be read.
    """
    try:
        requirement = Requirement(dependency)
        return None if requirement.url else requirement.specifier.contains(Version(version), prereleases=True)
    except (ValueError, RecursionError):  # of packaging, of long numbers, or of thousands of brackets
        return None


def _builds(text: str) -> tuple[bytes, bytes]:
    bound_key(text)  # no other text bounds a range
    return builds(text)


def _specified(text: str) -> Test:
    """The test of one clause of a version specifier."""
    try:
        specifier = Specifier(text)
    except ValueError:
        raise Invalid(f"{text!r} is no version specifier (PEP 440)") from None

    def is_within(version: str) -> bool:
        found = find_version(version)
        if found is None:
            raise Invalid(f"{version!r} is not a version as PEP 440 has it", "version")
        try:
            return specifier.contains(found, prereleases=True)
        except ValueError:
            raise Invalid(f"{text[:200]!r} has a number that is too long") from None

    return is_within


def _older(text: str) -> Test | None:
    if find_version(text) is not None or _OLDER.fullmatch(text) is None:
        return None
    return lambda version: version == text


RANGES: Final = Ranges(
    sort=bound_key,
    builds=_builds,
    operators={"~=": lambda bound: _specified(f"~={bound}"), "===": lambda bound: _specified(f"==={bound}")},
    begins=lambda start: _specified(f"=={start}.*"),
    other=_older,
    written=">=1.5,<2.0, ~=1.5, ==1.5.* or 1.5",
)
