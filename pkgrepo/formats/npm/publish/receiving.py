"""Reads the body of a publish request: the tarball goes to the blob store while it arrives, the rest to memory."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.npm.limits import DOCUMENT_SIZE
from pkgrepo.gateway.bodies import read_pieces
from pkgrepo.http.request import Request
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.staged import Staged

from .manifest import ALGORITHMS
from .scanner import PublishScanner
from .sent_document import AttachmentEnd, AttachmentStart, ScanEvent, SentDocument


@frozen
class ReceivedDocument:
    """A document, and its tarball as a staged blob; None when the document has no tarball and so is a change."""

    document: SentDocument
    tarball: BlobInfo | None


class Receiver:
    """Reads the body of one request."""

    def __init__(self, request: Request, staged: Staged, *, max_tarball: int) -> None:
        self._pieces = read_pieces(request)
        self._staged = staged
        self._max_tarball = max_tarball
        # The store reserves room for the largest possible tarball: base64 has four characters for three bytes.
        declared = request.body.declared
        self._expect_size = None if declared is None else min(declared // 4 * 3, max_tarball)
        self._scanner = PublishScanner()
        self._events: deque[ScanEvent] = deque()
        self._document: SentDocument | None = None

    async def receive(self) -> ReceivedDocument:
        """
        The document with its tarball.

        :raises Invalid: it is malformed, or has two tarballs; :raises TooLarge: the tarball or the rest is too large
        """
        tarball: BlobInfo | None = None
        while (event := await self._next()) is not None:
            if not isinstance(event, AttachmentStart):
                continue
            if tarball is not None:
                raise Invalid("a publish document has one tarball", "_attachments")
            tarball = await self._staged.receive(
                self._data(), limit=self._max_tarball, expect_size=self._expect_size, algorithms=ALGORITHMS
            )
        assert self._document is not None
        return ReceivedDocument(self._document, tarball)

    async def _next(self) -> ScanEvent | None:
        """The next event, or None at the end of the body."""
        while not self._events:
            chunk = await anext(self._pieces, b"")
            if not chunk:
                if self._document is None:
                    self._document = self._scanner.finish()
                return None
            self._events.extend(self._scanner.feed(chunk))
        return self._events.popleft()

    async def _data(self) -> AsyncIterator[bytes]:
        """The bytes of the attachment that has begun, up to its end."""
        while (event := await self._next()) is not None and not isinstance(event, AttachmentEnd):
            if isinstance(event, bytes):
                yield event


def largest_body(max_tarball: int) -> int:
    """The size in bytes of a request with the largest tarball, in base64, and the largest document."""
    return max_tarball // 3 * 4 + DOCUMENT_SIZE


SMALL_DOCUMENT: Final = 64 * 1024  # bytes; parsing a larger one takes a millisecond or more
