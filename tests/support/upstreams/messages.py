"""Requests that an upstream receives, its answers, and the faults with which an answer can be sent."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs, urlsplit

from attrs import Factory, evolve, field, frozen

HEAD = -1  # a position before the head, where positions are offsets in a body


@frozen
class Request:
    """
    A request as received.

    C{target} is what the request line says. C{path} is the target without query and origin, not decoded. Names of
    C{fields} are in lower case.
    """

    method: str
    target: str
    fields: Mapping[str, str]
    body: bytes = b""

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> Mapping[str, str]:
        """The last value of each parameter, decoded."""
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.target).query).items()}

    def accepts(self, *media_types: str) -> bool:
        """Whether Accept names one of these types."""
        return any(each in self.fields.get("accept", "") for each in media_types)


@frozen
class Fault:
    """
    How an answer is sent; the default is a correct one. Positions are offsets in the body as sent, or L{HEAD}.

    C{latency_s}: seconds before the head, in addition to the server's.
    C{pause_at}: sending pauses there until C{ScriptedUpstream.release}.
    C{cut_at}: the connection is closed there; with C{reset} by a TCP reset.
    C{length}: the Content-Length that is announced, instead of the true one.
    C{chunked}, C{unframed}: no Content-Length; the end is the last chunk, or the end of the connection.
    C{endless_body}: the body repeats for ever. C{endless_head}: header fields never end.
    C{rate}: bytes of the body per second.
    C{drop}: the connection is closed after the answer, without a C{Connection: close} before.
    """

    latency_s: float = 0
    pause_at: int | None = None
    cut_at: int | None = None
    reset: bool = False
    length: int | None = None
    chunked: bool = False
    unframed: bool = False
    endless_body: bool = False
    endless_head: bool = False
    rate: float | None = None
    drop: bool = False


@frozen
class Answer:
    """
    A response. A C{Content-Length} is added, unless its fault says otherwise.

    With an ETag or Last-Modified among its fields, conditional requests get 304. C{ranges}: single ranges get 206.
    C{compress}: it is sent gzipped to clients that accept that.
    """

    status: int = 200
    body: bytes | memoryview = field(default=b"", repr=False)
    fields: Mapping[str, str] = Factory(dict)
    ranges: bool = True
    compress: bool = False
    fault: Fault = Fault()

    def with_fields(self, **fields: str) -> Answer:
        """Return it with these header fields added or replaced; underscores stand for dashes."""
        return evolve(self, fields={**self.fields, **{name.replace("_", "-"): v for name, v in fields.items()}})


Step = Answer | Fault | Callable[[Answer], Answer]


def take(step: Step, regular: Callable[[], Answer]) -> Answer:
    """Return what a step of a script makes of the regular answer."""
    if isinstance(step, Answer):
        return step
    if isinstance(step, Fault):
        return evolve(regular(), fault=step)
    return step(regular())


def etag_of(body: bytes) -> str:
    """Return a strong ETag of bytes."""
    return f'"{hashlib.sha1(body).hexdigest()}"'
