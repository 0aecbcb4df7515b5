"""
The text of access tokens: create, recognise, hash. No catalog is needed.

``pkgr_<kind letter>_<40 characters><6 check characters>``, all base62. The 40 characters hold 238 random bits, so that
a plain sha256 at rest is safe. The check characters are the CRC-32 of all before them: a scanner for leaked secrets can
verify a token offline.
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
# Access tokens, with hyphens too (presented_tokens), and signed ones (RFC 7519: three parts, the first of which begins
# with an object's "{\"").
_SECRETS = re.compile(rf"{PREFIX[:-1]}[_-][a-z][_-][0-9A-Za-z]+|eyJ[\w-]+\.[\w-]+\.[\w-]*")


def make_token(kind: TokenKind) -> str:
    """The text of a new token. Show it once and store only its hash; it must not appear in logs, errors or values."""
    head = f"{PREFIX}{kind.value[0]}_" + "".join(secrets.choice(BASE62) for _ in range(RANDOM_LENGTH))
    return head + _check(head)


def token_kind(text: str) -> TokenKind | None:
    """The kind of a well-formed token text, else None. It does not check whether the token exists."""
    match = _TEXT.fullmatch(text)
    if match is None or _check(text[:-CHECK_LENGTH]) != text[-CHECK_LENGTH:]:
        return None
    return _KINDS[match[1]]


def hash_token(text: str) -> bytes:
    """The hash that the catalog stores: the sha256 of the text."""
    return hashlib.sha256(text.encode()).digest()


def shown_part(text: str) -> str:
    """The part of a token that may be shown: prefix, kind and four characters."""
    return f"{text[: len(PREFIX) + 2]}...{text[-4:]}"


def hide_tokens(text: str) -> str:
    """Replace access and bearer tokens in a text, such as the path of a request."""
    return _SECRETS.sub("***", text)


def _check(head: str) -> str:
    value = zlib.crc32(head.encode())
    digits = []
    for _ in range(CHECK_LENGTH):
        value, digit = divmod(value, 62)
        digits.append(BASE62[digit])
    return "".join(reversed(digits))
