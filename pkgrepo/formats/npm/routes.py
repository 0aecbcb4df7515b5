"""
The paths of a hosted npm repository.

Scoped names come with their slash encoded, which no router survives: one catch-all route reads the raw path (see
``paths``), and a method of the class in charge answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from twisted.web.resource import IResource

from pkgrepo.formats.npm.audit.requests import AdvisoryShelf
from pkgrepo.formats.npm.change.commands import DocumentChange
from pkgrepo.formats.npm.change.requests import Changing, read_change, verb_of_change
from pkgrepo.formats.npm.change.written_document import Written, read_written
from pkgrepo.formats.npm.packument.reading import Reading, find_selected
from pkgrepo.formats.npm.publish.envelope import read_name, read_publication
from pkgrepo.formats.npm.publish.receiving import SMALL_DOCUMENT, Received, Receiver, largest_body
from pkgrepo.formats.npm.publish.release import Publications
from pkgrepo.gateway.access import actor_of
from pkgrepo.gateway.klein_app import new_app
from pkgrepo.gateway.mounts import below
from pkgrepo.gateway.services import Services
from pkgrepo.gateway.spliced_documents import SplicedDocuments
from pkgrepo.gateway.uploads import check_length
from pkgrepo.http.answering.dispatch import answering, refuse_unrouted
from pkgrepo.http.answers import Answer, Refusal
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Actor, Identity, Repository

from . import semver
from .admission import UNPUBLISH, admit_change, admit_reader, require, verb_of
from .api import Api
from .paths import ApiPath, PackagePath, Path, RootPath, TarballPath, VersionPath, read_path
from .refusals import ERRORS

METHODS = ["GET", "HEAD", "PUT", "POST", "DELETE"]
READS = frozenset({b"GET", b"HEAD"})

Handler = Callable[[Request, Any], Awaitable[Answer]]

app = new_app()


class NpmSite:
    """One hosted npm repository as a Klein application."""

    app = app

    def __init__(
        self, services: Services, repository: Repository, packuments: SplicedDocuments, shelf: AdvisoryShelf
    ) -> None:
        self._services = services
        self._repository = repository
        self._reading = Reading(services, repository, packuments)
        self._publications = Publications(services, repository)
        self._changing = Changing(services, repository)
        self._api = Api(services, repository, self._reading, self._changing, shelf)

    def resource(self) -> IResource:
        """The application's resource."""
        resource: IResource = self.app.resource()
        return resource

    @app.route("/", methods=METHODS)
    @app.route("/<path:rest>", methods=METHODS)
    @answering(ERRORS)
    async def route(self, request: Request, rest: str = "") -> Answer:  # noqa: ARG002 - decoded, and so of no use
        """Every request."""
        request.repository = self._repository.path
        found = read_path(below(request.raw_path))
        if not found:
            raise Refusal(
                404 if request.method in READS else 400, "no package, version or file can be called so", "invalid_path"
            )
        path = self._choose(found)
        if isinstance(path, ApiPath):
            return await self._api.answer(request, path.parts)
        handler = self._handler(request.method, path)
        if handler is None:
            raise self._not_allowed(path)
        return await handler(request, path)

    def _choose(self, found: Sequence[Path]) -> Path:
        """Of several readings of one address the first that exists; the first of all where none does."""
        return found[0] if len(found) == 1 else next(filter(self._exists, found), found[0])

    def _exists(self, path: Path) -> bool:
        if isinstance(path, (ApiPath, RootPath)):
            return True
        package = self._reading.find_package(path.name)
        if package is None or not isinstance(path, VersionPath):
            return package is not None
        return self._services.catalog.look_inline(find_selected, package.id, path.selector) is not None

    def _handler(self, method: bytes, path: Path) -> Handler | None:
        verb = "GET" if method in READS else method.decode("ascii")
        return self._handlers().get((verb, type(path)))

    def _handlers(self) -> dict[tuple[str, type], Handler]:
        return {
            ("GET", RootPath): self._info,
            ("GET", PackagePath): self._packument,
            ("GET", VersionPath): self._version,
            ("GET", TarballPath): self._tarball,
            ("PUT", RootPath): self._put,
            ("PUT", PackagePath): self._put,
            ("PUT", VersionPath): self._put,
            ("DELETE", PackagePath): self._remove_package,
            ("DELETE", TarballPath): self._remove_version,
        }

    def _not_allowed(self, path: Path, why: str = "this address does not take this method") -> Refusal:
        """The refusal of a method; it names those that are taken (RFC 9110 section 15.5.6)."""
        verbs = [verb for verb, kind in self._handlers() if isinstance(path, kind)]
        allowed = ", ".join(["GET", "HEAD", *verbs[1:]]).encode("ascii")
        return Refusal(405, why, "method_not_allowed", headers=((b"Allow", allowed),))

    # Reading

    async def _info(self, request: Request, _path: RootPath) -> Answer:
        await admit_reader(self._services, request, self._repository, None)
        return await self._reading.info()

    async def _packument(self, request: Request, path: PackagePath) -> Answer:
        await admit_reader(self._services, request, self._repository, path.name)
        return await self._reading.packument(request, path.name)

    async def _version(self, request: Request, path: VersionPath) -> Answer:
        await admit_reader(self._services, request, self._repository, path.name)
        return self._reading.version(request, path.name, path.selector)

    async def _tarball(self, request: Request, path: TarballPath) -> Answer:
        identity = await admit_reader(self._services, request, self._repository, path.name)
        return await self._reading.tarball(request, identity, path)

    # Publishing and changing

    async def _put(self, request: Request, path: RootPath | PackagePath | VersionPath) -> Answer:
        named = None if isinstance(path, RootPath) else path.name
        revision = path.revision if isinstance(path, PackagePath) else ""
        identity = await self._services.access.identify(request)
        self._require_write(identity, named, verb_of(request, revision))
        check_length(request, largest_body(self._services.max_upload))
        async with self._services.publisher.stage(self._repository) as staged:
            received = await Receiver(request, staged, max_tarball=self._services.max_upload).receive()
            identity = await self._services.access.identify(request)  # again: the body may have taken hours
            actor = actor_of(request, identity)
            if received.tarball is None:
                written, change = await self._parse(received, lambda: _read(received, revision, actor))
                name = read_name(written.members, named)
                if isinstance(path, VersionPath):
                    raise Refusal(
                        400, f"the document has no tarball attached; it is {name} that changes, at its address"
                    )
                self._require_write(identity, name, verb_of_change(change))
                if self._reading.find_package(name) is None:
                    raise Refusal(
                        400, f"the document has no tarball attached, and there is no package {name} to change"
                    )
                return await self._changing.apply(name, change, identity, actor)
            publication = await self._parse(received, lambda: read_publication(received.scanned, named))
            self._require_write(identity, publication.name, "publish")
            if isinstance(path, VersionPath) and not semver.is_same(path.selector, publication.version):
                raise Refusal(400, f"the document publishes {publication.version.text}, not {path.selector}")
            return await self._publications.publish(staged, publication, received.tarball, identity, actor)

    async def _parse(self, received: Received, parse: Callable[[], Any]) -> Any:
        if len(received.scanned.text) <= SMALL_DOCUMENT:
            return parse()
        return await self._services.pools.cpu(parse)

    def _require_write(self, identity: Identity, name: str | None, verb: str) -> None:
        require(self._services, identity, Action.WRITE, self._repository, name, verb)

    async def _remove_package(self, request: Request, path: PackagePath) -> Answer:
        if not path.revision:
            raise self._not_allowed(path, "a package is removed at a revision of it: DELETE .../-rev/<rev>")
        identity = await self._admit_removal(request, path.name)
        return await self._changing.remove_package(path.name, path.revision, actor_of(request, identity))

    async def _remove_version(self, request: Request, path: TarballPath) -> Answer:
        identity = await self._admit_removal(request, path.name)
        actor = actor_of(request, identity)
        return await self._changing.remove_version(path.name, path.filename, path.revision, actor)

    async def _admit_removal(self, request: Request, name: str) -> Identity:
        return await admit_change(self._services, request, self._repository, Action.DELETE, name, UNPUBLISH)


refuse_unrouted(NpmSite.app, ERRORS)


def _read(received: Received, revision: str, actor: Actor) -> tuple[Written, DocumentChange]:
    written = read_written(received.scanned)
    return written, read_change(written, revision, actor.name)
