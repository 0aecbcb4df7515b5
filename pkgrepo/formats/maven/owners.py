"""
Which bindings of projects match artifacts, and folders of plain files.

These are the coordinates, the group id written ``com.acme:*``, the group id (with those below it), and the group ids
above it on dot boundaries. A folder, written with slashes, is of the artifact or the group that it is or is in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pkgrepo.auth.permissions.format_rights import FormatRights, prefixes


def _patterns(package: str) -> tuple[str, ...]:
    if "/" in package:
        return tuple(_of_folder(package))
    group, colon, _ = package.partition(":")
    return ((package, f"{group}:*") if colon else ()) + prefixes(group, ".")


def _of_folder(path: str) -> Iterator[str]:
    """The bindings that match a folder: as an artifact, a group, or what is in one of these."""
    parts = path.strip("/").split("/")
    for count in range(len(parts), 0, -1):
        group = ".".join(parts[: count - 1])
        if group:
            yield f"{group}:{parts[count - 1]}"
        yield ".".join(parts[:count])
        if group:
            yield f"{group}:*"


def _stem(pattern: str) -> tuple[str, str]:
    stem = pattern.removesuffix(":*")
    return stem, stem if ":" in stem else f"{stem}:a"


# A claim is of the artifact, not of its group: the first publisher of com:a would own all groups below com.
RIGHTS: Final = FormatRights(
    patterns=_patterns,
    stem=_stem,
    forms="com.acme (a group with those below it), com.acme:* (one group) or com.acme:app (one artifact)",
)
