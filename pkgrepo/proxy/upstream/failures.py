"""
What goes wrong on the way to an upstream, in words that name neither addresses nor URLs; what its refusals say.

Errors are JSON in the registries of npm and of containers and in most APIs, plain text in the gem API; Maven and pip
print the reason phrase only.
"""

from __future__ import annotations

import errno
import math
import os
import time
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

import msgspec
from OpenSSL import SSL
from service_identity import VerificationError
from twisted.internet import error as network
from twisted.internet.defer import Deferred
from twisted.internet.error import (
    ConnectError,
    ConnectingCancelledError,
    ConnectionClosed,
    DNSLookupError,
    NoRouteError,
)
from twisted.internet.interfaces import IReactorTime

from pkgrepo.concurrency.time_limits import TimedOut, within
from pkgrepo.errors import (
    UpstreamFailed,
    UpstreamForbiddenAddress,
    UpstreamLimited,
    UpstreamLoop,
    UpstreamMisconfigured,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from pkgrepo.outbound.addresses import AddressRefused
from pkgrepo.outbound.head import HeadTooLarge, NotHttp
from pkgrepo.outbound.http_proxies import ProxyRefused
from pkgrepo.proxy.upstream.response import UpstreamResponse

from .limits import UNKNOWN_LIMIT_S, read_retry_after

# What a request may raise beside the errors of its caller.
ERRORS = (
    AddressRefused,
    ConnectError,
    ConnectingCancelledError,
    ConnectionClosed,
    HeadTooLarge,
    NotHttp,
    OSError,
    ProxyRefused,
    SSL.Error,
    TimedOut,
    VerificationError,
)
# Those that the host is there for: others have them only if they ask for the same.
ABOUT_ANSWER = (ConnectionClosed, HeadTooLarge, NotHttp)
FORBIDDEN = "it leads to an address that is not public; proxy.allow_private can except it"
UNTRUSTED = "its certificate is not trusted; proxy.ca_file, or ca_file of the route, can name a private authority"
REFUSED = (401, 403, 407)  # answers of a proxy to CONNECT that wait for a change of its settings, or of ours
# The first line that fits.
_TABLE: tuple[tuple[type[BaseException], type[UpstreamFailed], str], ...] = (
    (AddressRefused, UpstreamForbiddenAddress, FORBIDDEN),
    (HeadTooLarge, UpstreamFailed, "the head of its answer is too large, or a line in it"),
    (NotHttp, UpstreamFailed, "it does not answer in HTTP"),
    (VerificationError, UpstreamMisconfigured, "its certificate is for another host"),
    (SSL.Error, UpstreamUnavailable, "TLS with it fails"),
    (DNSLookupError, UpstreamUnavailable, "its name cannot be resolved"),
    (network.ConnectionRefusedError, UpstreamUnavailable, "it refuses connections"),
    (NoRouteError, UpstreamUnavailable, "there is no route to it"),
    (ConnectionClosed, UpstreamUnavailable, "it closed the connection before its answer"),
)

RETRIED: Final = frozenset({502, 503, 504})
LOOP: Final = 508  # the response of proxies like this one to a request that has passed them before
DECISIONS: Final = (403, 451)  # RFC 7725: 451 for legal reasons
MOST_BYTES: Final = 64 * 1024  # of a body that is read for its sentence
LONGEST_S: Final = 5.0  # until the end of the body
MOST_CHARACTERS: Final = 500  # of the sentence, which becomes a reason phrase again
_KEYS: Final = ("errors", "error", "message", "detail", "msg", "reason", "title")
_DEPTH: Final = 4


def explain(route: str, error: Exception) -> UpstreamFailed:
    """
    One of L{ERRORS} as a domain error; those that a second try may mend are L{UpstreamUnavailable}.

    :raises OSError: this process has no file descriptor left, which is not the upstream's fault
    """
    if isinstance(error, ConnectError) and error.osError in (errno.EMFILE, errno.ENFILE):
        raise OSError(error.osError, os.strerror(errno.EMFILE))
    if isinstance(error, TimedOut):
        return UpstreamTimeout(route, error.reason)
    if isinstance(error, ProxyRefused):
        return (UpstreamMisconfigured if error.status in REFUSED else UpstreamFailed)(route, error.reason)
    if isinstance(error, SSL.Error) and "certificate verify failed" in str(error):
        return UpstreamMisconfigured(route, UNTRUSTED)
    for kind, result, reason in _TABLE:
        if isinstance(error, kind):
            return result(route, reason)
    return UpstreamUnavailable(route, "it cannot be reached")


def judge(route: str, response: UpstreamResponse) -> UpstreamFailed | None:
    """The error that the status of a response means; None: the response is for the caller."""
    status = response.status
    if status == LOOP:
        return UpstreamLoop(route)
    if status == 429 or status in RETRIED:
        wait_s = read_retry_after(response.headers.get("Retry-After"), time.time())
        if status == 429:
            seconds = math.ceil(UNKNOWN_LIMIT_S if wait_s is None else wait_s)
            return UpstreamLimited(route, "it limits the rate of our requests", seconds)
        return UpstreamUnavailable(route, f"it answers {status}", None if wait_s is None else math.ceil(wait_s))
    return None if 200 <= status < 500 else UpstreamFailed(route, f"it answers {status}")


async def read_refusal(response: UpstreamResponse, reactor: IReactorTime) -> str:
    """The sentence with which an upstream refuses something, on one line; without any, its status."""
    body = bytearray()

    async def read() -> None:
        async for chunk in response.chunks():
            body.extend(chunk)
            if len(body) > MOST_BYTES:
                break

    with suppress(UpstreamFailed, TimedOut):  # what came before the end may be enough
        await within(LONGEST_S, Deferred.fromCoroutine(read()), reactor, "its sentence takes long")
    media_type = (response.headers.get("Content-Type") or "").partition(";")[0].strip().lower()
    return find_sentence(bytes(body[:MOST_BYTES]), media_type, response.reason) or f"it answers {response.status}"


def find_sentence(body: bytes, media_type: str, reason: str) -> str:
    """The sentence in a body of this type, else the reason phrase if it is not the usual one of a status; or empty."""
    found = ""
    try:
        found = _of_json(msgspec.json.decode(body), _DEPTH)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        if media_type in ("", "text/plain"):
            found = body.decode("utf-8", "replace")
    sentence = _on_one_line(found)
    if not sentence and reason.lower() not in {each.phrase.lower() for each in HTTPStatus}:
        sentence = _on_one_line(reason)
    return sentence


def _of_json(value: Any, depth: int) -> str:
    """The first text that is the value itself, or under one of the keys for errors."""
    if isinstance(value, str):
        return value
    if not depth:
        return ""
    inner: list[Any] = []
    if isinstance(value, dict):
        inner = [value[key] for key in _KEYS if key in value]
    elif isinstance(value, list):
        inner = value[:1]
    return next((found for each in inner if (found := _of_json(each, depth - 1))), "")


def _on_one_line(text: str) -> str:
    words = "".join(each if each.isprintable() else " " for each in text).split()
    line = " ".join(words)
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 3]}..."
