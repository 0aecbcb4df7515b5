"""
The keys and certificates by which bundles are verified: a trusted root as Sigstore publishes it.

``trusted_root.json`` beside this module is that of the public instance. It changes about once a year; an operator
replaces it by a file of the same form (``sigstore.trusted_root``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Final

import msgspec
from attrs import frozen
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_der_public_key

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.public_keys import KeyInvalid, PublicKey, check_key
from pkgrepo.untrusted.strict_json import ERRORS, describe

LARGEST: Final = 1024 * 1024  # bytes; that of the public instance has 7 KiB
PUBLIC: Final = Path(__file__).with_name("trusted_root.json")
VERSION: Final = "1"  # counted up when this server verifies otherwise: what was found before is looked at again

_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
_LATEST: Final = datetime.max.replace(tzinfo=UTC)


@frozen
class Period:
    """When something is trusted, both ends included."""

    start: datetime = _EARLIEST
    end: datetime = _LATEST

    def has(self, at: datetime) -> bool:
        """Whether a time (aware) is in it."""
        return self.start <= at <= self.end


@frozen
class LogKey:
    """The key of a log, and when it signs."""

    key: PublicKey
    period: Period


@frozen
class Authority:
    """A certificate authority: its certificates from the one that issues to the root, and when it issues."""

    chain: Sequence[x509.Certificate]
    period: Period


@frozen(kw_only=True, eq=False)
class TrustedRoot:
    """
    What bundles are verified by: ``authorities``, and the keys of transparency and certificate logs by their ids.

    The chain of each of the ``timestamp_authorities`` begins with the certificate by which it signs.

    ``id`` differs for another root, and for another way to verify.
    """

    id: str
    authorities: Sequence[Authority]
    logs: Mapping[bytes, LogKey]
    certificate_logs: Mapping[bytes, LogKey]
    timestamp_authorities: Sequence[Authority] = ()


class _Period(msgspec.Struct):
    start: datetime | None = None
    end: datetime | None = None

    def read(self) -> Period:
        return Period(_aware(self.start) or _EARLIEST, _aware(self.end) or _LATEST)


class _Key(msgspec.Struct, rename="camel"):
    raw_bytes: bytes
    valid_for: _Period = msgspec.field(default_factory=_Period)


class _LogId(msgspec.Struct, rename="camel"):
    key_id: Annotated[bytes, msgspec.Meta(min_length=1, max_length=64)]


class _Log(msgspec.Struct, rename="camel"):
    public_key: _Key
    log_id: _LogId


class _Certificate(msgspec.Struct, rename="camel"):
    raw_bytes: bytes


class _Chain(msgspec.Struct):
    certificates: Annotated[list[_Certificate], msgspec.Meta(min_length=1, max_length=10)]


class _Authority(msgspec.Struct, rename="camel"):
    cert_chain: _Chain
    valid_for: _Period = msgspec.field(default_factory=_Period)


class _Root(msgspec.Struct, rename="camel"):
    tlogs: list[_Log]
    certificate_authorities: list[_Authority]
    ctlogs: list[_Log]
    timestamp_authorities: list[_Authority] = []


def read_trusted_root(data: bytes) -> TrustedRoot:
    """The trusted root in a JSON text (``dev.sigstore.trustroot.v1``). :raises Invalid: it is another text"""
    if len(data) > LARGEST:
        raise Invalid(f"the trusted root has more than {LARGEST} bytes")
    try:
        found = msgspec.json.decode(data, type=_Root, strict=False)
    except ERRORS as error:
        raise Invalid(f"this is no trusted root of Sigstore: {describe(data, error)}") from None
    try:
        root = TrustedRoot(
            id=f"{VERSION}-{hashlib.sha256(data).hexdigest()[:16]}",
            authorities=[_authority(each) for each in found.certificate_authorities],
            logs=_logs(found.tlogs),
            certificate_logs=_logs(found.ctlogs),
            timestamp_authorities=[_authority(each) for each in found.timestamp_authorities],
        )
    except (ValueError, UnsupportedAlgorithm) as error:
        raise Invalid(f"the trusted root has a key or a certificate that cannot be read: {error}") from None
    if not (root.authorities and root.logs and root.certificate_logs):
        raise Invalid("the trusted root names no certificate authority, no transparency log, or no certificate log")
    return root


@cache
def public_root() -> TrustedRoot:
    """The trusted root of the public instance."""
    return read_trusted_root(PUBLIC.read_bytes())


def root_of(path: Path | None) -> TrustedRoot:
    """The trusted root in a file, or that of the public instance. :raises Invalid: it cannot be read"""
    if path is None:
        return public_root()
    try:
        with path.open("rb") as file:
            return read_trusted_root(file.read(LARGEST + 1))
    except OSError as error:
        raise Invalid(f"{path} cannot be read: {error.strerror}") from None
    except Invalid as error:
        raise Invalid(f"{path}: {error}") from None


def _authority(given: _Authority) -> Authority:
    chain = [x509.load_der_x509_certificate(each.raw_bytes) for each in given.cert_chain.certificates]
    return Authority(chain, given.valid_for.read())


def _logs(given: Sequence[_Log]) -> Mapping[bytes, LogKey]:
    found: dict[bytes, LogKey] = {}
    for each in given:
        try:
            key = check_key(load_der_public_key(each.public_key.raw_bytes))
        except KeyInvalid:
            continue  # of a log that this server cannot verify: what only that has is not verified
        found[each.log_id.key_id] = LogKey(key, each.public_key.valid_for.read())
    return found


def _aware(at: datetime | None) -> datetime | None:
    return at if at is None or at.tzinfo is not None else at.replace(tzinfo=UTC)
