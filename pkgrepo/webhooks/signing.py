"""
Secrets of webhooks, and signatures by the Standard Webhooks specification (https://www.standardwebhooks.com).

A signature is ``v1,`` and the base64 of HMAC-SHA-256 over ``id.timestamp.body``; the key is what follows ``whsec_`` in
the secret, base64-decoded. While a secret is rotated, a message has two signatures, separated by a space.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import Final

from pkgrepo.errors import Invalid

PREFIX: Final = "whsec_"
KEY_BYTES: Final = 32  # the specification wants 24 to 64
LEAST, MOST = 24, 64


def new_secret() -> str:
    """A new random secret."""
    return PREFIX + base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode("ascii")


def check_secret(text: str) -> str:
    """A secret that a caller chose. :raises Invalid: it has not the form of a secret"""
    try:
        size = len(_key(text)) if text.startswith(PREFIX) else 0
    except binascii.Error:
        size = 0
    if not LEAST <= size <= MOST:
        raise Invalid(f"a secret is {PREFIX} and the base64 of {LEAST} to {MOST} random bytes", "/secret")
    return text


def sign(keys: Iterable[str], message_id: str, timestamp: int, body: bytes) -> str:
    """The value of ``webhook-signature`` by each of the secrets; ``timestamp`` is in seconds."""
    signed = f"{message_id}.{timestamp}.".encode() + body
    made = (hmac.new(_key(each), signed, hashlib.sha256).digest() for each in keys)
    return " ".join(f"v1,{base64.b64encode(each).decode('ascii')}" for each in made)


def _key(text: str) -> bytes:
    return base64.b64decode(text.removeprefix(PREFIX), validate=True)
