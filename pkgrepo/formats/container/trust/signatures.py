"""
Signatures of images, in both forms that cosign writes, held against the public keys that a repository trusts.

=============  ======================================  ============================================================
form           where it is                             what is signed
=============  ======================================  ============================================================
simple         layers of the manifest tagged           the layer, a JSON payload that names the digest; the
signing        ``sha256-HEX.sig`` (cosign 1, 2)        signature stands in the layer's annotations
bundle         layers of a manifest whose subject is   the pre-authentication encoding (DSSE 1.0) of an in-toto
               the image (cosign 3)                    statement about the digest
=============  ======================================  ============================================================

Certificates and transparency logs are not looked at: only a listed key makes a signature count. What cannot be read is
no signature, and never an error: anybody who may push can send anything.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from attrs import field, frozen
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from pkgrepo.formats.container.limits import MOST_CHECKS, MOST_LAYERS, MOST_SIGNATURES
from pkgrepo.storage.catalog.images.signatures import BUNDLE

PublicKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey

SIMPLE = "application/vnd.dev.cosign.simplesigning.v1+json"

_SIMPLE_TYPE = "cosign container image signature"
_SIGNATURE = "dev.cosignproject.cosign/signature"
_STATEMENT = "application/vnd.in-toto+json"
_SIGNED = "https://sigstore.dev/cosign/sign/v1"

RSA_BITS = 2048  # the least; NIST SP 800-131A forbids shorter keys for signatures


class KeyInvalid(ValueError):  # noqa: N818 - named for what happened
    """A text is no public key whose signatures can count; its sentence does not repeat the text."""


@frozen
class TrustedKey:
    """A public key; ``id`` is the hex sha256 of its SubjectPublicKeyInfo, however the PEM was wrapped."""

    id: str
    public: PublicKey = field(eq=False, repr=False)

    def has_signed(self, signature: bytes, data: bytes) -> bool:
        """Whether the signature is this key's, of exactly these bytes, with SHA-256 where a hash is needed."""
        if isinstance(self.public, rsa.RSAPublicKey):
            # cosign signs with PKCS 1.5; some KMS only with PSS, whose salt is read from the signature
            pss = padding.PSS(padding.MGF1(SHA256()), padding.PSS.AUTO)
            return any(_verifies(self.public, signature, data, each, SHA256()) for each in (padding.PKCS1v15(), pss))
        if isinstance(self.public, ec.EllipticCurvePublicKey):
            return _verifies(self.public, signature, data, ec.ECDSA(SHA256()))
        return _verifies(self.public, signature, data)


@frozen
class Candidate:
    """A layer that may hold a signature: its media type, its bytes, and what its descriptor is annotated with."""

    media_type: str
    data: bytes
    annotations: Mapping[str, Any]


def parse_key(text: str) -> TrustedKey:
    """
    A public key from its PEM text.

    :raises KeyInvalid: it is none, or of a kind that is not supported
    """
    if "PRIVATE KEY" in text:
        raise KeyInvalid("this is a private key; only the public one belongs here, and this one is known now")
    try:
        public = load_pem_public_key(text.encode("utf-8"))
    except (ValueError, UnsupportedAlgorithm):
        raise KeyInvalid("this is not a public key in PEM") from None
    if isinstance(public, ec.EllipticCurvePublicKey):
        if not isinstance(public.curve, ec.SECP256R1):
            raise KeyInvalid(f"ECDSA keys are of the curve P-256, not {public.curve.name}")
    elif isinstance(public, rsa.RSAPublicKey):
        if public.key_size < RSA_BITS:
            raise KeyInvalid(f"RSA keys have at least {RSA_BITS} bits, not {public.key_size}")
    elif not isinstance(public, ed25519.Ed25519PublicKey):
        raise KeyInvalid("public keys are of ECDSA P-256, Ed25519 or RSA")
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return TrustedKey(hashlib.sha256(der).hexdigest(), public)


def signature_layers(manifest: bytes) -> Sequence[tuple[str, str, int, Mapping[str, Any]]]:
    """Layers of a stored manifest that may hold signatures: media type, digest, size in bytes, annotations."""
    value = _object(manifest)
    layers = value.get("layers")
    found: list[tuple[str, str, int, Mapping[str, Any]]] = []
    for each in layers[:MOST_LAYERS] if isinstance(layers, list) else ():
        if not isinstance(each, dict) or each.get("mediaType") not in (SIMPLE, BUNDLE):
            continue
        digest, size, annotations = each.get("digest"), each.get("size"), each.get("annotations")
        if isinstance(digest, str) and isinstance(size, int):
            found.append((each["mediaType"], digest, size, annotations if isinstance(annotations, dict) else {}))
    return found


def signers(digest: str, candidates: Iterable[Candidate], keys: Sequence[TrustedKey]) -> frozenset[str]:
    """
    Ids of the keys that have signed the manifest of this digest.

    Takes some 0.1 ms for a signature and a key: many are for a thread. No more than MOST_CHECKS are held against each
    other.
    """
    found: set[str] = set()
    claims = (claim for candidate in candidates for claim in _claims(digest, candidate))
    checks = ((key, *claim) for claim in claims for key in keys if key.id not in found)
    for key, signature, signed in islice(checks, MOST_CHECKS):
        if key.has_signed(signature, signed):
            found.add(key.id)
    return frozenset(found)


def _claims(digest: str, candidate: Candidate) -> Iterator[tuple[bytes, bytes]]:
    """Signatures with the bytes they sign, of those that speak of this digest."""
    if candidate.media_type == SIMPLE:
        signature = _base64(candidate.annotations.get(_SIGNATURE))
        if signature and _is_payload_for(digest, candidate.data):
            yield signature, candidate.data
    elif candidate.media_type == BUNDLE:
        yield from _envelope_claims(digest, _object(candidate.data).get("dsseEnvelope"))


def _is_payload_for(digest: str, payload: bytes) -> bool:
    critical = _lowered(_lowered(_object(payload)).get("critical"))
    image = _lowered(critical.get("image"))
    return critical.get("type") == _SIMPLE_TYPE and image.get("docker-manifest-digest") == digest


def _envelope_claims(digest: str, envelope: Any) -> Iterator[tuple[bytes, bytes]]:
    if not isinstance(envelope, dict) or envelope.get("payloadType") != _STATEMENT:
        return
    payload, listed = _base64(envelope.get("payload")), envelope.get("signatures")
    if payload is None or not isinstance(listed, list) or not _is_statement_for(digest, payload):
        return
    signed = encode_dsse(_STATEMENT, payload)
    for each in listed[:MOST_SIGNATURES]:
        signature = _base64(each.get("sig")) if isinstance(each, dict) else None
        if signature:
            yield signature, signed


def _is_statement_for(digest: str, payload: bytes) -> bool:
    statement = _object(payload)
    subjects = statement.get("subject")
    if statement.get("predicateType") != _SIGNED or not isinstance(subjects, list):
        return False
    algorithm, _, text = digest.partition(":")
    # in-toto statement 1.0: what is stated holds for every subject
    return any(
        isinstance(each, dict) and isinstance(each.get("digest"), dict) and each["digest"].get(algorithm) == text
        for each in subjects
    )


def encode_dsse(payload_type: str, payload: bytes) -> bytes:
    """The bytes that an envelope's signatures are of (DSSE 1.0, "Signature Definition")."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def _verifies(public: Any, signature: bytes, data: bytes, *how: Any) -> bool:
    try:
        public.verify(signature, data, *how)
    except (InvalidSignature, ValueError):
        return False
    return True


def _object(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _lowered(value: Any) -> dict[str, Any]:
    # older writers spell Docker-manifest-digest
    return {key.lower(): each for key, each in value.items()} if isinstance(value, dict) else {}


def _base64(value: Any) -> bytes | None:
    """The bytes, from either alphabet: DSSE 1.0 leaves that to the writer."""
    if not isinstance(value, str):
        return None
    try:
        return base64.b64decode(value.replace("-", "+").replace("_", "/"), validate=True)
    except (ValueError, binascii.Error):
        return None
