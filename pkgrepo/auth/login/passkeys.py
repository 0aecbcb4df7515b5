"""
Passkeys (Web Authentication Level 2): what an authenticator says when a passkey is made, and when it logs in.

A passkey counts as two factors: the authenticator is one, and it has to verify its user by a PIN or the like (the flag
UV), so that neither a password nor a code is asked for. No attestation is asked for: the person has proven who they are
when a passkey is made, and chooses the authenticator. So the public key is taken from what the browser has read
(``getPublicKey``, section 5.2.1.1), and no CBOR is parsed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from hmac import compare_digest
from typing import Any, Final, Literal

from attrs import frozen
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from pkgrepo.errors import IdentityRefused, Invalid
from pkgrepo.untrusted.strict_json import decode_json

ALGORITHMS: Final = (-7, -8, -257)  # ES256, EdDSA, RS256 (RFC 8152, RFC 8812)
MOST_DATA: Final = 4096  # bytes of each part
MOST_ID: Final = 1023  # bytes of a credential id, section 6.5.1
RSA_BITS: Final = range(2048, 8193)
PRESENT, VERIFIED, ATTESTED = 0x01, 0x04, 0x40  # flags, section 6.1

Kind = Literal["webauthn.create", "webauthn.get"]


@frozen
class Site:
    """The server as browsers see it: ``origin`` such as ``https://packages.example``, and its host as ``rp_id``."""

    origin: str
    rp_id: str


@frozen
class AuthenticatorData:
    """What an authenticator says: its counter, and the id of a passkey that it has just made (else empty)."""

    sign_count: int
    credential_id: bytes


def read_new(site: Site, challenge: bytes, client_data: bytes, data: bytes, key: bytes) -> AuthenticatorData:
    """Check a new passkey (section 7.1). :raises IdentityRefused: it is not of this challenge, site or a known kind"""
    _check_client_data(client_data, "webauthn.create", challenge, site)
    found = _read(data, site)
    if not found.credential_id:
        raise IdentityRefused("the authenticator has made no passkey")
    _load(key)
    return found


def verify_login(
    site: Site, challenge: bytes, key: bytes, client_data: bytes, data: bytes, signature: bytes
) -> AuthenticatorData:
    """Check a login with a passkey (section 7.2). :raises IdentityRefused: it is not of this challenge, site or key"""
    _check_client_data(client_data, "webauthn.get", challenge, site)
    found = _read(data, site)
    signed = data + hashlib.sha256(client_data).digest()
    public = _load(key)
    try:
        if isinstance(public, ec.EllipticCurvePublicKey):
            public.verify(signature, signed, ec.ECDSA(SHA256()))
        elif isinstance(public, rsa.RSAPublicKey):
            public.verify(signature, signed, padding.PKCS1v15(), SHA256())
        else:
            public.verify(signature, signed)
    except InvalidSignature:
        raise IdentityRefused("the passkey has not signed this") from None
    return found


def encode(data: bytes) -> str:
    """Bytes as base64url without padding, as browsers send them."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def decode(text: str) -> bytes:
    """The bytes of base64url. :raises IdentityRefused: the text is not base64url, or too long"""
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not 0 < len(data) <= MOST_DATA:
        raise IdentityRefused("what the browser says of a passkey cannot be read")
    return data


def _check_client_data(text: bytes, kind: Kind, challenge: bytes, site: Site) -> None:
    try:
        value = decode_json(text)
    except Invalid:
        value = None
    if not isinstance(value, dict) or value.get("type") != kind or value.get("crossOrigin", False) is not False:
        raise IdentityRefused("what the browser says of a passkey is about something else")
    if value.get("origin") != site.origin:
        raise IdentityRefused(f"the passkey was used at another address than {site.origin}")
    given = value.get("challenge")
    if not isinstance(given, str) or not compare_digest(given.encode("utf-8", "replace"), encode(challenge).encode()):
        raise IdentityRefused("the passkey was used for another login")


def _read(data: bytes, site: Site) -> AuthenticatorData:
    if len(data) < 37 or data[:32] != hashlib.sha256(site.rp_id.encode()).digest():
        raise IdentityRefused("the passkey is of another site")
    flags = data[32]
    if not (flags & PRESENT and flags & VERIFIED):
        raise IdentityRefused("the authenticator has not verified its user, as by a PIN")
    credential = b""
    if flags & ATTESTED:
        length = int.from_bytes(data[53:55])
        credential = data[55 : 55 + length]
        if len(data) < 55 or len(credential) != length or not 0 < length <= MOST_ID:
            raise IdentityRefused("what the authenticator says cannot be read")
    return AuthenticatorData(int.from_bytes(data[33:37]), credential)


def _load(key: bytes) -> Any:
    try:
        public = load_der_public_key(key)
    except (ValueError, UnsupportedAlgorithm):
        raise IdentityRefused("the key of the passkey cannot be read") from None
    known = (
        (isinstance(public, ec.EllipticCurvePublicKey) and isinstance(public.curve, ec.SECP256R1))
        or (isinstance(public, rsa.RSAPublicKey) and public.key_size in RSA_BITS)
        or isinstance(public, ed25519.Ed25519PublicKey)
    )
    if not known:
        raise IdentityRefused("the key of the passkey is of a kind that this server does not know")
    return public
