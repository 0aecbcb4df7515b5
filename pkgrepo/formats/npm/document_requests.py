"""
A PUT of a package's document: a publish when a tarball is attached, else a change of what was published.

npm uses one method and address for both, so that only the body tells which it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.change.document_change import DocumentChange, read_change, verb_of_change
from pkgrepo.formats.npm.change.requests import ChangeRequests
from pkgrepo.formats.npm.change.written_document import read_written
from pkgrepo.formats.npm.packument.requests import PackageRequests
from pkgrepo.formats.npm.publish.envelope import read_name, read_publication
from pkgrepo.formats.npm.publish.receiving import SMALL_DOCUMENT, Receiver, largest_body
from pkgrepo.formats.npm.publish.requests import PublishRequests
from pkgrepo.formats.npm.publish.sent_document import SentDocument
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.services import Services
from pkgrepo.gateway.uploads import check_declared_length, misplaced_upload
from pkgrepo.http.answers import Answer, Refusal
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Actor, BlobInfo, Identity, Repository
from pkgrepo.repositories.publish.staged import Staged

from . import semver
from .authorization import RepositoryRequests, verb_of_put
from .paths import PackagePath, RootPath, VersionPath
from .refusals import REGISTRY

T = TypeVar("T")

DocumentPath = RootPath | PackagePath | VersionPath


class DocumentRequests(RepositoryRequests):
    """Answers PUT requests of one hosted repository."""

    def __init__(
        self, services: Services, repository: Repository, packages: PackageRequests, changes: ChangeRequests
    ) -> None:
        super().__init__(services, repository)
        self._packages = packages
        self._changes = changes
        self._publishes = PublishRequests(services, repository)

    async def put(self, request: Request, path: DocumentPath) -> Answer:
        """Publish or change a package. :raises Forbidden: the caller may not do what the document asks for"""
        named = None if isinstance(path, RootPath) else path.name
        revision = path.revision if isinstance(path, PackagePath) else ""
        identity = await self._services.access.identify(request)
        await self._require(identity, Action.WRITE, named, verb_of_put(request, revision))
        check_declared_length(request, largest_body(self._services.max_upload))
        async with self._services.publisher.stage(self._repository) as staged:
            received = await Receiver(request, staged, max_tarball=self._services.max_upload).receive()
            identity = await self._services.access.identify(request)  # again: the body may have taken hours
            actor = actor_of(request, identity)
            try:
                if received.tarball is None:
                    return await self._change(received.document, path, named, revision, identity, actor)
                return await self._publish(received.document, received.tarball, staged, path, named, identity, actor)
            except Invalid as error:
                if isinstance(path, VersionPath) and error.pointer == "name":  # ``<registry>/npm/<package>``
                    refusal = Refusal(400, str(error), "invalid")
                    raise misplaced_upload(self._services.base_url(request), request, refusal, REGISTRY) from None
                raise

    async def _change(
        self,
        document: SentDocument,
        path: DocumentPath,
        named: str | None,
        revision: str,
        identity: Identity,
        actor: Actor,
    ) -> Answer:
        def parse() -> tuple[str, DocumentChange]:
            written = read_written(document)
            change = read_change(written, revision, actor.name)
            return read_name(written.members, named), change

        name, change = await self._parse(document, parse)
        if isinstance(path, VersionPath):
            raise Refusal(400, f"the document has no tarball attached; it is {name} that changes, at its address")
        await self._require(identity, Action.WRITE, name, verb_of_change(change))
        if await self._packages.find_package(name) is None:
            raise Refusal(400, f"the document has no tarball attached, and there is no package {name} to change")
        return await self._changes.apply(name, change, identity, actor)

    async def _publish(
        self,
        document: SentDocument,
        tarball: BlobInfo,
        staged: Staged,
        path: DocumentPath,
        named: str | None,
        identity: Identity,
        actor: Actor,
    ) -> Answer:
        publication = await self._parse(document, lambda: read_publication(document, named))
        await self._require(identity, Action.WRITE, publication.name, "publish")
        if isinstance(path, VersionPath) and not semver.is_same(path.selector, publication.version):
            raise Refusal(400, f"the document publishes {publication.version.text}, not {path.selector}")
        return await self._publishes.publish(staged, publication, tarball, identity, actor)

    async def _parse(self, document: SentDocument, parse: Callable[[], T]) -> T:
        """The result of ``parse``, which runs in a thread when the document is large."""
        if len(document.text) <= SMALL_DOCUMENT:
            return parse()
        return await self._services.pools.cpu(parse)
