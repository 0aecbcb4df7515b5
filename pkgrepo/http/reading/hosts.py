"""The grammar of host and port in a request's head, so narrow that libraries take everything that passes."""

from __future__ import annotations

import re
from ipaddress import IPv6Address

_LABEL = rb"[A-Za-z0-9_~-]{1,63}"  # RFC 1035 section 2.3.4; the codec for IDNA raises for longer and for empty ones
_HOST = re.compile(rb"(?:(%b(?:\.%b)*\.?)|\[([0-9A-Fa-f:.]+)\])(?::([0-9]{1,5}))?" % (_LABEL, _LABEL))
_MAX_NAME = 255  # bytes
_MAX_PORT = 65_535


def is_host(text: bytes) -> bool:
    """Whether ``text`` is a name or an address, IPv6 in brackets, perhaps with a port (RFC 9110 section 4.2.1)."""
    found = _HOST.fullmatch(text)
    if found is None or len(found[1] or b"") > _MAX_NAME or int(found[3] or 0) > _MAX_PORT:
        return False
    return found[2] is None or _is_ipv6(found[2].decode("ascii"))


def _is_ipv6(text: str) -> bool:
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True
