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

from collections.abc import Sequence
from typing import Final

from twisted.web.resource import IResource

from pkgrepo.errors import Invalid, NotFound, ReadOnly
from pkgrepo.formats.maven.caches import MavenCaches
from pkgrepo.formats.maven.deploy.addresses import Address, find_address
from pkgrepo.formats.maven.deploy.requests import answer_deployment
from pkgrepo.formats.maven.files import admit, get_checksum, get_file
from pkgrepo.formats.maven.listing import find_moved, list_directory
from pkgrepo.formats.maven.metadata.requests import get_metadata
from pkgrepo.formats.maven.removal import evict, remove
from pkgrepo.formats.maven.search.query import scope_of
from pkgrepo.formats.maven.search.requests import search
from pkgrepo.formats.maven.upload.requests import upload
from pkgrepo.gateway.bodies import misplaced_upload
from pkgrepo.gateway.mounts import below
from pkgrepo.gateway.new_names import publishing_through
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.answering.dispatch import answering, new_app, refuse_unrouted
from pkgrepo.http.answers import Answer, Refusal
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.proxy.virtual import publish_target, publish_targets
from pkgrepo.storage.catalog.packages import packages

from .names import is_snapshot
from .paths import ArtifactFile, Checksum, Directory, FilePath, Metadata, Path, PlainFile, parse_path
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

    def __init__(self, services: Services, repository: Repository, caches: MavenCaches) -> None:
        self._context = Context(services, repository, caches)
        self._services = services
        self._repository = repository

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
            return await evict(self._context, request, target)
        sites = await self._targets(request, target)
        if method == b"PUT":
            return await sites[0]._put(request, target)  # noqa: SLF001 - its own class
        return await _delete(request, target, sites)

    async def _get(self, request: Request, target: Path) -> Answer:
        file = target.of if isinstance(target, Checksum) else target
        if isinstance(file, Directory):
            return await list_directory(self._context, request, file)
        if isinstance(file, Metadata):
            algorithm = target.algorithm if isinstance(target, Checksum) else None
            identity, key = await admit(self._context, request, file)
            return await get_metadata(self._context, request, identity, key, file, algorithm)
        if isinstance(target, Checksum):
            return await get_checksum(self._context, request, target)
        if file.path == SEARCH:
            scope = await scope_of(self._services, request, self._repository)
            return await search(self._services, request, scope)
        try:
            return await get_file(self._context, request, file)
        except NotFound:
            moved = await find_moved(self._context, request, file.path)
            if moved is None:
                raise
            return moved

    async def _put(self, request: Request, target: Path) -> Answer:
        if isinstance(target, Directory):
            raise NotFound("path", target.path)
        return await upload(self._context, request, target)

    async def _deploy(self, request: Request, address: Address) -> Answer | None:
        """The answer at the address of a deployment; None if an ordinary path looks like one."""
        try:
            await self._admit(request)
            target = publish_target(self._services.registry, self._repository)
        except ReadOnly:
            if request.method in (b"GET", b"HEAD"):
                return None
            raise
        return await answer_deployment(self._site(request, target)._context, request, address)  # noqa: SLF001 - its own class

    async def _targets(self, request: Request, path: Path) -> list[MavenSite]:
        """
        The sites of the hosted repositories that take changes at a path.

        A path of a version belongs to one. Metadata of an artifact go to the first one that has the artifact: they are
        made of what is stored. Anything else may be in each.

        :raises ReadOnly: no member takes publishes; only callers who may read this repository are told so
        """
        if self._repository.type is RepositoryType.HOSTED:
            return [self]
        await self._admit(request)
        registry, target = self._services.registry, path.of if isinstance(path, Checksum) else path
        snapshot = _is_snapshot(target)
        if snapshot is not None:
            return [self._site(request, publish_target(registry, self._repository, snapshot=snapshot))]
        found = publish_targets(registry, self._repository)
        if isinstance(target, Metadata) and target.package_key is not None:
            look, key = self._services.catalog.look, target.package_key
            has = [await look(packages.package_serial, each.id, key) is not None for each in found]
            found = [found[has.index(True) if any(has) else 0]]
        return [self._site(request, each) for each in found]

    async def _admit(self, request: Request) -> None:
        """Check that the caller may be told where changes go."""
        if self._repository.type is not RepositoryType.HOSTED:
            await self._services.access.admit(request, Action.READ, self._repository)

    def _site(self, request: Request, target: Repository) -> MavenSite:
        if target is self._repository:
            return self
        services = publishing_through(self._services, request, self._repository)
        return MavenSite(services, target, self._context.caches)


async def _delete(request: Request, target: Path, sites: Sequence[MavenSite]) -> Answer:
    """Remove what is at a path, wherever it is. :raises NotFound: it is nowhere"""
    answer: Answer | None = None
    for site in sites:
        try:
            answer = await remove(site._context, request, target)  # noqa: SLF001 - of the same module
        except NotFound:
            if answer is None and site is sites[-1]:
                raise
    assert answer is not None
    return answer


def _is_snapshot(target: FilePath | Directory) -> bool | None:
    """Whether a path is one of a snapshot; None if it is not that of a version."""
    match target:
        case ArtifactFile():
            return is_snapshot(target.coordinates.version)
        case Metadata():
            return True if target.version is not None else None
        case Directory():
            return is_snapshot(target.path.rpartition("/")[2]) or None
        case PlainFile():
            return None


refuse_unrouted(MavenSite.app, ERRORS)
