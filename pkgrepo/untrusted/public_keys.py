"""Public keys that verify signatures of images and statements."""

from __future__ import annotations

import hashlib
from typing import Any

from attrs import field, frozen
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

_Key = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey


RSA_BITS = 2048  # the least; NIST SP 800-131A forbids shorter keys for signatures


class KeyInvalid(ValueError):  # noqa: N818 - named for what happened
    """A text is no supported public key. The message does not repeat the text."""


@frozen
class PublicKey:
    """A public key; ``id`` is the hex sha256 of its SubjectPublicKeyInfo, however the PEM was wrapped."""

    id: str
    key: _Key = field(eq=False, repr=False)

    def has_signed(self, signature: bytes, data: bytes) -> bool:
        """Whether this key made the signature over these bytes, with SHA-256 where the algorithm needs a hash."""
        if isinstance(self.key, ed25519.Ed25519PublicKey):
            return _verifies(self.key, signature, data)
        return self._has_signed(signature, data, SHA256())

    def has_signed_digest(self, signature: bytes, sha256: bytes) -> bool:
        """The same of bytes with a digest (32 bytes). Of an algorithm that needs the bytes themselves it is false."""
        if isinstance(self.key, ed25519.Ed25519PublicKey):
            return False
        return self._has_signed(signature, sha256, Prehashed(SHA256()))

    def _has_signed(self, signature: bytes, data: bytes, algorithm: SHA256 | Prehashed) -> bool:
        if isinstance(self.key, rsa.RSAPublicKey):
            # cosign signs with PKCS 1.5; some key services only with PSS, whose salt length the signature tells
            pss = padding.PSS(padding.MGF1(SHA256()), padding.PSS.AUTO)
            return any(_verifies(self.key, signature, data, each, algorithm) for each in (padding.PKCS1v15(), pss))
        return _verifies(self.key, signature, data, ec.ECDSA(algorithm))


def parse_key(text: str) -> PublicKey:
    """
    A public key from its PEM text.

    :raises KeyInvalid: the text is no key, or one of a kind that is not supported
    """
    if "PRIVATE KEY" in text:
        raise KeyInvalid("this is a private key; only the public one belongs here, and this one is known now")
    try:
        public = load_pem_public_key(text.encode("utf-8"))
    except (ValueError, UnsupportedAlgorithm):
        raise KeyInvalid("this is not a public key in PEM") from None
    return check_key(public)


def check_key(public: object) -> PublicKey:
    """A key as one of those that are supported. :raises KeyInvalid: it is of another kind"""
    if isinstance(public, ec.EllipticCurvePublicKey):
        if not isinstance(public.curve, ec.SECP256R1):
            raise KeyInvalid(f"ECDSA keys are of the curve P-256, not {public.curve.name}")
    elif isinstance(public, rsa.RSAPublicKey):
        if public.key_size < RSA_BITS:
            raise KeyInvalid(f"RSA keys have at least {RSA_BITS} bits, not {public.key_size}")
    elif not isinstance(public, ed25519.Ed25519PublicKey):
        raise KeyInvalid("public keys are of ECDSA P-256, Ed25519 or RSA")
    der = public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return PublicKey(hashlib.sha256(der).hexdigest(), public)


def encode_dsse(payload_type: str, payload: bytes) -> bytes:
    """The bytes that the signatures of an envelope sign (DSSE 1.0, "Signature Definition")."""
    kind = payload_type.encode("utf-8")
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def _verifies(public: Any, signature: bytes, data: bytes, *how: Any) -> bool:
    try:
        public.verify(signature, data, *how)
    except (InvalidSignature, ValueError):
        return False
    return True
