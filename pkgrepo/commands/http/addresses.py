"""Addresses that people write on the command line."""

from __future__ import annotations

from urllib.parse import urlsplit

from pkgrepo.commands.texts import printable
from pkgrepo.errors import Invalid

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def parse_address(url: str, kind: str, option: str) -> str:
    """
    The address without slashes at its end.

    ``kind`` is what it should be the address of, with an example, ``option`` where it comes from: for the message.

    :raises Invalid: it is no such address, or has credentials
    """
    try:
        parts = urlsplit(url)
        has_credentials = "@" in parts.netloc
        is_one = parts.port is None or parts.port > 0
    except ValueError:
        is_one, has_credentials = False, "@" in url
    if has_credentials:
        raise Invalid(f"credentials do not belong into {option}: other users can see them")
    if not is_one or parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise Invalid(f"{printable(url)} is no address of {kind}")
    return url.rstrip("/")


def is_plain(url: str) -> bool:
    """Whether credentials that are sent to this address can be read on their way."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK
