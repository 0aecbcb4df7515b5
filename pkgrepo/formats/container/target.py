"""
The image that a request addresses, responses to it in the response cache, and leases of its content.

What a client is told to exist is kept until the client can push a manifest with it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from attrs import field, frozen

from pkgrepo.gateway.responses.cache import ResponseCache
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.storage.catalog.blobs.blobs import TOUCH_MS
from pkgrepo.storage.catalog.images.linked_blobs import ANY_CLIENT, is_fresh


@frozen(eq=False)
class Terms:
    """
    The terms on which the response of a member may be cached as that of the virtual ``repository`` that was addressed.

    ``unchanged`` is a query that tells whether the member is still the one that answers; it was as of the catalog's
    ``generation``. At ``ends_s`` (Unix seconds; 0 for never) another one may have it. It is not ``cacheable`` if
    another one failed.
    """

    repository: Repository
    unchanged: Callable[[Reader], bool]
    generation: int
    ends_s: int = 0
    cacheable: bool = True


@frozen
class Target:
    """
    An image, its ``name`` in the request below ``base``, and the name in the ``scope`` of tokens.

    ``base`` is ``/v2``, or the address of the repository followed by it. With ``terms`` the image is that of a member
    of the addressed repository. Of a push ``virtual`` is the addressed repository if it publishes to this one, and
    ``source`` the image out of which a blob is to be mounted, as the scopes of tokens name it; empty for none. When the
    route takes callers who may write, ``admitted`` is the proof, as of the head of the request: ask again after a body.
    """

    repository: Repository
    image: str
    name: str
    base: str
    scope: str
    terms: Terms | None = None
    virtual: Repository | None = None
    source: str = ""
    admitted: Admitted | None = field(default=None, eq=False)

    @property
    def shown(self) -> Repository:
        """The repository that the request addresses, whose visibility decides who may cache answers."""
        return self.repository if self.terms is None else self.terms.repository

    @property
    def alone(self) -> bool | None:
        """Whether the client named the image without its repository; None if the address does not tell."""
        return self.name == self.image if self.base == "/v2" else None

    def url(self, rest: str) -> bytes:
        """A URL below the image, without scheme and host, which a proxy may change; every client resolves it."""
        return f"{self.base}/{self.name}/{rest}".encode("ascii")


def cache_response(
    cache: ResponseCache,
    request: Request,
    target: Target,
    response: Response,
    *,
    fresh: Callable[[Reader], bool],
    generation: int,
    ends_s: int = 0,
    **rest: Any,
) -> None:
    """
    Cache a response for the repository that the request addresses, which may be a virtual one around that of the image.

    It is the same for all clients; ``rest`` are further fields of L{CachedResponse}.
    """
    terms = target.terms
    if terms is not None:
        if not terms.cacheable:
            return
        unchanged, of_member = terms.unchanged, fresh
        generation = terms.generation  # a member may have got the image while another one was read
        ends_s = min(filter(None, (ends_s, terms.ends_s)), default=0)

        def fresh(r: Reader) -> bool:
            return unchanged(r) and of_member(r)

    cache.put_response(
        request, target.shown, response, package=target.image, fresh=fresh, generation=generation, ends_s=ends_s, **rest
    )


async def renew_lease(
    services: Services,
    repository: Repository,
    command: Callable[..., bool],
    package_id: int,
    digest: str,
    touched_ms: int,
    client: str | None,
) -> bool:
    """
    Renew the grace period of a blob or manifest, and lease it to the client, if that was not done recently.

    ``command`` is L{lease_blob} or L{lease_manifest}. ``client`` is None if the caller may not push. False if the
    content is gone.
    """
    catalog, now_ms = services.catalog, services.clock.now_ms()
    leased = client is None or await catalog.look(is_fresh, package_id, digest, client, now_ms)
    if leased and touched_ms >= now_ms - TOUCH_MS:
        return True
    return await catalog.write(command, repository, package_id, digest, client, now_ms)


def client_of(request: Request) -> str:
    """
    An id of the client: its bearer token, else its connection; ``ANY_CLIENT`` if neither identifies it.

    A proxy shares its connections among clients, and Unix sockets have no address.
    """
    value = request.header(b"authorization") or b""
    if value[:7].lower() == b"bearer ":
        return f"bearer {hashlib.sha256(value[7:].strip()).hexdigest()}"
    peer = request.client
    host, port = getattr(peer, "host", ""), getattr(peer, "port", "")
    return f"connection {host} {port}" if host and host == request.client_address else ANY_CLIENT
