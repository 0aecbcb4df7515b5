"""
The text of access tokens: made, recognised and hashed without asking anybody.

``pkgr_<kind letter>_<40 characters><6 check characters>``, all base62. The characters hold 238 random bits, so their
plain sha256 is enough at rest; the check characters are the CRC-32 of what precedes them, so that a scanner for
leaked secrets can tell a token from a look-alike offline.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib

from pkgrepo.model import TokenKind

PREFIX = "pkgr_"
BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
RANDOM_LENGTH = 40  # characters; 238 bits
CHECK_LENGTH = 6  # characters; 62**6 is more than 2**32

_KINDS = {kind.value[0]: kind for kind in TokenKind}
_TEXT = re.compile(rf"{PREFIX}([{''.join(_KINDS)}])_[0-9A-Za-z]{{{RANDOM_LENGTH + CHECK_LENGTH}}}")
# Access tokens, and signed ones (RFC 7519: three parts, the first of which begins with an object's "{\"").
_SECRETS = re.compile(rf"{PREFIX}[a-z]_[0-9A-Za-z]+|eyJ[\w-]+\.[\w-]+\.[\w-]*")


def make_token(kind: TokenKind) -> str:
    """The text of a new token. Show it once, keep its hash, and let it into no log, error or value."""
    head = f"{PREFIX}{kind.value[0]}_" + "".join(secrets.choice(BASE62) for _ in range(RANDOM_LENGTH))
    return head + _check(head)


def token_kind(text: str) -> TokenKind | None:
    """The kind of a well-formed token text, or None for anything else; whether it was ever issued is not asked."""
    match = _TEXT.fullmatch(text)
    if match is None or _check(text[:-CHECK_LENGTH]) != text[-CHECK_LENGTH:]:
        return None
    return _KINDS[match[1]]


def hash_token(text: str) -> bytes:
    """What the catalog keeps of a token: the sha256 of its text."""
    return hashlib.sha256(text.encode()).digest()


def shown_part(text: str) -> str:
    """Enough of a token to tell it from its owner's others, too little to use: prefix, kind and four characters."""
    return f"{text[: len(PREFIX) + 2]}...{text[-4:]}"


def hide_tokens(text: str) -> str:
    """A text, such as the path of a request, without the access and bearer tokens in it."""
    return _SECRETS.sub("***", text)


def _check(head: str) -> str:
    value = zlib.crc32(head.encode())
    digits = []
    for _ in range(CHECK_LENGTH):
        value, digit = divmod(value, 62)
        digits.append(BASE62[digit])
    return "".join(reversed(digits))
