"""
Finds and removes the folders of removed repositories in the readable layout.

If they stayed, a reindex would restore these repositories. A folder is never removed only because the catalog does not
know its repository: after the loss of a database that would be all of them.
"""

from __future__ import annotations

from collections.abc import Collection

from pkgrepo.errors import Invalid
from pkgrepo.storage.layout_folder import LayoutFolder

from .sidecars import REPOSITORY, RepositorySidecar, decode


def owner_of(layout: LayoutFolder, folder: str) -> str | None:
    """Return the public id of the repository that a folder shows, or None if it has no valid sidecar."""
    place = f"{folder}/{REPOSITORY}"
    data = layout.read(place)
    try:
        return None if data is None else decode(data, RepositorySidecar, place).uid
    except Invalid:
        return None


def discard_folder(layout: LayoutFolder, folder: str, uids: Collection[str]) -> None:
    """
    Remove the folder of a removed repository.

    It is kept if its sidecar has another public id than ``uids``, as after the catalog was restored from a backup.

    :raises OSError: the folder cannot be removed
    """
    owner = owner_of(layout, folder)
    if owner is None or owner in uids:
        layout.discard(folder)


def folders_of(layout: LayoutFolder, uids: Collection[str]) -> list[str]:
    """Return the folders that show one of the repositories with these public ids."""
    return [folder for folder in layout.folders() if owner_of(layout, folder) in uids]
