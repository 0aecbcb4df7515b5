"""Registry signatures, verified as a client verifies them."""

import base64
import hashlib
from datetime import UTC, datetime

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from pkgrepo.formats.npm.signing import PublicKey, Signer, keys_document


def verify(document: dict, signature: dict, message: str) -> None:
    """Verify as npm does: find the key by its id, decode its DER, check ECDSA with SHA-256 over the text."""
    (key,) = [each for each in document["keys"] if each["keyid"] == signature["keyid"]]
    assert key["keytype"] == key["scheme"] == "ecdsa-sha2-nistp256"
    public = serialization.load_der_public_key(base64.b64decode(key["key"]))
    assert isinstance(public, ec.EllipticCurvePublicKey)
    public.verify(base64.b64decode(signature["sig"]), message.encode(), ec.ECDSA(hashes.SHA256()))


def test_signature_covers_name_version_and_integrity() -> None:
    signer = Signer.generate()
    signature = signer.sign("@sc/x", "1.0.0", "sha512-abc==")
    document = keys_document([Signer.generate().public, signer.public])
    verify(document, signature, "@sc/x@1.0.0:sha512-abc==")
    for other in ("@sc/y@1.0.0:sha512-abc==", "@sc/x@1.0.1:sha512-abc==", "@sc/x@1.0.0:sha512-abd=="):
        with pytest.raises(InvalidSignature):
            verify(document, signature, other)


def test_key_id_is_the_digest_of_the_key() -> None:
    public = Signer.generate().public
    digest = base64.b64encode(hashlib.sha256(public.der).digest()).decode().rstrip("=")
    assert public.id == f"SHA256:{digest}"


def test_dumped_key_loads_as_the_same_key() -> None:
    signer = Signer.generate()
    again = Signer.load(signer.dump())
    assert again.public == signer.public
    verify(keys_document([signer.public]), again.sign("x", "1.0.0", "i"), "x@1.0.0:i")


def test_other_kinds_of_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="curve secp384r1"):
        Signer(ec.generate_private_key(ec.SECP384R1()))
    pem = ed25519.Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with pytest.raises(ValueError, match="no elliptic-curve key"):
        Signer.load(pem)
    with pytest.raises(ValueError):  # noqa: PT011 - the library's own words
        Signer.load(b"no key")


def test_expired_keys_are_listed_with_their_expiry() -> None:
    old = PublicKey(der=Signer.generate().public.der, expires_at=datetime(2026, 1, 2, tzinfo=UTC))
    assert keys_document([old])["keys"][0]["expires"] == "2026-01-02T00:00:00.000Z"
    assert keys_document([Signer.generate().public])["keys"][0]["expires"] is None
