"""Promises of content: what a client is told to exist is kept until the client can push a manifest with it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.model import Repository
from pkgrepo.storage.catalog.blobs.blobs import TOUCH_MS
from pkgrepo.storage.catalog.images.promises import ANY_CLIENT, is_fresh


async def renew_promise(
    services: Services,
    repository: Repository,
    command: Callable[..., bool],
    package_id: int,
    digest: str,
    touched_ms: int,
    client: str | None,
) -> bool:
    """
    Renew the grace period of a blob or manifest, and promise it to the client, if that was not done recently.

    ``command`` is L{promise_blob} or L{promise_manifest}. ``client`` is None if the caller may not push. False if the
    content is gone.
    """
    catalog, now_ms = services.catalog, services.clock.now_ms()
    promised = client is None or await catalog.look(is_fresh, package_id, digest, client, now_ms)
    if promised and touched_ms >= now_ms - TOUCH_MS:
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
