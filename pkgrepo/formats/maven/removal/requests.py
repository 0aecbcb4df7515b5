"""
Answers DELETE in hosted repositories.

Metadata follows in the same transaction; a plugin without versions is dropped from that of its group in the next one.
"""

from __future__ import annotations

from pkgrepo.errors import AuthenticationRequired, NotFound
from pkgrepo.formats.maven.configuration import PushRules
from pkgrepo.formats.maven.metadata.plugins import change_plugins
from pkgrepo.formats.maven.paths import (
    Checksum,
    Metadata,
    Path,
    PlainFile,
)
from pkgrepo.formats.maven.push_rules import check_token, require_change
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer, Refusal
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Actor, Repository
from pkgrepo.repositories.publish import package_changes
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.repositories.publish.plain_files import remove_plain_file
from pkgrepo.storage.catalog.packages import packages

from .finding import Removal, find_removal


class RemovalRequests:
    """Deletions in one hosted repository."""

    def __init__(self, services: Services, repository: Repository, indexer: Indexer) -> None:
        self._services = services
        self._repository = repository
        self._indexer = indexer

    async def delete(self, request: Request, target: Path) -> Answer:
        """
        Remove what is at a path.

        :raises NotFound: there is nothing; :raises Refusal: the repository does not allow it (``yanking_allowed``)
        """
        repository = self._repository
        access = self._services.access
        identity = await access.identify(request)
        if identity.anonymous:
            raise AuthenticationRequired
        await check_token(self._services, identity, repository)
        await access.require(identity, Action.DELETE, repository)
        if not PushRules.of(repository).yanking_allowed:
            raise Refusal(403, "Deleting is disabled in this repository (yanking_allowed)", "yanking_disabled")
        if isinstance(target, Checksum):
            raise _computed("checksums are")
        found: Removal | None = await self._services.catalog.scan(find_removal, repository.id, target)
        if isinstance(target, Metadata) and found != Removal():  # metadata of other directories is stored as it came
            raise _computed("metadata is")
        if found is None:
            raise NotFound("path", target.path)
        actor = actor_of(request, identity)
        publisher = self._services.publisher
        if found.package is None:
            await require_change(self._services, identity, Action.DELETE, repository, PlainFile(target.path))
            await publisher.change(remove_plain_file, repository, target.path, actor)
            return Answer(204)
        await access.require(identity, Action.DELETE, repository, found.package)
        # Tombstones keep deleted versions out of metadata that clients upload. Uploads may use their paths again where
        # overwriting is allowed; elsewhere a path would get other content by way of a deletion.
        burn = True
        if found.version is None:
            await publisher.change(package_changes.remove_package, repository, found.package, actor, burn)
        else:
            await publisher.change(
                package_changes.remove_files,
                repository,
                found.package,
                found.version,
                found.paths,
                actor,
                self._indexer,
                burn,
            )
        await self._drop_plugin(found.package, actor)
        return Answer(204)

    async def _drop_plugin(self, package: str, actor: Actor) -> None:
        """Drop a plugin whose last version was removed from the metadata of its group."""
        if await self._services.catalog.look(packages.package_serial, self._repository.id, package) is None:
            group, _, artifact = package.partition(":")
            await change_plugins(self._services, self._repository, group, actor, gone=frozenset([artifact]))


def _computed(what: str) -> Refusal:
    why = f"{what} computed from the stored files; delete these"
    return Refusal(405, why, "method_not_allowed", headers=((b"Allow", b"GET, HEAD, PUT"),))
