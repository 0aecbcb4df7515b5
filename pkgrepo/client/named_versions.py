"""How people name a version to a command: ``demo==1.2`` as one argument, or name and version as two."""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.errors import Invalid

# Numbers with a prerelease, a build or a local version after them; not icon@2x.png.
_NUMBERS: Final = re.compile(r"v?\d+(?:\.\d+)*(?:[-+][\w.+-]+|\.?(?:a|b|rc|dev|post)\d+)*")


def named_version(name: str, version: str | None) -> tuple[str, str]:
    """
    The name and the version that a command needs.

    In one argument they may be written as the clients of the format do: demo==1.2, demo@1.2, group:artifact:1.2,
    image:tag, image@sha256:...

    :raises Invalid: there is no version
    """
    if version is not None:
        return name, version
    for separator in ("==", "@", ":"):
        before, found, after = name.partition(separator) if separator != ":" else name.rpartition(separator)
        if separator == "@" and not before:  # a scope
            before, found, after = name.rpartition("@")
        if found and before and after:
            return before, after
    raise Invalid(f"{name!r} has no version: write NAME==VERSION, or the version as another argument")


def maybe_version(name: str, version: str | None) -> tuple[str, str | None]:
    """
    The name, and the version if there is one, for a command that may be about the whole package.

    One argument has a version after ``==``, or after an at sign if that looks like one: names have colons and at signs
    themselves.
    """
    before, found, after = name.partition("==")
    if not found:
        before, found, after = name.rpartition("@")
        found = found if _NUMBERS.fullmatch(after) else ""
    return (before, after) if version is None and found and before and after else (name, version)
