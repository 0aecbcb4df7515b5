"""What goes wrong on the way to an upstream, in words that name neither addresses nor URLs."""

from __future__ import annotations

import errno
import os

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

from pkgrepo.concurrency.time_limits import TimedOut
from pkgrepo.errors import (
    UpstreamFailed,
    UpstreamForbiddenAddress,
    UpstreamMisconfigured,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from pkgrepo.outbound.addresses import AddressRefused
from pkgrepo.outbound.head import HeadTooLarge, NotHttp
from pkgrepo.outbound.http_proxies import ProxyRefused

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
