"""Chooses versions by the filter of a request: the beginning of the version, or what it has or has not."""

from __future__ import annotations

from collections.abc import Sequence

HAS = "has:"
NONE = "none:"


def filter_versions(versions: Sequence[str], wanted: str | None) -> list[str]:
    """
    The versions that pass: those that contain X for ``has:X``, do not for ``none:X``, and begin with any other text.

    ``|`` separates several filters, all of which apply.
    """
    found = list(versions)
    for each in (wanted or "").split("|"):
        if each.startswith(HAS):
            found = [version for version in found if each.removeprefix(HAS) in version]
        elif each.startswith(NONE):
            found = [version for version in found if each.removeprefix(NONE) not in version]
        else:
            found = [version for version in found if version.startswith(each)]
    return found
