"""
Rendering of errors for container clients, and the status and code of each exception.

Clients print the code and the message; an error of another shape they show as a parse failure. docker repeats a request
that failed with 5xx, and skopeo tries other formats of a manifest after 400, so refusals by a rule are neither.
"""

from __future__ import annotations

from typing import Any

from pkgrepo import errors
from pkgrepo.gateway.refusals import refusal_headers
from pkgrepo.http.answering.dispatch import ErrorTable
from pkgrepo.http.reading.body import BodyLost, BodyTooLarge
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Fields, Refusal, Response, json_response
from pkgrepo.repositories.images.blobs import StillNeeded
from pkgrepo.repositories.images.push import TagConditionFailed
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.repositories.publish.upload_leases import UploadUnknown

from .names import DigestInvalid, NameInvalid, TagInvalid

VERSION: Fields = ((b"Docker-Distribution-API-Version", b"registry/2.0"),)

BASIC = b'Basic realm="pkgrepo"'

# Codes for refusals of other rooms, by status.
_CODES = {404: "NAME_UNKNOWN", 405: "UNSUPPORTED", 413: "SIZE_INVALID", 408: "BLOB_UPLOAD_INVALID", 503: "UNAVAILABLE"}
_KNOWN = frozenset(
    {
        "UNAUTHORIZED",
        "DENIED",
        "UNSUPPORTED",
        "NAME_INVALID",
        "NAME_UNKNOWN",
        "MANIFEST_UNKNOWN",
        "MANIFEST_INVALID",
        "MANIFEST_BLOB_UNKNOWN",
        "TAG_INVALID",
        "BLOB_UNKNOWN",
        "BLOB_UPLOAD_UNKNOWN",
        "BLOB_UPLOAD_INVALID",
        "DIGEST_INVALID",
        "SIZE_INVALID",
        "RANGE_INVALID",
        "PAGINATION_NUMBER_INVALID",
        "TOOMANYREQUESTS",
        "UNAVAILABLE",
    }
)


def render_refusal(_request: Request, refusal: Refusal) -> Response:
    """The refusal as an error of OCI distribution 1.1, section "Error codes"; the sentence is the message."""
    code = refusal.code
    if isinstance(refusal, BodyLost):
        code = "BLOB_UPLOAD_INVALID"
    elif isinstance(refusal, BodyTooLarge):
        code = "SIZE_INVALID"
    elif code not in _KNOWN:
        code = _CODES.get(refusal.status, "UNKNOWN")
    listed: list[Any] = list(refusal.errors[: errors.MOST_ERRORS])
    if not listed:
        only: dict[str, Any] = {"code": code, "message": refusal.sentence}
        if refusal.detail is not None:
            only["detail"] = refusal.detail
        listed = [only]
    own = tuple(each for each in refusal_headers(refusal, BASIC) if each not in VERSION)
    headers = (*VERSION, *own, *NO_STORE)
    return json_response({"errors": listed}, refusal.status, headers=headers)


ERRORS = ErrorTable(
    {
        NameInvalid: (400, "NAME_INVALID"),
        TagInvalid: (400, "TAG_INVALID"),
        DigestInvalid: (400, "DIGEST_INVALID"),
        UploadUnknown: (404, "BLOB_UPLOAD_UNKNOWN"),
        TagConditionFailed: (412, "DENIED"),
        StillNeeded: (405, "UNSUPPORTED"),
        errors.Invalid: (400, "MANIFEST_INVALID"),
        errors.NotFound: (404, "NAME_UNKNOWN"),
        errors.Conflict: (409, "BLOB_UPLOAD_INVALID"),
        errors.AuthenticationFailed: (401, "UNAUTHORIZED"),
        errors.AuthenticationRequired: (401, "UNAUTHORIZED"),
        errors.TooManyAttempts: (429, "TOOMANYREQUESTS"),
        errors.Forbidden: (403, "DENIED"),
        RuleRefused: (403, "DENIED"),
        errors.RepositoryInactive: (503, "UNAVAILABLE"),
        errors.ReadOnly: (405, "UNSUPPORTED"),
        errors.TooLarge: (413, "SIZE_INVALID"),
        errors.DigestMismatch: (400, "DIGEST_INVALID"),
        errors.SizeMismatch: (400, "SIZE_INVALID"),
        errors.BlobMissing: (500, "UNKNOWN"),
        errors.StorageFull: (507, "DENIED"),
        errors.QuotaExceeded: (403, "DENIED"),  # docker reads errors of 4xx alone, and tries 5xx again
        errors.StorageFailed: (503, "UNAVAILABLE"),
        errors.IssuerUnavailable: (503, "UNAVAILABLE"),
        errors.UpstreamFailed: (502, "UNAVAILABLE"),
        errors.UpstreamDenied: (403, "DENIED"),
        errors.UpstreamMisconfigured: (424, "UNAVAILABLE"),
        errors.UpstreamUnavailable: (503, "UNAVAILABLE"),
        errors.UpstreamLimited: (429, "TOOMANYREQUESTS"),
        errors.UpstreamTimeout: (504, "UNAVAILABLE"),
        errors.UpstreamLoop: (508, "UNAVAILABLE"),
    },
    render_refusal,
)
