"""
The mark of a readable layout: whether it shows everything that the catalogs had which it was made from.

It is for the day on which the catalog is gone. Each catalog speaks for itself, by its id: one that a lost catalog's
storage was given to knows nothing of what that one had.

==========================  ===================================================
when                        what the mark says of the catalog
==========================  ===================================================
a server starts             open: changes may follow that are not shown
a clean stop                closed, with how many changes are not shown
it cannot be written        as before when a server stops; no mark when it starts
==========================  ===================================================
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.storage.layout_folder import LayoutFolder

from .removed_folders import folders_of, owner_of
from .sidecars import decode, encode

MARK = ".layout.json"
NO_LAYOUT = "no readable layout is kept, so pkgrepo reindex cannot bring back what the storage holds: copy the database"


class CatalogStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What one catalog said when: ``missing`` are changes that were not shown, None while a server was running."""

    at: datetime
    missing: int | None = None
    begun: datetime | None = None  # of a closed one: the time of the open one that it ends


class LayoutMarker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The statements of catalogs by their ids; not ``kept`` where the storage is to have no readable layout."""

    catalogs: dict[str, CatalogStatus] = {}
    kept: bool = True


def read_marker(layout: LayoutFolder) -> LayoutMarker | None:
    """The mark, or None where there is none that makes sense."""
    data = layout.read(MARK)
    try:
        return None if data is None else decode(data, LayoutMarker, MARK)
    except Invalid:
        return None


def discard_layout(layout: LayoutFolder, uids: Collection[str]) -> None:
    """
    Keep no readable layout any more: the folders of the repositories with these public ids go, and the mark says it.

    :raises OSError: some of it is still there
    """
    layout.write(MARK, encode(LayoutMarker(kept=False)))
    for folder in folders_of(layout, uids):
        layout.discard(folder)


def write_status(layout: LayoutFolder, catalog: str, statement: CatalogStatus, known: Collection[str]) -> None:
    """
    Put a catalog's statement into the mark, durably.

    One that closes leaves the open one of another process of the catalog, which has begun since, as it is.
    Those of other catalogs stay while there are folders of repositories that this one does not know; ``known`` are the
    public ids of those that it does.

    :raises OSError: it could not be written
    """
    found = read_marker(layout)
    open_ = None if found is None else found.catalogs.get(catalog)
    if statement.begun is not None and open_ is not None and open_.missing is None and open_.at != statement.begun:
        return
    strange = any(owner_of(layout, folder) not in known for folder in layout.folders())
    if found is None:
        # Something is here that nobody speaks for: it must not look as if this catalog did.
        others = {"": CatalogStatus(at=statement.at)} if strange else {}
    else:
        others = found.catalogs if strange else {}
    try:
        layout.write(MARK, encode(LayoutMarker(catalogs={**others, catalog: statement})))
        layout.sync(MARK)
    except OSError:
        if statement.missing is None:
            layout.remove(MARK)  # what it says may become wrong
        raise
