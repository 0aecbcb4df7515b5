"""Values that carry their expiry time and an HMAC, so that a server need not store them."""

from __future__ import annotations

import base64
import hmac


def seal(key: bytes, purpose: str, until_ms: int, value: str) -> str:
    """A value with its expiry time and their HMAC; a value sealed for one purpose is invalid for another."""
    return f"{until_ms}.{value}.{_mac(key, purpose, until_ms, value)}"


def unseal(key: bytes, purpose: str, sealed: str) -> tuple[str, int] | None:
    """The value in a seal and its expiry time, in milliseconds; None when the HMAC does not match."""
    until, _, rest = sealed.partition(".")
    value, _, mac = rest.partition(".")
    if not (until.isascii() and until.isdigit() and len(until) < 16 and value.isascii() and mac.isascii()):
        return None
    if not hmac.compare_digest(mac, _mac(key, purpose, int(until), value)):
        return None
    return value, int(until)


def _mac(key: bytes, purpose: str, until_ms: int, value: str) -> str:
    digest = hmac.digest(key, f"{purpose}.{until_ms}.{value}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")
