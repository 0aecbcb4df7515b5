"""Answers reads of the documents of packages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pkgrepo.gateway.responses.content import choose_encoding, document_cache_control, document_response
from pkgrepo.gateway.responses.spliced_documents import SplicedDocuments
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Response
from pkgrepo.model import Document, Repository


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


async def answer_document(
    services: Services,
    request: Request,
    repository: Repository,
    key: str,
    documents: SplicedDocuments,
    form_of: Callable[[Request], str],
    *,
    address: str = "",
    respond: Respond | None = None,
) -> Response:
    """
    The document of a package (a key) in the form that the request wants, which is cached while it is the present one.

    Documents with addresses have that of the repository, ``address``.

    :raises NotFound: there is no such package; :raises UpstreamFailed: that is not known
    """
    generation = services.catalog.generation()
    found = await services.proxy.resolver.state(repository, key, revalidate=request.revalidates)
    rendered = await documents.get(services.pools, services.view_turns, found, form_of(request), address)
    state = rendered.state
    make = respond or in_coding(services, repository)

    def negotiate(again: Request) -> Response | None:
        ready = documents.ready(state, form_of(again), address)
        return None if ready is None else make(again, ready, settled=state.settled)

    services.response_cache.put_document(request, rendered, negotiate=negotiate, generation=generation)
    return make(request, rendered.document, settled=state.settled)
