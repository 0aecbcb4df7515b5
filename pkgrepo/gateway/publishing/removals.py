"""Removals that clients ask for by paths or names: of files, versions or packages."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.gateway.services import Services
from pkgrepo.model import Actor, Repository
from pkgrepo.repositories.publish import package_changes
from pkgrepo.repositories.publish.index import Indexer


@frozen
class Removal:
    """What is removed: files at ``paths`` of a version, all of that without them; without a version the package."""

    package: str
    version: str | None = None
    paths: Sequence[str] | None = None


async def remove(
    services: Services, repository: Repository, found: Removal, actor: Actor, index: Indexer, *, burn: bool
) -> None:
    """Remove something; with ``burn`` its paths are not used again. :raises NotFound: it is not there any more"""
    change = services.content.change
    if found.version is None:
        await change(package_changes.remove_package, repository, found.package, actor, burn)
    else:
        remove_files = package_changes.remove_files
        await change(remove_files, repository, found.package, found.version, found.paths, actor, index, burn)
