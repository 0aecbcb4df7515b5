"""The registry's signing key; it is stored in the catalog, so that all processes sign with the same key."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.server import settings

from .signatures import PublicKey, Signer

SETTING: Final = "npm_signing_key"


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
