"""
Checks that a public log has a signature: an entry of Rekor 1 or 2, with what the log has signed of it.

=====================  ============================================================================================
part                   what it shows
=====================  ============================================================================================
promise                the log signed that it took the entry at that time (signed entry timestamp)
proof and checkpoint   the entry is in a tree (RFC 6962 section 2.1.1) whose root the log has signed
body                   the entry is about this signature, by this certificate, over this payload
=====================  ============================================================================================

The time comes from the promise. Entries of Rekor 2 have none: of these it comes from a timestamp authority.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.public_keys import encode_dsse
from pkgrepo.untrusted.strict_json import ERRORS

from .bundles import Bundle, LogEntry, Proof
from .roots import LogKey, TrustedRoot
from .timestamps import signed_at

_MOST_SIGNATURES: Final = 10  # of a checkpoint


class _Hash(msgspec.Struct):
    algorithm: str
    value: str


class _DsseSignature(msgspec.Struct):
    signature: bytes
    verifier: bytes


class _DsseSpec(msgspec.Struct, rename="camel"):
    payload_hash: _Hash
    signatures: list[_DsseSignature]


class _Dsse(msgspec.Struct, rename="camel", tag="dsse", tag_field="kind"):
    api_version: str
    spec: _DsseSpec


class _DataHash(msgspec.Struct):
    algorithm: str
    digest: bytes


class _Certificate(msgspec.Struct, rename="camel"):
    raw_bytes: bytes


class _Verifier(msgspec.Struct):
    certificate: _Certificate = msgspec.field(name="x509Certificate")


class _Signature(msgspec.Struct):
    content: bytes
    verifier: _Verifier


class _Hashed(msgspec.Struct):
    data: _DataHash
    signature: _Signature


class _PublicKey(msgspec.Struct):
    content: bytes  # PEM


class _FirstSignature(msgspec.Struct, rename="camel"):
    content: bytes
    public_key: _PublicKey


class _FirstData(msgspec.Struct):
    hash: _Hash


class _HashedSpec(msgspec.Struct):
    """That of Rekor 2, or else that of Rekor 1, which has no name of its own."""

    hashed: _Hashed | None = msgspec.field(name="hashedRekordV002", default=None)
    data: _FirstData | None = None
    signature: _FirstSignature | None = None


class _HashedRekord(msgspec.Struct, rename="camel", tag="hashedrekord", tag_field="kind"):
    api_version: str
    spec: _HashedSpec


class _IntotoSignature(msgspec.Struct, rename="camel"):
    public_key: bytes
    sig: bytes


class _IntotoEnvelope(msgspec.Struct):
    signatures: list[_IntotoSignature]


class _IntotoContent(msgspec.Struct, rename="camel"):
    envelope: _IntotoEnvelope
    payload_hash: _Hash


class _IntotoSpec(msgspec.Struct):
    content: _IntotoContent


class _Intoto(msgspec.Struct, rename="camel", tag="intoto", tag_field="kind"):
    api_version: str
    spec: _IntotoSpec


_decode_body = msgspec.json.Decoder(_Dsse | _Intoto | _HashedRekord).decode


def check_logged(bundle: Bundle, certificate: x509.Certificate, root: TrustedRoot, message: bytes = b"") -> datetime:
    """
    Check that a trusted log has the signature of a bundle, by this certificate. Returns when it came there (aware UTC).

    The ``message`` is the digest (SHA-256) of the bytes that the signature is over, if there is no statement.

    :raises Invalid: it has not
    """
    entry = bundle.entry
    log = root.logs.get(entry.log_id)
    if log is None:
        raise Invalid("its entry is in a transparency log that is not trusted")
    if not entry.promise and not bundle.timestamps:
        raise Invalid("neither the transparency log nor an authority has signed the time of its entry")
    if entry.promise and not log.key.has_signed(entry.promise, _promised(entry)):
        raise Invalid("the transparency log has not signed the time of its entry")
    needs_proof = bundle.needs_proof or not entry.promise
    at = datetime.fromtimestamp(entry.integrated_s, UTC)
    if not entry.promise:
        at = signed_at(bundle.timestamps[0], bundle.signature, root)
    if not log.period.has(at):
        raise Invalid("its entry is in a transparency log that is not trusted")
    if entry.proof is not None and (needs_proof or entry.proof.checkpoint):
        _check_proof(entry.body, entry.proof, log, entry.log_id)
    elif needs_proof:
        raise Invalid("it has no proof that the transparency log has its entry")
    _check_body(bundle, certificate, message)
    return at


def _promised(entry: LogEntry) -> bytes:
    """What the log signs of an entry when it takes it: canonical JSON (RFC 8785)."""
    said = {
        "body": base64.b64encode(entry.body).decode(),
        "integratedTime": entry.integrated_s,
        "logID": entry.log_id.hex(),
        "logIndex": entry.index,
    }
    return msgspec.json.encode(said)


def _check_proof(body: bytes, proof: Proof, log: LogKey, log_id: bytes) -> None:
    if _root_of(body, proof) != proof.root:
        raise Invalid("the proof that the transparency log has its entry is wrong")
    note, separator, signatures = proof.checkpoint.partition("\n\n")
    if not separator or not _is_signed(f"{note}\n".encode(), signatures, log, log_id):
        raise Invalid("the transparency log has not signed the proof that it has its entry")
    lines = note.split("\n")
    # c2sp.org/tlog-checkpoint: origin, size, base64 of the root
    if len(lines) < 3 or lines[1:3] != [str(proof.size), base64.b64encode(proof.root).decode()]:
        raise Invalid("the transparency log has signed another tree than the one in the proof")


def _root_of(body: bytes, proof: Proof) -> bytes | None:
    """The root of the tree by the path of hashes (RFC 9162 2.1.3.2); None if the path is of another length."""
    if proof.index >= proof.size:
        return None
    inner = (proof.index ^ (proof.size - 1)).bit_length()
    border = (proof.index >> inner).bit_count()
    if len(proof.hashes) != inner + border:
        return None
    found = hashlib.sha256(b"\x00" + body).digest()
    for level, each in enumerate(proof.hashes):
        left = level >= inner or proof.index >> level & 1
        found = hashlib.sha256(b"\x01" + (each + found if left else found + each)).digest()
    return found


def _is_signed(note: bytes, signatures: str, log: LogKey, log_id: bytes) -> bool:
    """Whether the log is among those who signed a note (c2sp.org/signed-note)."""
    for line in signatures.split("\n")[:_MOST_SIGNATURES]:
        if not line.startswith("\u2014 "):
            continue
        try:
            data = base64.b64decode(line.rpartition(" ")[2], validate=True)
        except ValueError:
            continue
        if data[:4] == log_id[:4] and log.key.has_signed(data[4:], note):
            return True
    return False


def _check_body(bundle: Bundle, certificate: x509.Certificate, message: bytes) -> None:
    """Check that the entry is about the signature of the bundle. :raises Invalid: it is about something else"""
    try:
        body = _decode_body(bundle.entry.body)
    except ERRORS:
        raise Invalid(_UNKNOWN) from None
    if isinstance(body, _HashedRekord):
        return _check_hashed(bundle, certificate, body, message)
    if bundle.is_message:
        raise Invalid("its entry in the transparency log is about a statement, and there is none")
    try:
        signed = _signed_by(body)
    except ERRORS:
        raise Invalid(_UNKNOWN) from None
    payload = body.spec.payload_hash if isinstance(body, _Dsse) else body.spec.content.payload_hash
    wanted = hashlib.sha256(bundle.payload).hexdigest()
    if payload.algorithm != "sha256" or payload.value != wanted:
        raise Invalid("its entry in the transparency log is about another statement")
    pem = certificate.public_bytes(Encoding.PEM)
    if [(signature, key.strip()) for signature, key in signed] != [(bundle.signature, pem.strip())]:
        raise Invalid("its entry in the transparency log is about another signature")
    return None


def _check_hashed(bundle: Bundle, certificate: x509.Certificate, body: _HashedRekord, message: bytes) -> None:
    """The same of an entry that has the digest of what is signed: of the bytes of a file, or of an envelope."""
    digest, signed = _hashed_by(body)
    if not bundle.is_message:
        message = hashlib.sha256(encode_dsse(bundle.payload_type, bundle.payload)).digest()
    if digest != message:
        raise Invalid(f"its entry in the transparency log is about {_OTHER[bundle.is_message]}")
    pem = isinstance(signed[1], str)
    key = certificate.public_bytes(Encoding.PEM).decode().strip() if pem else certificate.public_bytes(Encoding.DER)
    if signed != (bundle.signature, key):
        raise Invalid("its entry in the transparency log is about another signature")


_OTHER: Final = ("another statement", "a file with other bytes")
_UNKNOWN: Final = "its entry in the transparency log is of a kind that is not known"


def _hashed_by(body: _HashedRekord) -> tuple[bytes, tuple[bytes, bytes | str]]:
    """The digest in an entry, and the signature with the certificate: DER in Rekor 2, and PEM in Rekor 1."""
    spec = body.spec
    if body.api_version == "0.0.2" and spec.hashed is not None and spec.hashed.data.algorithm == "SHA2_256":
        second = spec.hashed.signature
        return spec.hashed.data.digest, (second.content, second.verifier.certificate.raw_bytes)
    first, data = spec.signature, spec.data
    if body.api_version == "0.0.1" and first is not None and data is not None and data.hash.algorithm == "sha256":
        with suppress(ValueError):
            pem = first.public_key.content.decode("ascii").strip()
            return bytes.fromhex(data.hash.value), (first.content, pem)
    raise Invalid(_UNKNOWN)


def _signed_by(body: _Dsse | _Intoto) -> Sequence[tuple[bytes, bytes]]:
    """The signatures in an entry, with the keys that verify them (PEM). :raises ValueError: it is of another version"""
    if isinstance(body, _Dsse) and body.api_version == "0.0.1":
        return [(each.signature, each.verifier) for each in body.spec.signatures]
    if isinstance(body, _Intoto) and body.api_version == "0.0.2":
        found = body.spec.content.envelope.signatures
        return [(base64.b64decode(each.sig, validate=True), each.public_key) for each in found]  # it is encoded twice
    raise ValueError("another version")
