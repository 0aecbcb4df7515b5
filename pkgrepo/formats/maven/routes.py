"""
The path table of a Maven repository.

Klein has one route for all paths, since paths have any number of segments, and an encoded slash must not separate any:
``paths`` reads the raw path.

=============  =====================================  =================================================================
method         path                                   answered by
=============  =====================================  =================================================================
GET, HEAD      file, checksum of a file               ``files``
GET, HEAD      directory                              ``listing``
GET, HEAD      ``solrsearch/select``                  ``search``
GET, HEAD      metadata, checksum of metadata         ``metadata``
PUT            file, checksum, plain file, metadata   ``upload``
DELETE         file, version, artifact, build         ``removal``
any            ``deploy`` and what is below it        ``deploy``, if it is the address of a deployment
=============  =====================================  =================================================================
"""

from __future__ import annotations

from typing import Final

from twisted.web.resource import IResource

from pkgrepo.errors import Invalid, NotFound, ReadOnly
from pkgrepo.formats.maven.deploy.addresses import Address, find_address
from pkgrepo.formats.maven.deploy.requests import DeployRequests
from pkgrepo.formats.maven.deploy.running import Running
from pkgrepo.formats.maven.files.requests import FileRequests
from pkgrepo.formats.maven.listing.requests import ListingRequests
from pkgrepo.formats.maven.listing.turns import ListingTurns
from pkgrepo.formats.maven.metadata.requests import MetadataRequests
from pkgrepo.formats.maven.removal.evictions import EvictionRequests
from pkgrepo.formats.maven.removal.requests import RemovalRequests
from pkgrepo.formats.maven.search.repositories import scope_of
from pkgrepo.formats.maven.search.requests import search
from pkgrepo.formats.maven.upload.requests import UploadRequests
from pkgrepo.gateway.answers.spliced_documents import SplicedDocuments
from pkgrepo.gateway.klein_app import new_app
from pkgrepo.gateway.mounts import below
from pkgrepo.gateway.services import Services
from pkgrepo.gateway.uploads import misplaced_upload
from pkgrepo.http.answering.dispatch import answering, refuse_unrouted
from pkgrepo.http.answers import Answer, Refusal
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.proxy.publishing import publish_target
from pkgrepo.repositories.publish.index import Indexer

from .paths import Checksum, Directory, Metadata, Path, parse_path
from .refusals import ERRORS

SEARCH: Final = "solrsearch/select"  # editors and build tools append it to the repository's address
DEPLOY: Final = "deploy to {}/"
METHODS: Final = ["GET", "HEAD", "PUT", "POST", "DELETE"]
ALLOW: Final = ((b"Allow", b"GET, HEAD, PUT, DELETE"),)

app = new_app()


class MavenSite:
    """
    One Maven repository as a Klein application.

    Changes go to the site of the repository that takes them, whose permissions and rules apply.
    """

    app = app

    def __init__(
        self,
        services: Services,
        repository: Repository,
        indexer: Indexer,
        running: Running,
        documents: SplicedDocuments,
        listing_turns: ListingTurns,
    ) -> None:
        self._services = services
        self._repository = repository
        self._indexer = indexer
        self._running = running
        self._documents = documents
        self._files = FileRequests(services, repository)
        self._listing_turns = listing_turns
        self._listings = ListingRequests(services, repository, listing_turns)
        self._metadata = MetadataRequests(services, repository, documents)
        self._uploads = UploadRequests(services, repository, indexer)
        self._evictions = EvictionRequests(services, repository, indexer)
        self._removals = RemovalRequests(services, repository, indexer)
        self._deploys = DeployRequests(services, repository, indexer, running)

    def resource(self) -> IResource:
        """The application's resource."""
        resource: IResource = self.app.resource()
        return resource

    @app.route("/", methods=METHODS)
    @app.route("/<raw:rest>", methods=METHODS)
    @answering(ERRORS)
    async def route(self, request: Request, rest: str = "") -> Answer:  # noqa: ARG002 - it is decoded; the raw path is read
        """Answer any request to the repository."""
        request.repository = self._repository.path
        method = request.method
        deploy = find_address(below(request.raw_path))
        if deploy is not None and (answer := await self._deploy(request, deploy)) is not None:
            return answer
        try:
            target = parse_path(below(request.raw_path), directory_ok=method != b"PUT")
        except Invalid as error:
            raise misplaced_upload(
                self._services.base_url(request), request, Refusal(400, str(error), "invalid"), DEPLOY
            ) from None
        if method in (b"GET", b"HEAD"):
            return await self._get(request, target)
        if method == b"POST":
            refusal = Refusal(405, "files are uploaded by PUT", "method_not_allowed", headers=ALLOW)
            raise misplaced_upload(self._services.base_url(request), request, refusal, DEPLOY)
        if method == b"DELETE" and self._repository.type is RepositoryType.PROXY:
            return await self._evictions.delete(request, target)
        site = await self._target(request)
        return await (site._put if method == b"PUT" else site._delete)(request, target)  # noqa: SLF001 - its own class

    async def _get(self, request: Request, target: Path) -> Answer:
        file = target.of if isinstance(target, Checksum) else target
        if isinstance(file, Directory):
            return await self._listings.get(request, file)
        if isinstance(file, Metadata):
            algorithm = target.algorithm if isinstance(target, Checksum) else None
            identity, key = await self._files.admit(request, file)
            return await self._metadata.get(request, identity, key, file, algorithm)
        if isinstance(target, Checksum):
            return await self._files.checksum(request, target)
        if file.path == SEARCH:
            scope = await scope_of(self._services, request, self._repository)
            return await search(self._services, request, scope)
        try:
            return await self._files.file(request, file)
        except NotFound:
            moved = await self._listings.moved(request, file.path)
            if moved is None:
                raise
            return moved

    async def _put(self, request: Request, target: Path) -> Answer:
        if isinstance(target, Directory):
            raise NotFound("path", target.path)
        return await self._uploads.put(request, target)

    async def _delete(self, request: Request, target: Path) -> Answer:
        return await self._removals.delete(request, target)

    async def _deploy(self, request: Request, address: Address) -> Answer | None:
        """The answer at the address of a deployment; None if an ordinary path looks like one."""
        try:
            site = await self._target(request)
        except ReadOnly:
            if request.method in (b"GET", b"HEAD"):
                return None
            raise
        return await site._deploys.answer(request, address)  # noqa: SLF001 - its own class

    async def _target(self, request: Request) -> MavenSite:
        """
        The site of the hosted repository that takes changes.

        :raises ReadOnly: there is none; only callers who may read this repository are told so
        """
        if self._repository.type is RepositoryType.HOSTED:
            return self
        await self._services.access.admit(request, Action.READ, self._repository)
        target = publish_target(self._services.registry, self._repository)
        return MavenSite(self._services, target, self._indexer, self._running, self._documents, self._listing_turns)


refuse_unrouted(MavenSite.app, ERRORS)
