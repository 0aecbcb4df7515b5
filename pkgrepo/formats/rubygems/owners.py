"""The owners of a gem: names of users in the metadata of the package."""

from __future__ import annotations

from typing import Final

from pkgrepo.interfaces import Reader
from pkgrepo.model import Package
from pkgrepo.storage.catalog.packages import versions

OWNERS: Final = "owners"


def owners_of(r: Reader, package: Package) -> list[str]:
    """The owners; until the first change that is who published the first version."""
    stated = package.meta.get(OWNERS)
    if stated is not None:
        return list(stated)
    publisher = versions.first_publisher(r, package.id)
    return [publisher] if publisher else []
