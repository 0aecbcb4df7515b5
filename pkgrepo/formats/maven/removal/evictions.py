"""
Answers DELETE in proxies, where it evicts what is cached: the next client makes upstreams be asked again.

The paths mean what they mean in a hosted repository; that of metadata means what upstreams said of the artifact.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from pkgrepo.errors import AuthenticationRequired, NotFound
from pkgrepo.formats.maven.paths import Checksum, Metadata, Path
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Actor, Repository
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.repositories.publish.package_changes import EVICTED, remove_files
from pkgrepo.storage.catalog.packages import packages, versions
from pkgrepo.storage.catalog.upstreams import upstream_documents

from .finding import Removal, find_removal


class EvictionRequests:
    """Evictions from the cache of one proxy, for those who may administer it."""

    def __init__(self, services: Services, repository: Repository, indexer: Indexer) -> None:
        self._services = services
        self._repository = repository
        self._indexer = indexer

    async def delete(self, request: Request, target: Path) -> Answer:
        """Evict what is kept of a path. :raises NotFound: nothing is kept; :raises Forbidden: others may do it"""
        access, repository = self._services.access, self._repository
        identity = await access.identify(request)
        if identity.anonymous:
            raise AuthenticationRequired
        await access.require(identity, Action.ADMIN, repository)
        await self._services.proxy.settle()
        file = target.of if isinstance(target, Checksum) else target
        keys = await self._services.catalog.look(_document_keys, repository.id, file)
        if keys:
            await self._services.proxy.documents.forget(repository, keys)
        removal = None
        if not isinstance(file, Metadata):
            removal = await self._services.catalog.look(find_removal, repository.id, file)
        if removal is None and not keys:
            raise NotFound("path", target.path)
        self._services.proxy.package_files.forget(repository)
        if removal is not None and removal.package is not None:
            await self._evict(removal.package, removal, actor_of(request, identity))
        return Answer(204)

    async def _evict(self, package: str, removal: Removal, actor: Actor) -> None:
        keys: Sequence[str] = () if removal.version is None else (removal.version,)
        for key in keys or await self._services.catalog.look(_version_keys, self._repository.id, package):
            with suppress(NotFound):  # it was removed meanwhile
                await self._services.publisher.change(
                    partial(remove_files, kind=EVICTED),
                    self._repository,
                    package,
                    key,
                    removal.paths,
                    actor,
                    self._indexer,
                    False,
                )


def _document_keys(reader: Reader, repository_id: int, target: Path) -> list[str]:
    """The keys of the answers of upstreams about a path: metadata of all routes, or a file that may change."""
    if isinstance(target, Metadata) and target.package_key is not None:
        found = upstream_documents.documents_of_package(reader, repository_id, target.package_key)
        name = f"{target.package_key}:{target.version}" if target.version else target.package_key
        return [each.key for each in found if each.key.startswith(f"metadata/{name}@")]
    key = f"file/{target.path}"
    return [] if upstream_documents.find_document(reader, repository_id, key) is None else [key]


def _version_keys(reader: Reader, repository_id: int, package_key: str) -> list[str]:
    package = packages.find_package(reader, repository_id, package_key)
    return [] if package is None else [each.key for each in versions.list_versions(reader, package.id)]
