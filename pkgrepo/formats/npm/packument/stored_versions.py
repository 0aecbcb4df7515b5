"""What packuments show of a version in the catalog."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.model import Version, VersionState
from pkgrepo.storage.catalog.packages.version_batches import VersionRow

README_FIELDS: Final = ("readme", "readmeFilename")
WITHDRAWN: Final = "this version was withdrawn"


def manifest_of(version: Version) -> dict[str, Any]:
    """The manifest of a version, without the readme, which only the top of the document has."""
    return {key: value for key, value in version.meta.items() if key not in README_FIELDS}


def deprecation(version: Version | VersionRow) -> str:
    """The message that clients print when they install the version; empty when it is not deprecated."""
    if version.state is VersionState.LIVE:
        return ""
    return version.reason or (WITHDRAWN if version.state is VersionState.YANKED else "deprecated")
