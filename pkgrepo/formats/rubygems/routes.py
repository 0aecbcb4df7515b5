"""
The path table of a Ruby repository: which handler of which inner room answers a request.

``paths`` reads the raw path, since ``gem`` doubles slashes. Each handler authorizes its own caller.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from pkgrepo.errors import NotFound
from pkgrepo.formats.rubygems.api.requests import find_handler
from pkgrepo.formats.rubygems.index.requests import file, info
from pkgrepo.formats.rubygems.proxied.merged_lists import Caches
from pkgrepo.formats.rubygems.proxied.requests import compact, specs
from pkgrepo.formats.rubygems.push.requests import push
from pkgrepo.formats.rubygems.token_exchange import EXCHANGE
from pkgrepo.gateway.bodies import UPLOADS, misplaced_upload
from pkgrepo.gateway.format_site import Routes
from pkgrepo.gateway.services import Context
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Refusal, Response, text_response
from pkgrepo.model import Action

from .changes import change_owner, list_owners, unyank, yank
from .login import create_key, extend_key, read_json_key, read_key
from .names import is_name
from .paths import ApiPath, CompactPath, GemPath, InfoPath, Path, QuickPath, RootPath, SpecsPath, read_path
from .refusals import ERRORS

READS = frozenset({b"GET", b"HEAD"})

Handler = Callable[..., Awaitable[Response]]  # of the context, the request and what its path means


async def root(context: Context[Caches], request: Request, _path: RootPath) -> Response:
    """A line for people; RubyGems up to 3.3 asks for its head, and takes 200 for a compact index."""
    await context.admit(request, Action.READ)
    if request.method == b"HEAD":
        return Response(200, content_type=b"text/plain; charset=utf-8")
    return text_response(f"This is the Ruby gem repository {context.repository.path}.\n")


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
    ("v1", "oidc", "trusted_publisher", "exchange_token"): {"POST": EXCHANGE.answer},
}


KEYS = (("v1", "api_key"), ("v1", "oidc"))  # where keys are given out


async def _read(context: Context[Caches], request: Request, rest: bytes) -> Path:
    """What a path means. :raises NotFound, Refusal: nothing, for callers who may know of the repository"""
    path = read_path(rest)
    if path is None:
        raise await _nothing(context, request)
    return path


def _changes(request: Request, path: Path) -> bool:
    """Whether a request goes to the repository that takes changes; keys are for the one that is asked for them."""
    return request.method not in READS and isinstance(path, ApiPath) and path.parts[:2] not in KEYS


async def _answer(context: Context[Caches], request: Request, path: Path) -> Response:
    if isinstance(path, ApiPath):
        return await _call(context, request, "GET" if request.method in READS else request.method.decode(), path.parts)
    if request.method not in READS:
        raise _misplaced(context, request, _not_allowed(["GET"]))
    return await PATHS[type(path)](context, request, path)


async def _call(context: Context[Caches], request: Request, verb: str, parts: tuple[str, ...]) -> Response:
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
    error = NotFound("address", request.entry.rest.decode("ascii", "replace")[:200])
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


ROUTES: Routes[Caches, Path] = Routes(read=_read, answer=_answer, changes=_changes, errors=ERRORS)
