"""
The path table of a Ruby repository: which handler of which inner room answers a request.

One catch-all route reads the raw path (see ``paths``), since ``gem`` doubles slashes, which a router would redirect.
Each handler authorizes its own caller. Changes of a virtual repository go to the repository that takes them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from twisted.python.failure import Failure
from twisted.web.resource import IResource
from werkzeug.exceptions import NotFound as Unrouted

from pkgrepo.errors import NotFound
from pkgrepo.formats.rubygems.api.requests import find_handler
from pkgrepo.formats.rubygems.index.requests import file, info
from pkgrepo.formats.rubygems.proxied.merged_lists import Caches
from pkgrepo.formats.rubygems.proxied.requests import compact, specs
from pkgrepo.formats.rubygems.push.requests import push
from pkgrepo.gateway.klein_app import new_app
from pkgrepo.gateway.mounts import below
from pkgrepo.gateway.new_names import publish_context
from pkgrepo.gateway.services import Context, Services
from pkgrepo.gateway.uploads import UPLOADS, misplaced_upload
from pkgrepo.http.answering.dispatch import answering, refuse_unrouted
from pkgrepo.http.answers import Answer, Refusal, text_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action, Repository

from .changes import change_owner, list_owners, unyank, yank
from .login import create_key, extend_key, read_json_key, read_key
from .names import is_name
from .paths import ApiPath, CompactPath, GemPath, InfoPath, QuickPath, RootPath, SpecsPath, read_path
from .refusals import ERRORS

METHODS = ["GET", "HEAD", "PUT", "POST", "DELETE"]
READS = frozenset({b"GET", b"HEAD"})

Handler = Callable[..., Awaitable[Answer]]  # of the context, the request and what its path means


async def root(context: Context[Caches], request: Request, _path: RootPath) -> Answer:
    """A line for people; RubyGems up to 3.3 asks for its head, and takes 200 for a compact index."""
    await context.admit(request, Action.READ)
    if request.method == b"HEAD":
        return Answer(200, content_type=b"text/plain; charset=utf-8")
    return text_answer(f"This is the Ruby gem repository {context.repository.path}.\n")


PATHS: Mapping[type, Handler] = {
    RootPath: root,
    CompactPath: compact,
    InfoPath: info,
    SpecsPath: specs,
    GemPath: file,
    QuickPath: file,
}
API: Mapping[tuple[str, ...], Mapping[str, Handler]] = {
    ("v1", "gems"): {"POST": push},
    ("v1", "gems", "yank"): {"DELETE": yank},
    ("v1", "gems", "unyank"): {"PUT": unyank},
    ("v1", "api_key"): {"GET": read_key, "POST": create_key, "PUT": extend_key},
    ("v1", "api_key.json"): {"GET": read_json_key},
}

app = new_app()


class RubySite:
    """One Ruby repository as a Klein application."""

    app = app

    def __init__(self, services: Services, repository: Repository, caches: Caches) -> None:
        self._context = Context(services, repository, caches)

    def resource(self) -> IResource:
        """The application's resource."""
        resource: IResource = self.app.resource()
        return resource

    @app.route("/", methods=METHODS)
    @app.route("/<path:rest>", methods=METHODS)
    @answering(ERRORS)
    async def route(self, request: Request, rest: str = "") -> Answer:  # noqa: ARG002 - it is decoded; the raw path is read
        """Answer any request to the repository."""
        context = self._context
        request.repository = context.repository.path
        path = read_path(below(request.raw_path))
        if path is None:
            raise await _nothing(context, request)
        if isinstance(path, ApiPath):
            if request.method in READS:
                return await _call(context, request, "GET", path.parts)
            if path.parts[:2] != ("v1", "api_key"):  # keys are for the repository that is asked for them
                context = await publish_context(context, request)
            return await _call(context, request, request.method.decode(), path.parts)
        if request.method not in READS:
            raise _misplaced(context, request, _not_allowed(["GET"]))
        return await PATHS[type(path)](context, request, path)

    def unrouted(self, request: Request, failure: Failure) -> Any:  # noqa: ARG002 - of the signature
        """Answer paths that Klein's routes do not match, such as one that begins with two slashes."""
        return self.route(request)


async def _call(context: Context[Caches], request: Request, verb: str, parts: tuple[str, ...]) -> Answer:
    handlers = API.get(parts) or _owner_handlers(parts) or _record_handlers(parts)
    if not handlers:
        raise await _nothing(context, request)
    handler = handlers.get(verb)
    if handler is None:
        raise _misplaced(context, request, _not_allowed(handlers))
    return await handler(context, request)


def _owner_handlers(parts: tuple[str, ...]) -> Mapping[str, Handler]:
    """The handlers of the path of a gem's owners."""
    match parts:
        case ("v1", "gems", name, ("owners" | "owners.yaml" | "owners.json") as document) if is_name(name):
            return {
                "GET": partial(list_owners, name=name, yaml=not document.endswith(".json")),
                "POST": partial(change_owner, name=name, add=True),
                "DELETE": partial(change_owner, name=name, add=False),
            }
    return {}


def _record_handlers(parts: tuple[str, ...]) -> Mapping[str, Handler]:
    """The handlers of a path of the JSON API."""
    found = find_handler(parts)
    return {} if found is None else {"GET": found}


async def _nothing(context: Context[Caches], request: Request) -> Exception:
    """The error for an address with nothing, for callers who may know of the repository."""
    await context.admit(request, Action.READ)
    error = NotFound("address", below(request.raw_path).decode("ascii", "replace")[:200])
    if request.method not in UPLOADS:
        return error
    return _misplaced(context, request, Refusal(404, str(error), "not_found"))


def _misplaced(context: Context[Caches], request: Request, refusal: Refusal) -> Refusal:
    return misplaced_upload(context.services.base_url(request), request, refusal, "the host to push to is {}")


def _not_allowed(verbs: Any) -> Refusal:
    """A 405 that lists the allowed methods (RFC 9110 section 15.5.6)."""
    allowed = [*(["GET", "HEAD"] if "GET" in verbs else []), *(each for each in verbs if each != "GET")]
    headers = ((b"Allow", ", ".join(allowed).encode("ascii")),)
    return Refusal(405, "this address does not take this method", "method_not_allowed", headers=headers)


_handle: Any = RubySite.app.handle_errors(Unrouted)
_handle(RubySite.unrouted)
refuse_unrouted(RubySite.app, ERRORS)
