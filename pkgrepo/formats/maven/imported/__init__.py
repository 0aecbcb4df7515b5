"""Taking in artifacts: from folders and addresses with the layout of a repository, and from air-gap bundles."""

from __future__ import annotations

from typing import Final

from pkgrepo.gateway.imported.engine import Order, TakePackage, Tools
from pkgrepo.gateway.imported.items import Source
from pkgrepo.gateway.imported.kinds import Imported
from pkgrepo.repositories.format import StoredFormat

from .bundle import MavenBundle
from .files import MavenTaker
from .sources import MavenFolder, MavenSite, open_assets


def _take(tools: Tools, order: Order, _source: Source, format_: StoredFormat) -> TakePackage:
    return MavenTaker(tools=tools, order=order, indexer=format_.index)


def _named(directory: str) -> tuple[str, str] | None:
    """The version whose files are in a directory, as far as its path tells."""
    group, _, version = directory.rpartition("/")
    group, _, artifact = group.rpartition("/")
    return (f"{group.replace('/', '.')}:{artifact}", version) if group else None


IMPORTED: Final = Imported(
    kind="maven",
    about="Maven artifacts: a repository with listings, or a folder with the layout of one.",
    address=lambda site, request: MavenSite(site, request.names),
    folder=lambda folder, request: MavenFolder(folder, follow_links=request.follow_links),
    in_bundle=lambda folder, _: MavenBundle(folder),
    taker=_take,
    assets=open_assets,
    named=_named,
)
