"""The id of a running client program, to which content is promised during its push."""

from __future__ import annotations

import hashlib

from pkgrepo.http.request import Request
from pkgrepo.storage.catalog.images.promises import ANY_CLIENT


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
