"""
Signatures of the registry over published versions: ECDSA on P-256 with SHA-256, as ``npm audit signatures`` verifies.

The signed text is ``name@version:integrity``, so that a proxy between registry and client cannot replace the bytes of
a version by other bytes, or by those of another version. The key is in the catalog: all processes sign with the same.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from attrs import frozen
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.repositories.clock import format_time
from pkgrepo.storage.catalog.server import settings

KEY_TYPE: Final = "ecdsa-sha2-nistp256"

SETTING: Final = "npm_signing_key"


@frozen
class PublicKey:
    """A public key in DER (SubjectPublicKeyInfo). ``expires_at`` is when it stopped signing; None while it signs."""

    der: bytes
    expires_at: datetime | None = None

    @property
    def id(self) -> str:
        """The key id in signatures: a digest of the key."""
        return f"SHA256:{base64.b64encode(hashlib.sha256(self.der).digest()).rstrip(b'=').decode('ascii')}"


class Signer:
    """Signs with one private key; a signature takes 30 us."""

    def __init__(self, private: ec.EllipticCurvePrivateKey) -> None:
        if private.curve.name != ec.SECP256R1.name:
            raise ValueError(f"the signing key is on curve {private.curve.name}, and must be on secp256r1")
        self._private = private
        self.public = PublicKey(
            der=private.public_key().public_bytes(
                serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
            )
        )

    @classmethod
    def generate(cls) -> Signer:
        """A signer with a generated key."""
        return cls(ec.generate_private_key(ec.SECP256R1()))

    @classmethod
    def load(cls, pem: bytes) -> Signer:
        """
        The signer of a key that L{Signer.dump} wrote.

        :raises ValueError: it is no private key on P-256
        """
        private = serialization.load_pem_private_key(pem, password=None)
        if not isinstance(private, ec.EllipticCurvePrivateKey):
            raise ValueError("the signing key is no elliptic-curve key")  # noqa: TRY004 - the file is wrong, not the type
        return cls(private)

    def dump(self) -> bytes:
        """The private key in PEM (PKCS #8), not encrypted."""
        return self._private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def sign(self, name: str, version_text: str, integrity: str) -> dict[str, str]:
        """The signature of a version's tarball, as an entry of ``dist.signatures``."""
        message = f"{name}@{version_text}:{integrity}".encode()
        signature = self._private.sign(message, ec.ECDSA(hashes.SHA256()))
        return {"keyid": self.public.id, "sig": base64.b64encode(signature).decode("ascii")}


def keys_document(keys: Iterable[PublicKey]) -> dict[str, Any]:
    """
    The document at ``/-/npm/v1/keys``.

    A client that finds keys here requires a signature of every package.
    """
    return {
        "keys": [
            {
                "expires": None if key.expires_at is None else format_time(key.expires_at),
                "keyid": key.id,
                "keytype": KEY_TYPE,
                "scheme": KEY_TYPE,
                "key": base64.b64encode(key.der).decode("ascii"),
            }
            for key in keys
        ]
    }


def ensure_signer(tx: Transaction) -> Signer:
    """The registry's signer; the first call generates the key."""
    pem = settings.get(tx, SETTING)
    if pem is None:
        pem = Signer.generate().dump().decode("ascii")
        settings.put(tx, SETTING, pem)
    return _load(pem)


def find_public_key(reader: Reader) -> PublicKey | None:
    """The public key that verifies the signatures; None before anything was signed."""
    pem = settings.get(reader, SETTING)
    return None if pem is None else _load(pem).public


@lru_cache(maxsize=4)
def _load(pem: str) -> Signer:
    return Signer.load(pem.encode("ascii"))
