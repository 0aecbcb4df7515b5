"""
What an upstream appended to a document: it is received, verified together with what is kept, and normalised.

The digests of what is kept are in memory from one time to the next. After a start they are computed anew, in a thread.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
from typing import Any, Final

from attrs import frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.interfaces import IUpstreamResponse
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.jobs import Job, normalise
from pkgrepo.proxy.transfers.download import size_of_whole

from .held import Growing

MOST_TAIL: Final = 1024 * 1024  # bytes appended, which are written anew each time; then the whole is fetched
MOST_SUMS: Final = 64  # documents whose digests are kept

_SHA256: Final = re.compile(r"(?:^|[,\s])sha-256=[:\"]?([A-Za-z0-9+/]{43}=)", re.IGNORECASE)
_MD5: Final = re.compile(r'"([0-9a-f]{32})"')


@frozen
class Claims:
    """What a response says of the whole document: its sha256 (RFC 9530 and 3230), or its MD5 as a strong ETag."""

    sha256: bytes | None
    md5: str | None

    @classmethod
    def of(cls, response: IUpstreamResponse) -> Claims | None:
        """What a response says; None if it says neither."""
        fields = (response.headers.get(name) or "" for name in ("Repr-Digest", "Digest"))
        found = next((match for match in map(_SHA256.search, fields) if match), None)
        md5 = _MD5.fullmatch(response.headers.get("ETag") or "")
        if found is None and md5 is None:
            return None
        return cls(None if found is None else base64.b64decode(found[1]), None if md5 is None else md5[1])


@frozen(eq=False)
class Sums:
    """The digests of a document, as objects of ``hashlib`` that are only copied."""

    sha256: Any
    md5: Any

    @classmethod
    def begin(cls) -> Sums:
        """The sums of no bytes."""
        return cls(hashlib.sha256(), hashlib.md5(usedforsecurity=False))

    def after(self, data: bytes) -> Sums:
        """Those after more bytes."""
        sums = Sums(self.sha256.copy(), self.md5.copy())
        sums.add(data)
        return sums

    def add(self, data: bytes) -> None:
        """Go on with more bytes."""
        self.sha256.update(data)
        self.md5.update(data)

    def fulfil(self, claims: Claims) -> bool:
        """Whether the document is the one that an upstream describes."""
        if claims.sha256 is not None:
            return bool(self.sha256.digest() == claims.sha256)
        return bool(self.md5.hexdigest() == claims.md5)


@frozen(eq=False)
class Extension:
    """What was made of appended bytes: the digests of the whole, and the parts of all that was appended."""

    sums: Sums
    parts: bytes


async def receive_rest(response: IUpstreamResponse, size: int) -> bytes | None:
    """The bytes behind the first ``size`` ones, of which a 206 repeats the last; None: it sends others, or too many."""
    whole = size_of_whole(response, size - 1)
    if whole is None or whole - size > MOST_TAIL or response.headers.get("Content-Encoding"):
        return None
    return (await response.read())[1:]


def extend(
    known: Sums | None, source: str, rest: bytes, claims: Claims, growing: Growing, job: Job, *parts: PartsFile
) -> Extension | None:
    """
    Append bytes to a document that is kept in ``parts``, and has the sha256 ``source`` (hex). Blocks.

    Returns None if the result is not the document that the upstream describes, or too much was appended to the first
    parts.

    :raises Invalid: what was appended cannot be used; :raises NormalisingFailed: see L{normalise}
    """
    before = known or _compute(growing, parts)
    sums = before.after(rest)
    if before.sha256.hexdigest() != source or not sums.fulfil(claims):
        return None
    tail = b"".join(piece for each in parts[1:] for piece in growing.read(each)) + rest
    if len(tail) > MOST_TAIL:
        return None
    out = io.BytesIO()
    normalise(tail, job, None, out)
    return Extension(sums, out.getvalue())


def _compute(growing: Growing, parts: tuple[PartsFile, ...]) -> Sums:
    sums, gil = Sums.begin(), GilReleaser()
    for each in parts:
        for piece in growing.read(each):
            sums.add(piece)
            gil.release_if_due()
    return sums
