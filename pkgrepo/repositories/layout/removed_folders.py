"""
Folders of removed repositories in the readable layout.

They have to go, or the catalog, when it is built again from the layout, would have the repositories back. Nothing is
taken away only because the catalog does not know it: after a lost database that is everything.
"""

from __future__ import annotations

from collections.abc import Collection

from pkgrepo.errors import Invalid
from pkgrepo.storage.layout_folder import LayoutFolder

from .sidecars import REPOSITORY, RepositorySidecar, decode


def owner_of(layout: LayoutFolder, folder: str) -> str | None:
    """The public id of the repository that a folder shows, or None where it does not tell."""
    place = f"{folder}/{REPOSITORY}"
    data = layout.read(place)
    try:
        return None if data is None else decode(data, RepositorySidecar, place).uid
    except Invalid:
        return None


def discard_folder(layout: LayoutFolder, folder: str, uids: Collection[str]) -> None:
    """
    Take away the folder of a removed repository.

    It stays where it tells that it shows another than those with these public ids, as when the catalog was put back to
    an older state.

    :raises OSError: the folder cannot be moved out of sight
    """
    owner = owner_of(layout, folder)
    if owner is None or owner in uids:
        layout.discard(folder)


def folders_of(layout: LayoutFolder, uids: Collection[str]) -> list[str]:
    """The folders that show one of the repositories with these public ids."""
    return [folder for folder in layout.folders() if owner_of(layout, folder) in uids]
