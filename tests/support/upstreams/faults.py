"""
The faults of upstreams: steps for C{ScriptedUpstream.misbehave}.

A step is a whole answer, a way to send the regular one, or a change to it.
"""

from __future__ import annotations

import gzip
from functools import cache

from attrs import evolve

from tests.support.upstreams.messages import HEAD, Answer, Fault, Step

MIB = 1024 * 1024

STALL_BEFORE_HEAD = Fault(pause_at=HEAD)
STALL_IN_BODY = Fault(pause_at=10)
TRUNCATED = Fault(cut_at=10)  # the announced Content-Length is right
RESET = Fault(cut_at=10, reset=True)
NO_ANSWER = Fault(cut_at=HEAD)
CHUNKED_WITHOUT_END = Fault(chunked=True, cut_at=10)
UNFRAMED = Fault(unframed=True)
ENDLESS_BODY = Fault(endless_body=True, chunked=True)
ENDLESS_HEAD = Fault(endless_head=True)
DROPPED = Fault(drop=True)


def failing(status: int = 503, retry_after: str | None = None) -> Answer:
    """An error with an HTML body, as load balancers send it."""
    fields = {"Content-Type": "text/html"} | ({} if retry_after is None else {"Retry-After": retry_after})
    return Answer(status, b"<html><h1>It did not work</h1></html>", fields)


HTML = evolve(failing(), status=200)  # as captive portals answer


def redirect(url: str, status: int = 302) -> Answer:
    """A redirect."""
    return Answer(status, fields={"Location": url})


def truncated_by(count: int, *, announce: bool) -> Step:
    """The body without its last bytes; the Content-Length agrees with what is sent unless C{announce}."""

    def step(answer: Answer) -> Answer:
        size = len(answer.body) - count
        if announce:
            return evolve(answer, fault=Fault(cut_at=size))
        return evolve(answer, body=answer.body[:size])

    return step


def corrupted(answer: Answer) -> Answer:
    """The body with the last byte changed, and its size kept."""
    body = bytes(answer.body)
    return evolve(answer, body=body[:-1] + bytes([body[-1] ^ 1]))


def gzipped(answer: Answer) -> Answer:
    """The body gzipped, whatever was asked for."""
    body = gzip.compress(bytes(answer.body), mtime=0)
    return evolve(answer, body=body, compress=False).with_fields(Content_Encoding="gzip")


def without_ranges(answer: Answer) -> Answer:
    """The body whole, whatever range was asked for, and without a validator."""
    dropped = {"etag", "last-modified"}
    fields = {name: value for name, value in answer.fields.items() if name.lower() not in dropped}
    return evolve(answer, ranges=False, fields=fields)


def not_modified(answer: Answer) -> Answer:
    """304, also to a request without a condition."""
    return evolve(answer, status=304, body=b"", ranges=False)


def with_etag(etag: str) -> Step:
    """The same body with another ETag."""
    return lambda answer: answer.with_fields(ETag=etag)


def gzip_bomb(size: int = 2048 * MIB) -> Answer:
    """An answer that a megabyte of gzip expands to C{size} bytes."""
    return Answer(body=_packed_zeros() * (size // (64 * MIB)), fields={"Content-Encoding": "gzip"}, ranges=False)


@cache
def _packed_zeros() -> bytes:
    """64 MiB of zeros, compressed once for all bombs."""
    return gzip.compress(bytes(64 * MIB), mtime=0)
