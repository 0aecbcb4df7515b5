"""How people name a version to a command: ``demo==1.2`` as one argument, or name and version as two."""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.errors import Invalid

# Numbers with a prerelease, a build or a local version after them; not icon@2x.png.
_NUMBERS: Final = r"v?\d+(?:\.\d+)*(?:[-+][\w.+-]+|\.?(?:a|b|rc|dev|post)\d+)*"
_WITH_VERSION: Final = re.compile(
    rf"(.+?)==(.+)|(.+)[@:]({_NUMBERS})|([^:@]+:[^:@]+):([^:]+)|([^@]+)@(sha256:[0-9a-f]{{64}})"
)
_WITH_TAG: Final = re.compile(r"([^@:]+):([^@:]+)")


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


def maybe_version(name: str, version: str | None, *, is_image: bool = False) -> tuple[str, str | None]:
    """
    The name, and the version if there is one, for a command that may be about the whole package.

    One argument has a version after ``==``, after an at sign or a colon if that looks like one, or after a second
    colon: names have colons and at signs themselves. What is known to be an image has its tag after any colon.
    """
    if version is not None:
        return name, version
    if (found := _WITH_VERSION.fullmatch(name)) or (is_image and (found := _WITH_TAG.fullmatch(name))):
        before, after = filter(None, found.groups())
        return before, after
    return name, None
