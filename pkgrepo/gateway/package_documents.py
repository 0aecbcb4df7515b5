"""Answers reads of documents: they are looked up, negotiated, and kept in memory while they are the present ones."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

from attrs import frozen

from pkgrepo.gateway.responses.cache import CachedResponse
from pkgrepo.gateway.responses.content import choose_encoding, document_cache_control, document_response
from pkgrepo.gateway.responses.spliced_documents import Rendered, SplicedDocuments
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Document, Repository

D = TypeVar("D")


@frozen(eq=False, kw_only=True)
class Found(Generic[D]):
    """
    A document that was looked up for a request.

    ``respond`` makes the response with a document for a request, and ``ready`` gives the one that another request
    wants, if it is in memory. The other fields are those of L{CachedResponse}; it is kept only if it is ``cacheable``.
    """

    document: D
    respond: Callable[[Request, D], Response]
    ready: Callable[[Request], D | None]
    fresh: Callable[[Reader], bool]
    size: int
    cacheable: bool = True
    package: str | None = None
    by_address: bool = False
    expires_at: int = 0
    ends_s: int = 0


async def serve_document(
    services: Services, request: Request, repository: Repository, look: Callable[[], Awaitable[Found[D] | Response]]
) -> Response:
    """The response with what ``look`` finds, which is kept in the response cache; a response by itself is not."""
    generation = services.catalog.generation()  # from before the look-up: what is committed meanwhile may not be in it
    found = await look()
    if isinstance(found, Response):
        return found
    kept = found

    def negotiate(again: Request) -> Response | None:
        ready = kept.ready(again)
        return None if ready is None else kept.respond(again, ready)

    if found.cacheable:
        entry = CachedResponse(
            repository,
            package=found.package,
            negotiate=negotiate,
            fresh=found.fresh,
            generation=generation,
            size=found.size,
            by_address=found.by_address,
            expires_at=found.expires_at,
            ends_s=found.ends_s,
        )
        services.response_cache.put(request, entry)
    return found.respond(request, found.document)


class Respond(Protocol):
    """Makes the response with a document."""

    def __call__(self, request: Request, document: Document, /, *, settled: bool) -> Response:
        """The document as the client of the request wants it. With ``settled`` it never changes."""


def in_coding(services: Services, repository: Repository) -> Respond:
    """Responses with a document in the content coding that a client wants."""

    def respond(request: Request, document: Document, *, settled: bool) -> Response:
        headers: Fields = (
            (b"Cache-Control", document_cache_control(repository, settled=settled)),
            (b"Vary", b"Accept-Encoding"),
        )
        encoding = choose_encoding(request.header(b"accept-encoding"))
        return document_response(document, encoding, headers, cpu=services.pools.cpu)

    return respond


def found_document(
    services: Services,
    rendered: Rendered,
    respond: Respond,
    ready: Callable[[Request], Document | None],
    *,
    by_address: bool = False,
) -> Found[Document]:
    """The document of a package, which is kept while its state is the present one."""
    state, document = rendered.state, rendered.document
    modified_s = document.modified_s or 0
    return Found(
        document=document,
        respond=lambda again, present: respond(again, present, settled=state.settled),
        ready=ready,
        fresh=state.fresh,
        size=2 * len(document.body) or len(document.gzip or b""),
        cacheable=state.cacheable,
        package=state.package,
        by_address=by_address,
        expires_at=modified_s if modified_s and modified_s * 1000 > services.clock.now_ms() else 0,
        ends_s=state.expires_s,
    )


async def answer_document(
    services: Services,
    request: Request,
    repository: Repository,
    key: str,
    documents: SplicedDocuments,
    form_of: Callable[[Request], str],
    *,
    address: str | Callable[[Request], str] = "",
    respond: Respond | None = None,
    refuses: bool = False,
) -> Response:
    """
    The document of a package (a key) in the form that the request wants, which is cached while it is the present one.

    Documents with addresses have that of the repository, ``address``, which may be another one for each request.

    :raises NotFound: there is no such package; :raises UpstreamFailed: that is not known
    :raises RuleRefused: with ``refuses``, rules hide all that it would list
    """
    address_of = address if callable(address) else lambda _: address

    async def look() -> Found[Document]:
        found = await services.proxy.resolver.state(repository, key, revalidate=request.revalidates)
        place = form_of(request), address_of(request)
        rendered = await documents.get(services.pools, services.view_turns, found, *place)
        state = rendered.state
        if refuses and state.refused is not None:
            raise state.refused.with_traceback(None)
        return found_document(
            services,
            rendered,
            respond or in_coding(services, repository),
            lambda again: documents.ready(state, form_of(again), address_of(again)),
            by_address=callable(address),
        )

    return await serve_document(services, request, repository, look)
