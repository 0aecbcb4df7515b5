"""Responses of upstreams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable

from zope.interface import Attribute, Interface


class IUpstreamResponse(Interface):
    """A response of an upstream: its head, and its body, which is read once."""

    status = Attribute("the status code, an int")
    headers = Attribute("an object whose ``get(name: str) -> str | None`` joins fields of one name with a comma")
    url = Attribute("the URL that responded, after redirects, without its query, which may hold a signature; a str")
    length = Attribute("bytes of the body, for HEAD those that GET would send; None if unknown or compressed")
    framed = Attribute("False if the body ends with the connection, so that it cannot be known whether it is complete")

    def chunks() -> AsyncIterator[bytes]:
        """
        The body, decompressed if it was compressed in transfer. Reading slowly slows the upstream down.

        :raises UpstreamTruncated: the connection ended early; :raises UpstreamTimeout: no more bytes arrived in time
        :raises UpstreamTooLarge: it exceeds the limits; :raises UpstreamFailed: it cannot be decompressed
        """

    def read() -> Awaitable[bytes]:
        """All of the body, for documents. It raises what ``chunks`` raises."""
