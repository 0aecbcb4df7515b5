"""
URLs of upstreams: parsed strictly into a canonical text, so that every reader of it sees the same host (RFC 3986).

Paths and queries are kept as they are written: ``%2f`` and ``%2F`` may name different things at an upstream.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address
from urllib.parse import quote, urljoin, urlsplit

from attrs import frozen

DEFAULT_PORTS = {"http": 80, "https": 443}
MOST_CHARACTERS = 8192  # of a URL; signed ones of object stores have up to 2,000

_TEXT = re.compile(r"[!-\[\]-~]+")  # printable ASCII without a backslash, which some parsers take for a slash
_HOST_NAME = re.compile(r"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?")
_URL = re.compile(r"(https?://[^/?#]*)([^?#]*)(\?[^#]*)?", re.IGNORECASE)
_VISIBLE = "".join(map(chr, range(0x21, 0x7F)))

Origin = tuple[str, str, int]


class UserInfoError(ValueError):
    """A URL has a user name or a password before its host."""


@frozen
class Target:
    """
    An absolute http or https URL without user information and fragment; ``text`` is all of it.

    ``host`` is lower-case, an IPv6 address without its brackets.
    """

    scheme: str
    host: str
    port: int
    text: str

    @property
    def origin(self) -> Origin:
        """Scheme, host and port (RFC 6454)."""
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> bytes:
        """Host and port, as CONNECT names them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}".encode()


@lru_cache(maxsize=64)  # a request asks twice: our client, and the agent below treq
def parse_url(text: str) -> Target:
    """An absolute URL; its fragment is dropped. :raises ValueError: with the reason, as a clause about "it"."""
    if len(text) > MOST_CHARACTERS or not _TEXT.fullmatch(text):
        raise ValueError("it has a space, a backslash, a character that is not ASCII, or is too long")
    found = _URL.match(text)
    if found is None:
        raise ValueError("it does not begin with http:// or https://")
    root, path, query = found.groups(default="")
    scheme, host, port, prefix = _parse_root(root)
    return Target(scheme, host, port, f"{prefix}{path or '/'}{query}")


def join_path(base: Target, path: str) -> Target:
    """The URL of a path (with a query, as on the wire) below a base URL. :raises ValueError: see L{parse_url}"""
    return parse_url(f"{base.text.rstrip('/')}/{path.removeprefix('/')}")


def resolve_reference(base: Target, reference: str) -> Target:
    """
    The URL that a Location field means (RFC 9110 section 10.2.2), whose text is decoded as ISO-8859-1.

    Bytes that no URL has are percent-encoded, as browsers do it.

    :raises ValueError: see L{parse_url}
    """
    if _URL.match(reference) and _TEXT.fullmatch(reference):
        return parse_url(reference)
    try:
        return parse_url(urljoin(base.text, quote(reference.encode("latin-1"), safe=_VISIBLE.replace("\\", ""))))
    except UnicodeEncodeError:
        raise ValueError("it is not a URL") from None


@lru_cache(maxsize=256)  # the files of a package have one host, and this takes three quarters of the time
def _parse_root(root: str) -> tuple[str, str, int, str]:
    """Scheme, host, port and canonical text of what precedes the path. :raises ValueError: see L{parse_url}"""
    try:
        parts = urlsplit(root)
        port = parts.port
    except ValueError:
        raise ValueError("it is not a URL") from None
    if parts.username is not None or parts.password is not None:
        raise UserInfoError("it has a user name or a password")
    host = parts.hostname or ""
    if not _is_host(host) or ("[" in parts.netloc) != (":" in host) or port == 0:
        raise ValueError("it has no valid host and port")
    default = DEFAULT_PORTS[parts.scheme]
    shown_host = f"[{host}]" if ":" in host else host
    shown_port = "" if port in (None, default) else f":{port}"
    return parts.scheme, host, port or default, f"{parts.scheme}://{shown_host}{shown_port}"


def _is_host(text: str) -> bool:
    if ":" not in text:
        return len(text) <= 253 and _HOST_NAME.fullmatch(text) is not None
    try:
        return IPv6Address(text).scope_id is None
    except ValueError:
        return False
