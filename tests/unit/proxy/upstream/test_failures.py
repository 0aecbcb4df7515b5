"""Errors of the network in words."""

from __future__ import annotations

import errno
import os

import pytest
from OpenSSL import SSL
from service_identity import VerificationError
from twisted.internet import error
from twisted.internet.error import ConnectError, ConnectionLost, DNSLookupError, NoRouteError

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
from pkgrepo.proxy.upstream.failures import MOST_CHARACTERS, explain, find_sentence


@pytest.mark.parametrize(
    ("cause", "kind", "sentence"),
    [
        (AddressRefused(), UpstreamForbiddenAddress, "proxy.allow_private"),
        (TimedOut("it is slow"), UpstreamTimeout, "it is slow"),
        (DNSLookupError("mirror.example"), UpstreamUnavailable, "cannot be resolved"),
        (error.ConnectionRefusedError("10.0.0.1"), UpstreamUnavailable, "refuses connections"),
        (NoRouteError("10.0.0.1"), UpstreamUnavailable, "no route"),
        (ConnectError("10.0.0.1"), UpstreamUnavailable, "cannot be reached"),
        (OSError("10.0.0.1"), UpstreamUnavailable, "cannot be reached"),
        (ConnectionLost("10.0.0.1"), UpstreamUnavailable, "before its answer"),
        (HeadTooLarge(), UpstreamFailed, "head of its answer"),
        (VerificationError([]), UpstreamMisconfigured, "for another host"),
        (SSL.Error([("", "", "certificate verify failed")]), UpstreamMisconfigured, "proxy.ca_file"),
        (SSL.Error([("", "", "wrong version number")]), UpstreamUnavailable, "TLS with it fails"),
        (ProxyRefused("it answers 407", 407), UpstreamMisconfigured, "answers 407"),
        (ProxyRefused("it answers 502", 502), UpstreamFailed, "answers 502"),
        (NotHttp(), UpstreamFailed, "not answer in HTTP"),
    ],
)
def test_sentences(cause, kind, sentence):
    explained = explain("main", cause)
    assert type(explained) is kind
    assert sentence in str(explained)
    assert "10.0.0.1" not in str(explained)


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_lack_of_descriptors_is_not_the_fault_of_the_upstream(number):
    with pytest.raises(OSError, match=os.strerror(errno.EMFILE)) as caught:
        explain("main", ConnectError(number))
    assert caught.value.errno == number


WHY = "blocked by policy: CVE-2026-1"


@pytest.mark.parametrize(
    ("body", "media_type", "reason"),
    [
        (b'{"error":"blocked by policy: CVE-2026-1"}', "application/json", "Forbidden"),
        (b'{"error":{"code":7,"message":"blocked by policy: CVE-2026-1"}}', "application/json", "Forbidden"),
        (b'{"errors":[{"code":"DENIED","message":"blocked by policy: CVE-2026-1"}]}', "application/json", "Forbidden"),
        (b'{"errors":[],"detail":"blocked by policy: CVE-2026-1"}', "application/problem+json", "Forbidden"),
        (b'"blocked by policy: CVE-2026-1"', "application/json", ""),
        (b"blocked by policy:\r\n\x1b CVE-2026-1\n", "text/plain", "Forbidden"),
        (b"blocked by policy: CVE-2026-1", "", "Forbidden"),
        (b"<html><h1>403 Forbidden</h1></html>", "text/html", "blocked by policy: CVE-2026-1"),
        (b"\xff\xfe", "application/octet-stream", "blocked by policy: CVE-2026-1"),
        (b"", "", "blocked by policy: CVE-2026-1"),
    ],
)
def test_sentence_is_found_in_all_forms(body: bytes, media_type: str, reason: str) -> None:
    assert find_sentence(body, media_type, reason) == WHY


@pytest.mark.parametrize(
    ("body", "media_type"),
    [(b"<html>", "text/html"), (b"{}", "application/json"), (b"[" * 100_000, "application/json"), (b"7", "text/plain")],
)
def test_usual_reason_phrase_is_no_sentence(body: bytes, media_type: str) -> None:
    assert find_sentence(body, media_type, "Forbidden") == ""


def test_long_sentence_is_cut() -> None:
    assert len(find_sentence(b"x" * 10_000, "text/plain", "")) == MOST_CHARACTERS
