"""Upstreams: what proxy repositories ask."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from zope.interface import Attribute, Interface

if TYPE_CHECKING:
    from pkgrepo.errors import UpstreamMisconfigured
    from pkgrepo.model import ReadLimits, UpstreamHealth


class IUpstream(Interface):
    """The client of one route of a proxy repository."""

    name = Attribute("the route's name, a str")
    url = Attribute("the route's URL without a slash at its end, a str")

    def open(
        method: str,
        url: str,
        headers: Mapping[str, str] | None = None,
        *,
        body: bytes | None = None,
        limits: ReadLimits | None = None,
        decode: bool = False,
        entrust: bool = False,
        accept: Collection[int] = (),
        kind: str = "",
        subject: str = "",
        tries: int = 3,
    ) -> AbstractAsyncContextManager[IUpstreamResponse]:
        """
        Send a GET or HEAD, or a POST with a ``body``; the value of the ``async with`` block is the answer.

        A POST must be a question that changes nothing, since it may be sent more than once. It is not redirected.

        ``url`` is absolute, or a path as on the wire (with a query, if any) below the route's URL. The credentials of
        the route go only to its own scheme, host and port, and with ``entrust`` to those of ``url``, which the route's
        own host must have named for that; an Authorization field in ``headers`` replaces them.
        Redirects are followed. After failures that another try may mend, a request is sent again: ``tries`` times in
        all.

        ``subject`` is the package that the request is about; without one, each URL is a subject. An upstream at which
        several fail is not asked for a while. ``kind`` names requests for something other than packages, such as
        searches: only those of the same kind are not sent after failures of theirs.

        ``limits`` defaults to those of documents. With ``decode`` the answer may be compressed in transfer.

        Any status below 500 is an answer, except 429 and those of 401, 403 and 451 that are not in ``accept``. A HEAD
        that is refused is a GET the second time, whose body is not wanted. Leaving the block before the end of the body
        closes the connection.

        :raises Invalid: ``url`` is no http or https URL
        :raises UpstreamUnavailable: it cannot be reached, or failed so often that it is not asked at the moment
        :raises UpstreamTimeout: it was too slow; :raises UpstreamLimited: it wants no requests for a while
        :raises UpstreamForbiddenAddress: the URL, or a redirect, leads to an address that is not allowed
        :raises UpstreamDenied: it answers 403 or 451; :raises UpstreamMisconfigured: 401, or its certificate is wrong
        :raises UpstreamTooLarge: the announced length exceeds ``limits``
        :raises UpstreamFailed: it answered with another error, or not in HTTP
        """

    def misconfigured(reason: str, detail: str = "") -> UpstreamMisconfigured:
        """
        The error for a fault of the configuration, which is logged once.

        ``reason`` is that of L{UpstreamFailed}. ``detail`` is in the log only, and may be an address.
        """

    def health() -> UpstreamHealth:
        """What is known about the route's own host."""


class IUpstreamResponse(Interface):
    """An answer of an upstream: its head, and its body, which is read once."""

    status = Attribute("the status code, an int")
    headers = Attribute("an object whose ``get(name: str) -> str | None`` joins fields of one name with a comma")
    url = Attribute("the URL that answered, after redirects, without its query, which may hold a signature; a str")
    length = Attribute("bytes of the body, for HEAD those that GET would send; None if unknown or compressed")
    framed = Attribute("False if the body ends with the connection, so that nobody can tell whether it is complete")

    def chunks() -> AsyncIterator[bytes]:
        """
        The body, decompressed if it was compressed in transfer. Reading slowly slows the upstream down.

        :raises UpstreamTruncated: the connection ended early; :raises UpstreamTimeout: no more bytes arrived in time
        :raises UpstreamTooLarge: it exceeds the limits; :raises UpstreamFailed: it cannot be decompressed
        """

    def read() -> Awaitable[bytes]:
        """All of the body, for documents. It raises what ``chunks`` raises."""
