"""
Reads what was signed: Sigstore bundles (0.1 to 0.3), and the attestations of PEP 740, which have the same parts.

A bundle has a statement about files (DSSE), or a signature over the bytes of one file (a message signature). Nothing is
verified here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final, TypeVar

import msgspec
from attrs import frozen
from msgspec import Meta

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.strict_json import ERRORS, check_value_count, describe

LARGEST: Final = 1024 * 1024  # bytes of a document; attestations of a version have some 20 KiB
MOST_VALUES: Final = 20_000
STATEMENT: Final = "application/vnd.in-toto+json"  # the payload type of statements

T = TypeVar("T")

_Number = Annotated[int, Meta(ge=0, le=2**53)]
_Time = Annotated[int, Meta(ge=0, lt=253_370_764_800)]  # seconds; before the year 9999
_Short = Annotated[str, Meta(max_length=4096)]


@frozen
class Proof:
    """That an entry is in a log: its ``index`` in a tree of ``size`` with a ``root``, which a ``checkpoint`` signs."""

    index: int
    size: int
    root: bytes
    hashes: Sequence[bytes]
    checkpoint: str


@frozen(kw_only=True)
class LogEntry:
    """
    An entry of a transparency log: ``body`` are its bytes. ``integrated_s`` is when it came (seconds since 1970).

    ``promise`` is what the log signed then; it is empty, and ``proof`` None, if the bundle has none.
    """

    log_id: bytes
    index: int
    integrated_s: int
    body: bytes
    promise: bytes = b""
    proof: Proof | None = None


@frozen(kw_only=True)
class Bundle:
    """
    A signed statement: the ``certificate`` (DER) of its signer, its payload with a type, signature and entry.

    Of one that ``is_message`` the signature is that over the bytes of a file, and there is no payload.
    ``timestamps`` are responses of authorities about the signature (RFC 3161).
    """

    certificate: bytes
    payload: bytes
    payload_type: str
    signature: bytes
    entry: LogEntry
    needs_proof: bool = True
    timestamps: Sequence[bytes] = ()
    is_message: bool = False


class _LogId(msgspec.Struct, rename="camel"):
    key_id: bytes


class _Promise(msgspec.Struct, rename="camel"):
    signed_entry_timestamp: bytes = b""


class _Checkpoint(msgspec.Struct):
    envelope: _Short = ""


class _Proof(msgspec.Struct, rename="camel"):
    tree_size: _Number
    root_hash: bytes
    log_index: _Number = 0  # protobuf leaves out what is zero
    hashes: Annotated[list[bytes], Meta(max_length=64)] = []
    checkpoint: _Checkpoint = msgspec.field(default_factory=_Checkpoint)


class _Entry(msgspec.Struct, rename="camel"):
    log_id: _LogId
    canonicalized_body: bytes
    log_index: _Number = 0
    integrated_time: _Time = 0
    inclusion_promise: _Promise | None = None
    inclusion_proof: _Proof | None = None

    def read(self) -> LogEntry:
        proof = self.inclusion_proof
        return LogEntry(
            log_id=self.log_id.key_id,
            index=self.log_index,
            integrated_s=self.integrated_time,
            body=self.canonicalized_body,
            promise=b"" if self.inclusion_promise is None else self.inclusion_promise.signed_entry_timestamp,
            proof=None
            if proof is None
            else Proof(proof.log_index, proof.tree_size, proof.root_hash, proof.hashes, proof.checkpoint.envelope),
        )


_Entries = Annotated[list[_Entry], Meta(max_length=10)]


class _Certificate(msgspec.Struct, rename="camel"):
    raw_bytes: bytes


class _Chain(msgspec.Struct):
    certificates: Annotated[list[_Certificate], Meta(max_length=10)] = []


class _Timestamp(msgspec.Struct, rename="camel"):
    signed_timestamp: bytes


class _Timestamps(msgspec.Struct):
    tokens: Annotated[list[_Timestamp], Meta(max_length=10)] = msgspec.field(name="rfc3161Timestamps", default=[])


class _Material(msgspec.Struct, rename="camel"):
    certificate: _Certificate | None = None
    chain: _Chain | None = msgspec.field(default=None, name="x509CertificateChain")
    tlog_entries: _Entries = []
    timestamp_verification_data: _Timestamps | None = None


class _Signature(msgspec.Struct):
    sig: bytes


class _Envelope(msgspec.Struct, rename="camel"):
    payload: bytes
    payload_type: Annotated[str, Meta(max_length=200)]
    signatures: Annotated[list[_Signature], Meta(max_length=10)]


class _MessageSignature(msgspec.Struct):
    signature: bytes  # the digest beside it is only a hint: that of the file counts


class _Bundle(msgspec.Struct, rename="camel"):
    media_type: Annotated[str, Meta(max_length=200)]
    verification_material: _Material
    dsse_envelope: _Envelope | None = None
    message_signature: _MessageSignature | None = None


class _AttestedMaterial(msgspec.Struct):
    certificate: bytes
    transparency_entries: _Entries


class _AttestedEnvelope(msgspec.Struct):
    statement: bytes
    signature: bytes


class _Attestation(msgspec.Struct):
    version: int
    verification_material: _AttestedMaterial
    envelope: _AttestedEnvelope


_VERSIONS: Final = {  # the media types of bundles, with whether they must have a proof of inclusion
    "application/vnd.dev.sigstore.bundle+json;version=0.1": False,
    "application/vnd.dev.sigstore.bundle+json;version=0.2": True,
    "application/vnd.dev.sigstore.bundle+json;version=0.3": True,
    "application/vnd.dev.sigstore.bundle.v0.3+json": True,
}


def check_size(data: bytes) -> None:
    """Check that a document can be read. :raises Invalid: it is too long"""
    if len(data) > LARGEST:
        raise Invalid(f"it has more than {LARGEST} bytes")
    check_value_count(data, MOST_VALUES, "it")


def read_bundle(data: bytes, *, messages: bool = False) -> Bundle:
    """
    The statement in a Sigstore bundle (JSON); with ``messages`` also the signature over the bytes of a file.

    :raises Invalid: it has none that is signed with a certificate
    """
    found = _decode(data, _Bundle, "the bundle")
    needs_proof = _VERSIONS.get(found.media_type)
    if needs_proof is None:
        raise Invalid(f"the bundle is of a kind that is not known: {found.media_type[:100]!a}")
    material = found.verification_material
    chain = [] if material.chain is None else material.chain.certificates
    certificate = material.certificate or next(iter(chain), None)
    if certificate is None:
        raise Invalid("the bundle has no certificate of its signer")
    stamps = () if material.timestamp_verification_data is None else material.timestamp_verification_data.tokens
    made = partial(
        Bundle,
        certificate=certificate.raw_bytes,
        entry=_only(material.tlog_entries),
        needs_proof=needs_proof,
        timestamps=[each.signed_timestamp for each in stamps],
    )
    envelope, message = found.dsse_envelope, found.message_signature if messages else None
    if message is not None and envelope is None:
        return made(payload=b"", payload_type="", signature=message.signature, is_message=True)
    if envelope is None or message is not None:
        raise Invalid("the bundle cannot be read: it has not one statement")
    if len(envelope.signatures) != 1:
        raise Invalid(f"the bundle has {len(envelope.signatures)} signatures instead of one")
    return made(payload=envelope.payload, payload_type=envelope.payload_type, signature=envelope.signatures[0].sig)


def read_attestation(data: bytes) -> Bundle:
    """The statement in an attestation of PEP 740 (JSON). :raises Invalid: it cannot be read"""
    found = _decode(data, _Attestation, "the attestation")
    if found.version != 1:
        raise Invalid(f"the attestation is of version {found.version}, and 1 is known")
    return Bundle(
        certificate=found.verification_material.certificate,
        payload=found.envelope.statement,
        payload_type=STATEMENT,
        signature=found.envelope.signature,
        entry=_only(found.verification_material.transparency_entries),
    )


def _only(entries: Sequence[_Entry]) -> LogEntry:
    if len(entries) != 1:
        raise Invalid(f"it has {len(entries)} entries of a transparency log instead of one")
    return entries[0].read()


def _decode(data: bytes, type_: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(data, type=type_, strict=False)
    except ERRORS as error:
        raise Invalid(f"{what} cannot be read: {describe(data, error)}") from None
