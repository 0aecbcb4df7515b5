"""The HTTP statuses of domain errors, for formats without own ones."""

from __future__ import annotations

from collections.abc import Mapping

from pkgrepo import errors
from pkgrepo.http.answers import Refusal
from pkgrepo.proxy.parts.jobs import NormalisingFailed
from pkgrepo.proxy.release_age import TooYoung

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
    errors.TooManyAttempts: (429, "too_many_attempts"),
    errors.Forbidden: (403, "forbidden"),
    errors.RepositoryInactive: (503, "inactive"),
    errors.ReadOnly: (405, "read_only"),
    errors.TooLarge: (413, "too_large"),
    errors.DigestMismatch: (400, "digest_mismatch"),
    errors.SizeMismatch: (400, "size_mismatch"),
    errors.BlobMissing: (500, "blob_missing"),
    errors.StorageFull: (507, "storage_full"),
    errors.StorageFailed: (503, "storage_failed"),
    errors.Expired: (410, "expired"),
    TooYoung: (403, "too_young"),
    NormalisingFailed: (503, "not_processed"),
    errors.UpstreamFailed: (502, "upstream_failed"),
    errors.UpstreamUnavailable: (503, "upstream_unavailable"),
    errors.UpstreamLimited: (503, "upstream_limited"),
    errors.UpstreamTimeout: (504, "upstream_timeout"),
}


def refusal_headers(refusal: Refusal, scheme: bytes) -> tuple[tuple[bytes, bytes], ...]:
    """The header fields of a refusal, with those that 401 and 503 need (RFC 9110 sections 11.6.1, 10.2.3)."""
    if refusal.status == 401 and not any(name.lower() == b"www-authenticate" for name, _ in refusal.headers):
        return (*refusal.headers, (b"WWW-Authenticate", scheme))
    if refusal.status == 503 and not any(name.lower() == b"retry-after" for name, _ in refusal.headers):
        return (*refusal.headers, (b"Retry-After", b"5"))
    return refusal.headers
