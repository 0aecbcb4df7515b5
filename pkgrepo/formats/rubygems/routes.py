"""
The path table of a Ruby repository: which method of which inner room answers a request.

One catch-all route reads the raw path (see ``paths``), since ``gem`` doubles slashes, which a router would redirect.
Each method authorizes its own caller. Changes of a virtual repository go to the repository that takes them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from twisted.python.failure import Failure
from twisted.web.resource import IResource
from werkzeug.exceptions import NotFound as Unrouted

from pkgrepo.errors import NotFound
from pkgrepo.formats.rubygems.api.requests import ApiRequests
from pkgrepo.formats.rubygems.changes import ChangeRequests, OwnerRequests
from pkgrepo.formats.rubygems.index.gem_lists import NAMES
from pkgrepo.formats.rubygems.index.requests import FileRequests, IndexCaches, IndexRequests
from pkgrepo.formats.rubygems.login import KeyRequests
from pkgrepo.formats.rubygems.paths import gem_path, quick_path
from pkgrepo.formats.rubygems.proxied.merged_lists import MergedLists
from pkgrepo.formats.rubygems.proxied.requests import ListRequests, MemberApiRequests
from pkgrepo.formats.rubygems.push.requests import PushRequests
from pkgrepo.gateway.klein_app import new_app
from pkgrepo.gateway.mounts import below
from pkgrepo.gateway.new_names import publishing_through
from pkgrepo.gateway.services import Services
from pkgrepo.gateway.uploads import UPLOADS, misplaced_upload
from pkgrepo.http.answering.dispatch import answering, refuse_unrouted
from pkgrepo.http.answers import Answer, Refusal, text_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.proxy.virtual import publish_target

from .names import is_name
from .paths import ApiPath, CompactPath, GemPath, InfoPath, Path, QuickPath, RootPath, SpecsPath, read_path
from .refusals import ERRORS

METHODS = ["GET", "HEAD", "PUT", "POST", "DELETE"]
READS = frozenset({b"GET", b"HEAD"})

Handler = Callable[[Request, Any], Awaitable[Answer]]
ApiHandler = Callable[[Request], Awaitable[Answer]]

app = new_app()


class RubySite:
    """One Ruby repository as a Klein application."""

    app = app

    def __init__(self, services: Services, repository: Repository, caches: IndexCaches, merged: MergedLists) -> None:
        self._services = services
        self._repository = repository
        self._caches = caches
        self._merged = merged
        self._index = IndexRequests(services, repository, caches)
        hosted = repository.type is RepositoryType.HOSTED
        self._lists = self._index if hosted else ListRequests(services, repository, merged)
        self._files = FileRequests(services, repository)
        self._pushes = PushRequests(services, repository)
        self._changes = ChangeRequests(services, repository)
        self._owners = OwnerRequests(services, repository)
        self._keys = KeyRequests(services, repository)
        self._records = (ApiRequests if hosted else MemberApiRequests)(services, repository)
        self._reads: Mapping[type, Handler] = {
            RootPath: self._root,
            CompactPath: self._compact,
            InfoPath: self._info,
            SpecsPath: self._specs,
            GemPath: self._gem,
            QuickPath: self._quick,
        }
        self._api: Mapping[tuple[str, ...], Mapping[str, ApiHandler]] = {
            ("v1", "gems"): {"POST": self._pushes.push},
            ("v1", "gems", "yank"): {"DELETE": self._changes.yank},
            ("v1", "gems", "unyank"): {"PUT": self._changes.unyank},
            ("v1", "api_key"): {"GET": self._key, "POST": self._keys.create, "PUT": self._keys.extend},
            ("v1", "api_key.json"): {"GET": self._json_key},
        }

    def resource(self) -> IResource:
        """The application's resource."""
        resource: IResource = self.app.resource()
        return resource

    @app.route("/", methods=METHODS)
    @app.route("/<path:rest>", methods=METHODS)
    @answering(ERRORS)
    async def route(self, request: Request, rest: str = "") -> Answer:  # noqa: ARG002 - it is decoded; the raw path is read
        """Answer any request to the repository."""
        request.repository = self._repository.path
        path = read_path(below(request.raw_path))
        if path is None:
            raise await self._nothing(request)
        if request.method in READS:
            return await self._read(request, path)
        if self._repository.type is RepositoryType.HOSTED or not isinstance(path, ApiPath):
            return await self._write(request, path)
        await self._services.access.admit(request, Action.READ, self._repository)
        if path.parts[:2] == ("v1", "api_key"):
            return await self._write(request, path)
        target = publish_target(self._services.registry, self._repository)
        services = publishing_through(self._services, request, self._repository)
        return await RubySite(services, target, self._caches, self._merged)._write(request, path)  # noqa: SLF001 - of another instance

    def unrouted(self, request: Request, failure: Failure) -> Any:  # noqa: ARG002 - of the signature
        """The same for paths that Klein's routes do not match, such as one that begins with two slashes."""
        return self.route(request)

    async def _read(self, request: Request, path: Path) -> Answer:
        if isinstance(path, ApiPath):
            return await self._call(request, "GET", path.parts)
        handler = self._reads.get(type(path))
        if handler is None:
            raise await self._nothing(request)
        return await handler(request, path)

    async def _write(self, request: Request, path: Path) -> Answer:
        if isinstance(path, ApiPath):
            return await self._call(request, request.method.decode("ascii"), path.parts)
        raise self._misplaced(request, _not_allowed(["GET"]))

    async def _call(self, request: Request, verb: str, parts: tuple[str, ...]) -> Answer:
        handlers = self._api.get(parts) or self._owner_handlers(parts) or self._record_handlers(parts)
        if not handlers:
            raise await self._nothing(request)
        handler = handlers.get(verb)
        if handler is None:
            raise self._misplaced(request, _not_allowed(handlers))
        return await handler(request)

    def _owner_handlers(self, parts: tuple[str, ...]) -> Mapping[str, ApiHandler]:
        """The handlers of the path of a gem's owners."""
        match parts:
            case ("v1", "gems", name, ("owners" | "owners.yaml" | "owners.json") as document) if is_name(name):
                yaml = not document.endswith(".json")
                return {
                    "GET": lambda request: self._owners.list(request, name, yaml=yaml),
                    "POST": lambda request: self._owners.change(request, name, add=True),
                    "DELETE": lambda request: self._owners.change(request, name, add=False),
                }
        return {}

    def _record_handlers(self, parts: tuple[str, ...]) -> Mapping[str, ApiHandler]:
        """The handlers of a path of the JSON API."""
        found = self._records.handler(parts)
        return {} if found is None else {"GET": found}

    async def _root(self, request: Request, _path: RootPath) -> Answer:
        """A line for people; RubyGems up to 3.3 asks for its head, and takes 200 for a compact index."""
        await self._services.access.admit(request, Action.READ, self._repository)
        if request.method == b"HEAD":
            return Answer(200, content_type=b"text/plain; charset=utf-8")
        return text_answer(f"This is the Ruby gem repository {self._repository.path}.\n")

    async def _compact(self, request: Request, path: CompactPath) -> Answer:
        await self._services.access.admit(request, Action.READ, self._repository)
        return await (self._lists.names if path.document == NAMES else self._lists.versions)(request)

    async def _info(self, request: Request, path: InfoPath) -> Answer:
        await self._services.access.admit(request, Action.READ, self._repository, path.name)
        return await self._index.info(request, path.name)

    async def _specs(self, request: Request, path: SpecsPath) -> Answer:
        await self._services.access.admit(request, Action.READ, self._repository)
        return await self._lists.specs(request, path.document)

    async def _gem(self, request: Request, path: GemPath) -> Answer:
        return await self._files.file(request, gem_path(path.full_name), path.full_name)

    async def _quick(self, request: Request, path: QuickPath) -> Answer:
        return await self._files.file(request, quick_path(path.full_name), path.full_name)

    async def _key(self, request: Request) -> Answer:
        return await self._keys.read(request, json=False)

    async def _json_key(self, request: Request) -> Answer:
        return await self._keys.read(request, json=True)

    async def _nothing(self, request: Request) -> Exception:
        """The error for an address with nothing, for callers who may know of the repository."""
        await self._services.access.admit(request, Action.READ, self._repository)
        error = NotFound("address", below(request.raw_path).decode("ascii", "replace")[:200])
        if request.method not in UPLOADS:
            return error
        return self._misplaced(request, Refusal(404, str(error), "not_found"))

    def _misplaced(self, request: Request, refusal: Refusal) -> Refusal:
        return misplaced_upload(self._services.base_url(request), request, refusal, "the host to push to is {}")


def _not_allowed(verbs: Any) -> Refusal:
    """A 405 that lists the allowed methods (RFC 9110 section 15.5.6)."""
    allowed = [*(["GET", "HEAD"] if "GET" in verbs else []), *(each for each in verbs if each != "GET")]
    headers = ((b"Allow", ", ".join(allowed).encode("ascii")),)
    return Refusal(405, "this address does not take this method", "method_not_allowed", headers=headers)


_handle: Any = RubySite.app.handle_errors(Unrouted)
_handle(RubySite.unrouted)
refuse_unrouted(RubySite.app, ERRORS)
