"""The registry's signing key, in the catalog: every process signs with the same one."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.server import settings

from .signatures import PublicKey, Signer

SETTING: Final = "npm_signing_key"


def ensure_signer(tx: Transaction) -> Signer:
    """The registry's signer, with a key made at the first call."""
    pem = settings.get(tx, SETTING)
    if pem is None:
        pem = Signer.generate().dump().decode("ascii")
        settings.put(tx, SETTING, pem)
    return _load(pem)


def find_public_key(reader: Reader) -> PublicKey | None:
    """The key that signatures are checked by; None before anything was signed."""
    pem = settings.get(reader, SETTING)
    return None if pem is None else _load(pem).public


@lru_cache(maxsize=4)
def _load(pem: str) -> Signer:
    return Signer.load(pem.encode("ascii"))
