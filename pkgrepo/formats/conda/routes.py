"""
The path table of a channel: which method of which inner room answers a request.

One catch-all route reads the raw path, see ``paths``. Uploads to a virtual repository go to the repository that takes
them, and so does all that anaconda-client asks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from twisted.python.failure import Failure
from twisted.web.resource import IResource
from werkzeug.exceptions import NotFound as Unrouted

from pkgrepo.errors import NotFound
from pkgrepo.formats.conda.anaconda.requests import answer_anaconda
from pkgrepo.formats.conda.anaconda.targets import WORDS
from pkgrepo.formats.conda.files import ChannelContext, get_file, post_form, put_package
from pkgrepo.formats.conda.index.documents import IndexCaches
from pkgrepo.formats.conda.index.requests import IndexRequests
from pkgrepo.formats.conda.proxied.channels import MemberChannels, MemberIndexRequests
from pkgrepo.formats.conda.proxied.restoring import upstream_folders
from pkgrepo.formats.conda.wheels.following import DOCUMENT as UNCONVERTED
from pkgrepo.formats.conda.wheels.following import list_unconverted
from pkgrepo.gateway.bodies import UPLOADS, misplaced_upload
from pkgrepo.gateway.mounts import below
from pkgrepo.gateway.new_names import publishing_through
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.answering.dispatch import answering, new_app, refuse_unrouted
from pkgrepo.http.answers import Answer, Refusal, text_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.proxy.virtual import publish_target

from .names import SUBDIRS
from .paths import ChannelPath, PackagePath, RootPath, ShardPath, SubdirPath, read_path, split_path
from .refusals import ERRORS

CHANNEL = "packages are uploaded by PUT to {}/<subdir>/<file>"
METHODS = ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"]
READS = frozenset({b"GET", b"HEAD"})

Upload = Callable[[Request], Awaitable[Answer]]

app = new_app()


class CondaSite:
    """One channel as a Klein application."""

    app = app

    def __init__(
        self, services: Services, repository: Repository, caches: IndexCaches, channels: MemberChannels
    ) -> None:
        self._services = services
        self._repository = repository
        self._caches = caches
        self._channels = channels
        hosted = repository.type is RepositoryType.HOSTED
        self._index = (
            IndexRequests(services, repository, caches)
            if hosted
            else MemberIndexRequests(services, repository, caches, channels)
        )
        self._context: ChannelContext = Context(services, repository, caches)

    def resource(self) -> IResource:
        """The application's resource."""
        resource: IResource = self.app.resource()
        return resource

    @app.route("/", methods=METHODS)
    @app.route("/<path:rest>", methods=METHODS)
    @answering(ERRORS)
    async def route(self, request: Request, rest: str = "") -> Answer:  # noqa: ARG002 - it is decoded; the raw path is read
        """Answer any request to the channel."""
        request.repository = self._repository.path
        parts = split_path(below(request.raw_path, self._repository))
        if parts is None:
            raise await self._nothing(request)
        if request.method in READS and not _is_of_anaconda(request, parts):
            return await self._read(request, parts)
        if self._repository.type is RepositoryType.HOSTED:
            return await self._write(request, parts)
        await self._services.access.admit(request, Action.READ, self._repository)
        target = publish_target(self._services.registry, self._repository)

        async def folders() -> list[str]:
            return list(dict.fromkeys([*parts[:1], *await upstream_folders(self._services, self._repository)]))

        services = publishing_through(self._services, request, self._repository, folders)
        return await CondaSite(services, target, self._caches, self._channels)._write(request, parts)  # noqa: SLF001 - of another instance

    def unrouted(self, request: Request, failure: Failure) -> Any:  # noqa: ARG002 - of the signature
        """The same for paths that Klein's routes do not match, such as one that begins with two slashes."""
        return self.route(request)

    async def _read(self, request: Request, parts: list[str]) -> Answer:
        path = read_path(parts)
        if isinstance(path, PackagePath):
            return await get_file(self._context, request, path)
        await self._services.access.admit(request, Action.READ, self._repository)
        if isinstance(path, RootPath):
            return text_answer(f"This is the conda channel {self._repository.path}.\n")
        if isinstance(path, SubdirPath):
            return await self._index.of_folder(request, path)
        if path == ChannelPath(UNCONVERTED):
            return await list_unconverted(self._context, request)
        if isinstance(path, ChannelPath):
            return await self._index.of_channel(request, path)
        if isinstance(path, ShardPath):
            return await self._index.shard(request, path)
        raise await self._nothing(request)

    async def _write(self, request: Request, parts: list[str]) -> Answer:
        if _is_of_anaconda(request, parts):
            return await answer_anaconda(self._context, request, parts)
        match request.method, parts:
            case b"PUT", [*_, subdir, file] if len(parts) <= 3 and subdir in SUBDIRS:
                return await put_package(self._context, request, subdir, file)
            case b"POST", ["api", "channels", _, "upload", file]:
                return await put_package(self._context, request, None, file)
            case b"POST", ["api", "v1", "upload", _]:
                return await post_form(self._context, request)
        await self._services.access.admit(request, Action.READ, self._repository)
        headers = ((b"Allow", b"GET, HEAD"),)
        refusal = Refusal(405, "this address does not take this method", "method_not_allowed", headers=headers)
        raise misplaced_upload(self._services.base_url(request), request, refusal, CHANNEL)

    async def _nothing(self, request: Request) -> Exception:
        """The error for an address with nothing, for callers who may know of the repository."""
        await self._services.access.admit(request, Action.READ, self._repository)
        error = NotFound("address", below(request.raw_path, self._repository).decode("ascii", "replace")[:200])
        if request.method not in UPLOADS:
            return error
        return misplaced_upload(
            self._services.base_url(request), request, Refusal(404, str(error), "not_found"), CHANNEL
        )


def _is_of_anaconda(request: Request, parts: list[str]) -> bool:
    """Whether anaconda-client asks this. It never sends PUT, whose channel may have any name."""
    return bool(parts) and parts[0] in WORDS and request.method != b"PUT"


_handle: Any = CondaSite.app.handle_errors(Unrouted)
_handle(CondaSite.unrouted)
refuse_unrouted(CondaSite.app, ERRORS)
