"""
The path table of a repository of crates: below the repository, and for its index below ``index/``, too.

Crates may be called ``api`` or ``index``: fixed words are matched in the exact shapes of addresses. Empty parts of an
address are left out, since a client may be configured with a slash too many. Refusals have the form that ``cargo``
prints.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final

from pkgrepo import errors
from pkgrepo.errors import Invalid, NotFound, existing
from pkgrepo.formats.cargo import changes, facts
from pkgrepo.formats.cargo.index import INDEX
from pkgrepo.formats.cargo.names import CRATE, crate_path, package_key, prefix
from pkgrepo.formats.cargo.proxied import config_question
from pkgrepo.gateway.bodies import misplaced_upload
from pkgrepo.gateway.format_site import Routes
from pkgrepo.gateway.package_documents import answer_document
from pkgrepo.gateway.package_files import answer_file
from pkgrepo.gateway.publishing.pipelines import JwtExchange
from pkgrepo.gateway.refusals import STATUSES, refusal_headers
from pkgrepo.gateway.responses.content import document_cache_control
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.gateway.searching import UpstreamSearch, search_packages
from pkgrepo.gateway.services import Context
from pkgrepo.http.answering.dispatch import ErrorTable
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response, json_response, text_response
from pkgrepo.model import ANONYMOUS, Action, Extent
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.untrusted.text import split_path

DEFAULT_PAGE: Final = 10  # crates; as on the public registry
MOST_PAGE: Final = 100
HIDDEN: Final = 451  # cargo takes it for a crate that does not exist; after 403 it ends, whatever else it could use
ME: Final = "Make a token in the console of this server, and give it to `cargo login --registry NAME`.\n"
TOKENS: Final = tuple(facts.EXCHANGE.split("/"))
EXCHANGE: Final = JwtExchange(
    facts.EXCHANGE, lambda it: json_response({"token": it.text}, headers=NO_STORE), revocable=True
)
FIELDS: Final = ("name", "max_version", "description")
QUERY: Final = "/api/v1/crates?q={}&per_page={}"
SEARCH: Final = UpstreamSearch(config_question(), "api", QUERY, "crates", FIELDS, ("meta", "total"), INDEX)
Caches = SplicedDocuments
Handler = Callable[..., Awaitable[Response]]  # of the context, the request, and the variable parts of the path
Handlers = Mapping[bytes, Handler]  # by method


async def configuration(context: Context[Caches], request: Request) -> Response:
    """
    The configuration of the index, which ``cargo`` asks for first.

    Without ``auth-required`` it sends no credentials for crates; with it, it needs some.
    """
    await context.admit(request, Action.READ, Extent.SOME)
    url = context.url(request)
    value: dict[str, Any] = {"dl": f"{url}/api/v1/crates", "api": url}
    if not await context.services.access.authorizer.may(ANONYMOUS, Action.READ, context.repository):
        value["auth-required"] = True
    return json_response(value, headers=((b"Cache-Control", document_cache_control(context.repository)),))


async def index(context: Context[Caches], request: Request, key: str) -> Response:
    """
    The versions of a crate.

    :raises NotFound: no such crate; :raises Refusal: rules hide all of its versions
    :raises UpstreamFailed: what there is is not known
    """
    await context.admit(request, Action.READ, key)
    services, repository, caches = context.services, context.repository, context.caches
    try:
        return await answer_document(services, request, repository, key, caches, lambda _: INDEX, refuses=True)
    except RuleRefused as error:
        raise Refusal(HIDDEN, str(error), "policy") from None


async def download(context: Context[Caches], request: Request, name: str, version: str) -> Response:
    """The crate of a version. :raises NotFound: there is none; :raises UpstreamFailed: it cannot be had"""
    key = package_key(name)
    identity = await context.admit(request, Action.READ, key)
    path = crate_path(key, version)
    found = await answer_file(context.services, request, identity, context.repository, key, path)
    return existing(found, "crate", f"{key} {version}")


async def search(context: Context[Caches], request: Request) -> Response:
    """The crates that have all words of the query, first those that are hosted or kept here."""
    size, text = request.count(b"per_page", DEFAULT_PAGE, MOST_PAGE), request.parameter(b"q") or ""
    found, total = await search_packages(context, request, text, size, SEARCH)
    crates = [{"name": each.name, "max_version": each.version, "description": each.summary} for each in found]
    return json_response({"crates": crates, "meta": {"total": total}}, headers=NO_STORE)


async def me(_context: Context[Caches], _request: Request) -> Response:
    """The page that ``cargo login`` names."""
    return text_response(ME)


API: Final[Mapping[tuple[str, ...], Handlers]] = {
    ("config.json",): {b"GET": configuration},
    ("index", "config.json"): {b"GET": configuration},
    ("me",): {b"GET": me},
    TOKENS: {b"POST": EXCHANGE.answer, b"DELETE": EXCHANGE.revoke},
    ("api", "v1", "crates"): {b"GET": search},
    ("api", "v1", "crates", "new"): {b"PUT": changes.publish},
}
OF_CRATES: Final[Mapping[str, Handlers]] = {  # by the word behind the name of a crate
    "owners": {
        b"GET": changes.list_owners,
        b"PUT": partial(changes.change_owner, add=True),
        b"DELETE": partial(changes.change_owner, add=False),
    }
}
OF_VERSIONS: Final[Mapping[str, Handlers]] = {  # by the word behind the name and the version of a crate
    "download": {b"GET": download},
    "yank": {b"DELETE": partial(changes.set_yank, yanked=True)},
    "unyank": {b"PUT": partial(changes.set_yank, yanked=False)},
}


def _find(parts: tuple[str, ...]) -> Handlers | None:
    """The handlers of an address, with what its parts say. :raises Invalid: it has the name of no crate"""
    match parts:
        case _ if parts in API:
            return API[parts]
        case ("api", "v1", "crates", name, word) if word in OF_CRATES:
            return _with(OF_CRATES[word], name=name)
        case ("api", "v1", "crates", name, version, word) if word in OF_VERSIONS:
            return _with(OF_VERSIONS[word], name=name, version=version)
        case (key, version, file) if file == f"{key}-{version}{CRATE}":
            return _with(OF_VERSIONS["download"], name=key, version=version)
        case (*rest, key) if "/".join(rest).removeprefix("index/") == prefix(package_key(key)) and key == key.lower():
            return {b"GET": partial(index, key=key)}
    return None


def _with(handlers: Handlers, **parts: str) -> Handlers:
    package_key(parts["name"])
    return {method: partial(handler, **parts) for method, handler in handlers.items()}


async def _read(context: Context[Caches], request: Request, rest: bytes) -> Handlers:
    parts = split_path(rest)
    try:
        found = None if parts is None else _find(tuple(parts))
    except Invalid:
        found = None
    if found is None:
        await context.admit(request, Action.READ, Extent.SOME)
        raise NotFound("address", request.entry.rest.decode("ascii", "replace")[:200])
    return found


async def _answer(context: Context[Caches], request: Request, handlers: Handlers) -> Response:
    handler = handlers.get(b"GET" if request.method == b"HEAD" else request.method)
    if handler is None:
        allowed = [*handlers, *([b"HEAD"] if b"GET" in handlers else [])]
        refusal = Refusal(405, "this address does not take this method", headers=((b"Allow", b", ".join(allowed)),))
        advice = "crates are published to {}/api/v1/crates/new"
        raise misplaced_upload(context.services.base_url(request), request, refusal, advice)
    return await handler(context, request)


def render_refusal(request: Request, refusal: Refusal) -> Response:
    """Render as JSON, whose ``detail`` is what ``cargo`` prints; the challenge names the page about tokens."""
    base = request.entry.base
    path = b"/".join(request.raw_path.split(b"/")[:4]) if base is None else base.encode()
    realm = b'Cargo login_url="%b%b/me", Basic realm="pkgrepo"' % (request.base_url.encode(), path)
    headers = (*refusal_headers(refusal, realm), *NO_STORE)
    body: dict[str, Any] = {"errors": [{"detail": refusal.sentence}]}
    return json_response(body, refusal.status, headers=headers, reason=refusal.sentence.partition("\n")[0])


ROUTES: Final[Routes[Caches, Handlers]] = Routes(
    read=_read,
    answer=_answer,
    changes=lambda request, found: found is not API[TOKENS] and request.method in found.keys() & {b"PUT", b"DELETE"},
    # cargo tries 429 and 5xx again
    errors=ErrorTable(
        {**STATUSES, errors.QuotaExceeded: (403, "quota_exceeded"), errors.TooManyAttempts: (403, "too_many_attempts")},
        render_refusal,
    ),
)
