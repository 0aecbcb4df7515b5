"""
The marker file of a readable layout: whether the layout shows everything that its catalogs had.

``reindex`` reads it after the catalog was lost. It has a status for each catalog id, because a storage that was adopted
from a lost catalog also shows what that catalog had.

==========================  ==========================================================
event                       status of the catalog in the marker
==========================  ==========================================================
a server starts             open: the layout may lack changes
a clean stop                closed, with the number of changes that the layout lacks
writing it fails            at a stop: unchanged; at a start: the marker is removed
==========================  ==========================================================

The folders of removed repositories are removed, because a reindex would restore these repositories. A folder is never
removed only because the catalog does not know its repository: after the loss of a database that would be all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.repositories.layout.sidecars import REPOSITORY, RepositorySidecar, decode, encode
from pkgrepo.storage.layout_folder import LayoutFolder

MARKER = ".layout.json"
NO_LAYOUT = "no readable layout is kept, so pkgrepo reindex cannot bring back what the storage holds: copy the database"


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


class CatalogStatus(msgspec.Struct, frozen=True, kw_only=True):
    """``missing`` is the number of changes that the layout lacked at that time, None while a server runs."""

    at: datetime
    missing: int | None = None
    begun: datetime | None = None  # in a closed status: ``at`` of the open status that it replaces


class LayoutMarker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The statuses by catalog id. ``kept`` is false if the storage has no readable layout."""

    catalogs: dict[str, CatalogStatus] = {}
    kept: bool = True


def read_marker(layout: LayoutFolder) -> LayoutMarker | None:
    """Return the marker, or None if it is missing or damaged."""
    data = layout.read(MARKER)
    try:
        return None if data is None else decode(data, LayoutMarker, MARKER)
    except Invalid:
        return None


def discard_layout(layout: LayoutFolder, owners: Mapping[str, str]) -> None:
    """
    Remove the folders of repositories, and write into the marker that there is no layout.

    ``owners`` has the folder of each repository by its public id. A new one may lack its sidecar still.

    :raises OSError: some files remain
    """
    layout.write(MARKER, encode(LayoutMarker(kept=False)))
    for folder in folders_of(layout, owners):
        layout.discard(folder)
    for uid, folder in owners.items():
        discard_folder(layout, folder, {uid})


def write_status(layout: LayoutFolder, catalog: str, status: CatalogStatus, known: Collection[str]) -> None:
    """
    Set the status of a catalog in the marker, durably.

    A closed status does not replace the open status of a process that started later. The statuses of other catalogs are
    kept while the layout has folders of repositories that are not ``known``, the public ids of this catalog's.

    :raises OSError: it could not be written
    """
    found = read_marker(layout)
    open_ = None if found is None else found.catalogs.get(catalog)
    if status.begun is not None and open_ is not None and open_.missing is None and open_.at != status.begun:
        return
    unknown_folders = any(owner_of(layout, folder) not in known for folder in layout.folders())
    if found is None:
        # There are folders of an unknown catalog, which must not look complete.
        others = {"": CatalogStatus(at=status.at)} if unknown_folders else {}
    else:
        others = found.catalogs if unknown_folders else {}
    try:
        layout.write(MARKER, encode(LayoutMarker(catalogs={**others, catalog: status})))
        layout.sync(MARKER)
    except OSError:
        if status.missing is None:
            layout.remove(MARKER)  # its status may become wrong
        raise
