"""Digests that clients announce for a file, in header fields and in checksum files."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.http.request import Request
from pkgrepo.untrusted.text import quoted

HEX_LENGTHS: Final = {"md5": 32, "sha1": 40, "sha256": 64, "sha512": 128}  # digits by algorithm

# The algorithms' names in Digest (RFC 3230), and in Content-Digest and Repr-Digest (RFC 9530).
_NAMES: Final = {b"md5": "md5", b"sha": "sha1", b"sha-256": "sha256", b"sha-512": "sha512"}
_FIELDS: Final = (b"digest", b"content-digest", b"repr-digest")

_BSD = re.compile(r"[^=\r\n]*=\s*([0-9a-fA-F]+)\s*")  # SHA1 (app.jar) = 0f1e...


def read_digests(request: Request) -> dict[str, str]:
    """
    The announced digests in lower-case hex, by algorithm; those of other algorithms are ignored.

    :raises Invalid: one is malformed, or two of one algorithm differ
    """
    found: dict[str, str] = {}
    for algorithm, digest in _announced(request):
        if len(digest) != HEX_LENGTHS[algorithm]:
            raise Invalid(f"the request announces a {algorithm} digest of a wrong length")
        if found.setdefault(algorithm, digest) != digest:
            raise Invalid(f"the request announces two {algorithm} digests")
    return found


def parse_checksum(body: bytes, algorithm: str) -> str:
    """
    The digest in a checksum file, in lower-case hex.

    It may be in upper case, may be followed by the name of the file, and may follow it as in ``SHA1(app.jar)= 0f1e``.

    :raises Invalid: there is none of this algorithm
    """
    text = body.decode("latin-1").strip()
    match = re.match(r"([0-9a-fA-F]+)(?=\s|$)", text) or _BSD.fullmatch(text)
    if match is None or len(match[1]) != HEX_LENGTHS[algorithm]:
        raise Invalid(f"this is no {algorithm} checksum: {quoted(text[:80])}")
    return match[1].lower()


def _announced(request: Request) -> Iterator[tuple[str, str]]:
    for algorithm in HEX_LENGTHS:
        value = request.header(b"x-checksum-" + algorithm.encode("ascii"))
        if value is not None:
            if re.fullmatch(rb"[0-9a-fA-F]+", value.strip()) is None:
                raise Invalid(f"X-Checksum-{algorithm.capitalize()} is no hex digest")
            yield algorithm, value.strip().decode("ascii").lower()
    md5 = request.header(b"content-md5")
    if md5 is not None:
        yield "md5", _hex(md5, "Content-MD5")
    for field in _FIELDS:
        for member in (request.header(field) or b"").split(b","):
            name, equals, value = member.strip().partition(b"=")
            known = _NAMES.get(name.strip().lower())
            if known is not None and equals:
                yield known, _hex(value.strip().strip(b":"), field.decode("ascii"))


def _hex(value: bytes, field: str) -> str:
    try:
        return b64decode(value.strip(), validate=True).hex()
    except ValueError:
        raise Invalid(f"{field} has a digest that is no base64") from None
