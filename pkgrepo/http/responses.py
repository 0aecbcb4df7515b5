"""Responses and refusals: what a handler returns, or raises, instead of writing to a request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec
from attrs import Factory, define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer

Fields = tuple[tuple[bytes, bytes], ...]

JSON = b"application/json"
TEXT = b"text/plain; charset=utf-8"
NO_STORE: Fields = ((b"Cache-Control", b"no-store"),)

_encode_json = msgspec.json.Encoder().encode


class Growing(Protocol):
    """A body whose bytes are still arriving, as one sender uses it."""

    def available(self, end: int) -> int:
        """How many bytes, from the first of the body on, may be sent now of a part that ends before ``end``."""

    def wait(self) -> Deferred[None]:
        """
        A Deferred that fires when ``available`` may have grown; it may be cancelled.

        It fails when no more bytes will come. The owner of the body logs why; the sender aborts the connection.
        """

    def close(self) -> None:
        """
        Need no more bytes: all are sent, or the client has left.

        It is called once or more, but never for a response that has no use for the body (HEAD, 304).
        """


@frozen
class Content:
    """
    A body of ``size`` bytes that is not in memory.

    ``open`` returns a new descriptor, which the sender closes; its offset is never used. ``deliver`` serves bodies
    without a descriptor: it writes exactly the bytes ``start`` to ``end`` (exclusive) to the consumer, as a push
    producer or directly, and is done after the last one; it is cancelled when the client leaves. What it raises before
    the first byte is answered like an error of a handler. At least one of the two is given; ``open`` wins.

    ``elsewhere`` returns a URL where clients that want the whole body get it instead; it is asked for each of them.
    What it raises is answered like an error of a handler.

    With ``growing``, which needs ``open``, the file may have only its first bytes yet. Such a
    content is for one response. ``gate``, which needs it, too, is asked for each response, after ``open``, whether its
    last bytes have to wait.

    The length of an ``endless`` one is not known: ``deliver`` may end at any time, and the connection ends with it.
    ``size`` is then the most that it writes.
    """

    size: int
    open: Callable[[], int] | None = None
    deliver: Callable[[IConsumer, int, int], Awaitable[None]] | None = None
    growing: Growing | None = None
    gate: Callable[[], Growing | None] | None = None
    elsewhere: Callable[[], Awaitable[str]] | None = None
    endless: bool = False


@frozen
class Response:
    """
    A whole response; the sender handles HEAD, ranges and conditional requests.

    ``etag`` is strong and quoted as on the wire, ``last_modified`` in Unix seconds. ``reason`` is a sentence for the
    status line, which is all that some upload tools print; it may hold text of users and is made harmless when sent.
    With ``ranges`` single byte ranges are served (RFC 9110 section 14). A 304, and a 416 for a range of the body, say
    only those of the ``headers`` that caches need; what is in ``always`` they say too. ``variants`` has the ETags of
    the same body by content coding, for a client whose copy is in another one; without an ``etag`` they do not count.
    """

    status: int = 200
    body: bytes | Content = b""
    content_type: bytes | None = None
    headers: Fields = ()
    always: Fields = ()
    etag: bytes | None = None
    variants: Mapping[bytes, bytes] = Factory(dict)
    last_modified: int | None = None
    reason: str | None = None
    ranges: bool = False

    @property
    def size(self) -> int:
        """Length of the whole body in bytes."""
        return len(self.body) if isinstance(self.body, bytes) else self.body.size


def json_response(value: object, status: int = 200, **rest: Any) -> Response:
    """A response holding ``value`` as JSON; ``rest`` are further fields of L{Response}."""
    rest.setdefault("content_type", JSON)
    return Response(status=status, body=_encode_json(value), **rest)


def text_response(text: str, status: int = 200, **rest: Any) -> Response:
    """A response holding ``text`` as UTF-8; ``rest`` are further fields of L{Response}."""
    rest.setdefault("content_type", TEXT)
    return Response(status=status, body=text.encode("utf-8", "replace"), **rest)


def error_response(sentence: str, status: int, headers: Fields = ()) -> Response:
    """A refusal for any client: npm prints ``error``, container clients ``errors``, and pip the reason."""
    body = {"error": sentence, "errors": [{"code": "UNKNOWN", "message": sentence}]}
    return json_response(body, status, headers=headers, reason=sentence)


@define
class Refusal(Exception):  # noqa: N818 - a refusal is a response, not a fault of ours
    """
    The response to a request that is refused.

    ``sentence`` is for a person, ``code`` for a program; ``detail`` and ``errors`` are extra data for formats whose
    error shape has room for them.
    """

    status: int
    sentence: str
    code: str = ""
    headers: Fields = ()
    detail: object = None
    errors: tuple[object, ...] = field(default=())

    def __str__(self) -> str:
        return self.sentence
