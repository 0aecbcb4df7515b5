"""A request as handlers see it."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import BytesIO
from typing import Any, Generic, TypeVar, overload

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.python.failure import Failure
from twisted.web import server
from twisted.web.http import parse_qs
from twisted.web.http_headers import Headers

from pkgrepo.http.reading.body import Body, BodyLost
from pkgrepo.http.reading.head import FieldBlock, RequestLine
from pkgrepo.http.reading.proxies import Addresses

from .connection import Connection
from .repeats import Repeatable

T = TypeVar("T")

_REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{8,64}")


class lazy(Generic[T]):  # noqa: N801 - reads as a decorator
    """An attribute that is computed on first access and then stored in the instance."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self.compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> lazy[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self.name] = self.compute(instance)
        return value


class _EmptySource:
    """The source of an empty body."""

    def pause_body(self) -> None:
        """There is nothing to pause."""

    resume_body = send_continue = pause_body


class Request(server.Request):
    """
    One request; it is answered as soon as its head is in (see ``answering.dispatch``), and its body is pulled through
    ``body``.

    What Twisted's own class computes for each request is computed here on first access: most requests are answered from
    their path and two header fields. ``raw_path`` and ``raw_query`` are as on the wire; ``path`` is the same as
    ``raw_path``. ``principal``, ``repository`` and ``cache`` are set by the layers above for the access log, ``entry``
    for themselves: where the request goes; ``csrf`` is the value against forged requests in a form that they have read;
    ``identified`` is the caller, where the credentials count once;
    ``notes`` are sentences that they add to the response of a request that succeeds. ``gone`` is true once the client
    has left; answering does nothing then. ``repeatable`` is set where a request is answered from memory.
    """

    defaultContentType = None
    queued = 0
    gone = False
    principal = ""
    repository = ""
    entry: Any = None
    identified: Any = None
    notes: tuple[str, ...] = ()
    cache = ""
    csrf = ""
    repeatable: Callable[[], Repeatable] | None = None

    def __init__(self, channel: Connection, line: RequestLine, fields: FieldBlock) -> None:
        self.channel: Any = channel
        self.transport: Any = channel.transport
        self.method = line.method
        self.uri = line.target
        self.raw_path, _, self.raw_query = line.target.partition(b"?")
        self.path = self.raw_path
        self.clientproto = b"HTTP/1.1" if line.is_http_1_1 else b"HTTP/1.0"
        self.fields = fields.values
        self.started = channel.site.seconds()
        self.notifications = []
        self._connection = channel  # ``channel`` becomes None when the response is complete
        self._line = line
        self._block = fields

    # For handlers

    def header(self, name: bytes) -> bytes | None:
        """The value of a header field by its lower-case name; several lines are joined with a comma and a space."""
        return self.fields.get(name)

    @property
    def revalidates(self) -> bool:
        """Whether the client wants nothing from a cache that is not confirmed by its origin (RFC 9111, 5.2.1.4)."""
        return b"no-cache" in self.fields.get(b"cache-control", b"").lower()

    @lazy
    def body(self) -> Body:
        """The bytes after the head, if any."""
        return Body(_EmptySource(), 0)

    @lazy
    def raw_request_id(self) -> bytes:
        """The request's id on the wire: the client's, if it has the usual form, else ours."""
        given: bytes | None = self.fields.get(b"x-request-id")
        if given is not None and _REQUEST_ID.fullmatch(given):
            return given
        ours: bytes = self.site.next_request_id()
        return ours

    def next_turn(self) -> Deferred[None]:
        """Yield to the reactor, so that others are served between two long steps."""
        return deferLater(self._connection.site.reactor, 0)

    @property
    def request_id(self) -> str:
        """The request's id in logs and in the ``X-Request-Id`` header field."""
        return self.raw_request_id.decode("ascii")

    @lazy
    def addresses(self) -> Addresses:
        """The client's address and ours, as trusted proxies report them."""
        connection, block = self._connection, self._block
        if connection.addressed is not None and connection.addressed[0] is block and self._line.authority is None:
            return connection.addressed[1]
        addresses: Addresses = self.site.trusted_proxies.resolve(self)
        if self._line.authority is None:
            connection.addressed = block, addresses
        return addresses

    @property
    def client_address(self) -> str:
        """The client's IP address; empty on a Unix socket, unless a trusted proxy names it."""
        return self.addresses.client_address

    @property
    def base_url(self) -> str:
        """``scheme://host[/prefix]`` under which the client reached us, without a slash at the end."""
        return self.addresses.base_url

    @property
    def asked_host(self) -> str:
        """Host and port that the client asked for, as trusted proxies report them, in lower case."""
        return self.base_url.partition("//")[2].partition("/")[0].lower()

    @property
    def authority(self) -> bytes | None:
        """Host and port that the client asked for; None from an HTTP/1.0 client without a Host field."""
        return self._line.authority or self._block.host

    def abort(self) -> None:
        """Abort the connection, so that the client does not take a partial answer for complete."""
        if not self.gone:
            self.transport.abortConnection()

    @property
    def raw_fields(self) -> bytes:
        """The header fields as on the wire."""
        return self._block.raw

    # For Twisted and Klein, computed on first access

    @lazy
    def site(self) -> Any:
        """The factory of the connection."""
        return self._connection.site

    @lazy
    def requestHeaders(self) -> Headers:
        """The header fields in Twisted's class; L{header} is much cheaper."""
        headers = Headers()
        for name, value in self._block.lines:
            headers.addRawHeader(name, value)
        return headers

    @lazy
    def responseHeaders(self) -> Headers:
        """Header fields of responses that plain Twisted resources give."""
        return Headers()

    @lazy
    def args(self) -> dict[bytes, list[bytes]]:
        """The query's values by name, percent-decoded."""
        parsed: dict[bytes, list[bytes]] = parse_qs(self.raw_query, keep_blank_values=1)
        return parsed

    def parameter(self, name: bytes) -> str | None:
        """The first value of this name in the query, decoded as UTF-8; None if there is none."""
        values = self.args.get(name) if self.raw_query else None
        return values[0].decode("utf-8", "replace") if values else None

    def count(self, name: bytes, default: int, most: int) -> int:
        """The number of this name in the query, ``most`` for a larger one; the default without one, or for a text."""
        text = self.parameter(name) or ""
        return min(int(text), most) if text.isascii() and text.isdigit() and len(text) < 10 else default

    @lazy
    def received_cookies(self) -> dict[bytes, bytes]:
        """The client's cookies by name."""
        self.__dict__["received_cookies"] = {}
        untyped: Any = self
        untyped.parseCookies()
        cookies: dict[bytes, bytes] = self.__dict__["received_cookies"]
        return cookies

    @lazy
    def cookies(self) -> list[bytes]:
        """Cookies to set."""
        return []

    @lazy
    def content(self) -> BytesIO:
        """Always empty: the body is in ``body``."""
        return BytesIO()

    @lazy
    def client(self) -> Any:
        """The peer's address."""
        return self._connection.getPeer()

    @lazy
    def host(self) -> Any:
        """Our end's address."""
        return self._connection.getHost()

    @lazy
    def _adapterCache(self) -> dict[Any, Any]:
        return {}

    def getRequestHostname(self) -> bytes:
        """The host that the client asked for, without its port."""
        host, _, port = (self.authority or b"").rpartition(b":")
        return host if port.isdigit() else self.authority or b"localhost"

    def isSecure(self) -> bool:
        """Whether the connection has TLS that ends in this process."""
        return self._connection.secure

    # The life of a request

    @property
    def body_is_empty(self) -> bool:
        """Whether the head announces no body."""
        return not self._block.chunked and not self._block.length

    def finish(self) -> None:
        """End the response; does nothing when it has ended before or the client has left."""
        if self.gone or self.finished:
            return
        untyped: Any = self
        if not self.startedWriting:
            untyped.write(b"")
        if self.chunked:
            self.channel.write(b"0\r\n\r\n")
        self.finished = 1
        self.site.log_request(self)
        channel, self.channel = self.channel, None
        channel.requestDone(self)
        if self.notifications:
            waiting, self.notifications = self.notifications, []
            for deferred in waiting:
                deferred.callback(None)

    def connectionLost(self, reason: Failure) -> None:
        """Fail the body and L{notifyFinish}: the client has left."""
        self.body.fail(BodyLost("the client closed the connection before the end of the body"))
        self.site.log_request(self)
        untyped: Any = super()
        untyped.connectionLost(reason)
