"""What goes wrong on the way to an upstream, in words that name neither addresses nor URLs."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator

from OpenSSL import SSL
from service_identity import VerificationError
from twisted.internet import error as network
from twisted.internet.error import (
    ConnectError,
    ConnectingCancelledError,
    ConnectionClosed,
    DNSLookupError,
    NoRouteError,
)
from twisted.python.failure import Failure
from twisted.web.client import (  # type: ignore[attr-defined]
    RequestGenerationFailed,
    RequestNotSent,
    RequestTransmissionFailed,
    ResponseFailed,
    ResponseNeverReceived,
)

from pkgrepo.errors import UpstreamFailed, UpstreamForbiddenAddress, UpstreamTimeout, UpstreamUnavailable

from .connecting.connection import HeadTooLarge
from .connecting.endpoints import AddressRefused
from .connecting.tunnel import ProxyRefused
from .deadlines import TimedOut

# What a request may raise beside the errors of its caller.
ERRORS = (
    AddressRefused,
    ConnectError,
    ConnectingCancelledError,
    ConnectionClosed,
    OSError,
    ProxyRefused,
    RequestGenerationFailed,
    RequestNotSent,
    RequestTransmissionFailed,
    ResponseFailed,
    ResponseNeverReceived,
    SSL.Error,
    TimedOut,
    VerificationError,
)

FORBIDDEN = "it leads to an address that is not public; proxy.allow_private can except it"
UNTRUSTED = "its certificate is not trusted; proxy.ca_file can name a private authority"

# The first line that fits the first cause that has one.
_TABLE: tuple[tuple[type[BaseException], type[UpstreamFailed], str], ...] = (
    (AddressRefused, UpstreamForbiddenAddress, FORBIDDEN),
    (HeadTooLarge, UpstreamFailed, "the head of its answer is too large, or a line in it"),
    (VerificationError, UpstreamFailed, "its certificate is for another host"),
    (SSL.Error, UpstreamUnavailable, "TLS with it fails"),
    (DNSLookupError, UpstreamUnavailable, "its name cannot be resolved"),
    (network.ConnectionRefusedError, UpstreamUnavailable, "it refuses connections"),
    (NoRouteError, UpstreamUnavailable, "there is no route to it"),
    (ConnectionClosed, UpstreamUnavailable, "it closed the connection before its answer"),
)


def explain(route: str, error: Exception) -> UpstreamFailed:
    """
    One of L{ERRORS} as a domain error; those that a second try may mend are L{UpstreamUnavailable}.

    :raises OSError: this process has no file descriptor left, which is not the upstream's fault
    """
    for cause in _causes(error):
        if isinstance(cause, ConnectError) and cause.osError in (errno.EMFILE, errno.ENFILE):
            raise OSError(cause.osError, os.strerror(errno.EMFILE))
        if isinstance(cause, TimedOut):
            return UpstreamTimeout(route, cause.reason)
        if isinstance(cause, ProxyRefused):
            return UpstreamFailed(route, cause.reason)
        if isinstance(cause, SSL.Error) and "certificate verify failed" in str(cause):
            return UpstreamFailed(route, UNTRUSTED)
        for kind, result, reason in _TABLE:
            if isinstance(cause, kind):
                return result(route, reason)
    if isinstance(error, ResponseFailed | ResponseNeverReceived):
        return UpstreamFailed(route, "it does not answer in HTTP")  # the causes are errors of a parser
    return UpstreamUnavailable(route, "it cannot be reached")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and those within the errors of Twisted's client."""
    yield error
    for reason in getattr(error, "reasons", ()):
        if isinstance(reason, Failure) and reason.value is not None:
            yield from _causes(reason.value)
