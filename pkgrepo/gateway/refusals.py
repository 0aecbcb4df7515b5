"""The HTTP statuses of domain errors for formats without own ones, and refusals outside of any repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve

from pkgrepo import errors
from pkgrepo.http.answering.dispatch import ErrorTable
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, TEXT, Refusal, Response, error_response, text_response
from pkgrepo.proxy.parts.jobs import NormalisingFailed
from pkgrepo.repositories.policy.refusals import RuleRefused, TooYoung

Statuses = Mapping[type[Exception], tuple[int, str]]

STATUSES: Statuses = {
    errors.Invalid: (400, "invalid"),
    errors.NotFound: (404, "not_found"),
    errors.AlreadyExists: (409, "already_exists"),
    errors.Conflict: (409, "conflict"),
    errors.FileExists: (409, "file_exists"),
    errors.FileBurned: (409, "file_exists"),
    errors.AuthenticationFailed: (401, "unauthorized"),
    errors.AuthenticationRequired: (401, "unauthorized"),
    errors.SecondFactorRequired: (401, "second_factor_required"),
    errors.SecondFactorMissing: (401, "second_factor_missing"),
    errors.TooManyAttempts: (429, "too_many_attempts"),
    errors.Forbidden: (403, "forbidden"),
    errors.RepositoryInactive: (503, "inactive"),
    errors.ReadOnly: (405, "read_only"),
    errors.TooLarge: (413, "too_large"),
    errors.DigestMismatch: (400, "digest_mismatch"),
    errors.SizeMismatch: (400, "size_mismatch"),
    errors.BlobMissing: (500, "blob_missing"),
    errors.StorageFull: (507, "storage_full"),
    errors.QuotaExceeded: (507, "quota_exceeded"),  # RFC 4331 section 4
    errors.StorageFailed: (503, "storage_failed"),
    errors.Expired: (410, "expired"),
    errors.PositionLost: (410, "position_lost"),
    errors.IssuerUnavailable: (503, "issuer_unavailable"),
    errors.IdentityRefused: (422, "identity_refused"),
    TooYoung: (403, "too_young"),
    RuleRefused: (403, "policy"),
    NormalisingFailed: (503, "not_processed"),
    errors.UpstreamFailed: (502, "upstream_failed"),
    errors.UpstreamDenied: (403, "upstream_denied"),
    # RFC 4918 section 11.4. Clients try 5xx again for minutes, conda reads 403 as an empty channel, and bundler as a
    # wrong password of its own.
    errors.UpstreamMisconfigured: (424, "upstream_misconfigured"),
    errors.UpstreamUnavailable: (503, "upstream_unavailable"),
    errors.UpstreamLimited: (503, "upstream_limited"),
    errors.UpstreamTimeout: (504, "upstream_timeout"),
    errors.UpstreamLoop: (508, "loop_detected"),  # RFC 5842 section 7.2
}


# The parts of the book that help, by the codes of refusals.
HELP: Mapping[str, str] = {
    "unauthorized": "permissions#access-tokens",
    "second_factor_required": "permissions#a-second-factor",
    "second_factor_missing": "permissions#a-second-factor",
    "forbidden": "permissions",
    "policy": "policy",
    "too_young": "cooldowns",
    "quota_exceeded": "quotas#when-it-is-refused",
    "identity_refused": "trusted-publishing",
    "issuer_unavailable": "trusted-publishing#1-name-the-issuer",
    "blob_missing": "backup#bytes-that-rot",
    "storage_full": "troubleshooting",
    "storage_failed": "troubleshooting",
    "upstream_failed": "proxies#when-upstreams-are-down",
    "upstream_unavailable": "proxies#when-upstreams-are-down",
    "upstream_timeout": "proxies#when-upstreams-are-down",
    "upstream_limited": "proxies#freshness-and-limits",
    "upstream_denied": "proxies#some-names-only",
    "upstream_misconfigured": "proxies#what-cannot-work",
    "loop_detected": "proxies#what-cannot-work",
}


def help_page(code: str) -> str:
    """The address, below that of the server, of the part of the book that helps with a refusal; empty for none."""
    page = HELP.get(code.lower())
    return f"/ui/docs/{page}" if page else ""


def refusal_headers(refusal: Refusal, scheme: bytes | None) -> tuple[tuple[bytes, bytes], ...]:
    """
    The header fields of a refusal, with those that 401, 405 and 503 need (RFC 9110 sections 11.6.1, 15.5.6, 10.2.3).

    What only takes no changes can be read. The part of the book that helps is a link (RFC 8288). Without a ``scheme``
    401 gets no field, for which a browser would ask the person for a password in a window of its own.
    """
    needed = {405: (b"Allow", b"GET, HEAD"), 503: (b"Retry-After", b"5")}
    if scheme is not None:
        needed[401] = (b"WWW-Authenticate", scheme)
    found, field, page = refusal.headers, needed.get(refusal.status), help_page(refusal.code)
    if field is not None and not any(name.lower() == field[0].lower() for name, _ in refusal.headers):
        found = (*found, field)
    return (*found, (b"Link", b'<%s>; rel="help"' % page.encode("ascii"))) if page else found


# npm asks for a new login where Bearer is named. The resolver of sbt takes the last line, and wants Basic alone there.
REALM: Final = b'Basic realm="pkgrepo"'
BEARER: Final = (b"WWW-Authenticate", b"Bearer")


# RubyGems prints the body of a response as it is.
_PRINTS_BODY: Final = (b"Ruby", b"RubyGems")


def render_refusal(request: Request, refusal: Refusal) -> Response:
    """The answer to a request that is refused."""
    response = refusal_response(refusal)
    if (request.header(b"user-agent") or b"").startswith(_PRINTS_BODY):
        return evolve(response, body=refusal.sentence.encode("utf-8", "replace"), content_type=TEXT)
    return response


def refusal_response(refusal: Refusal) -> Response:
    """The response to a request that is refused, as most clients get it."""
    headers = (*refusal_headers(refusal, REALM), *NO_STORE)
    if refusal.status == 401:
        headers = (BEARER, *headers)
    return error_response(refusal.sentence, refusal.status, headers)


def text_refusal(_request: Request, refusal: Refusal) -> Response:
    """The answer for clients that print the body, or the reason phrase: the sentence goes into both."""
    headers = (*refusal_headers(refusal, REALM), *NO_STORE)
    reason = refusal.sentence.partition("\n")[0]
    return text_response(f"{refusal.sentence}\n", refusal.status, headers=headers, reason=reason)


ERRORS = ErrorTable(STATUSES, render_refusal)
TEXT_ERRORS = ErrorTable(STATUSES, text_refusal)
