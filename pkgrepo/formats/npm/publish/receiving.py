"""A publish document as it streams in: the tarball to the store, the rest to memory."""

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
from .sent_document import AttachmentEnd, AttachmentStart, Event, SentDocument


@frozen
class ReceivedDocument:
    """A document without its tarball, which is staged; without one it is a change of what was published."""

    document: SentDocument
    tarball: BlobInfo | None


class Receiver:
    """Reads one request."""

    def __init__(self, request: Request, staged: Staged, *, max_tarball: int) -> None:
        self._pieces = read_pieces(request)
        self._staged = staged
        self._max_tarball = max_tarball
        # Room is reserved for what may come: base64 takes four characters for three bytes.
        declared = request.body.declared
        self._expect_size = None if declared is None else min(declared // 4 * 3, max_tarball)
        self._scanner = PublishScanner()
        self._events: deque[Event] = deque()
        self._document: SentDocument | None = None

    async def receive(self) -> ReceivedDocument:
        """
        The whole of it.

        :raises Invalid: it is malformed, or has two tarballs; :raises TooLarge: the tarball is, or the rest
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

    async def _next(self) -> Event | None:
        """What comes next, or None at the end of the body."""
        while not self._events:
            chunk = await anext(self._pieces, b"")
            if not chunk:
                if self._document is None:
                    self._document = self._scanner.finish()
                return None
            self._events.extend(self._scanner.feed(chunk))
        return self._events.popleft()

    async def _data(self) -> AsyncIterator[bytes]:
        """The bytes of the tarball at hand."""
        while (event := await self._next()) is not None and not isinstance(event, AttachmentEnd):
            if isinstance(event, bytes):
                yield event


def largest_body(max_tarball: int) -> int:
    """Bytes of a request with the largest tarball: base64 takes four for three, and the document comes with it."""
    return max_tarball // 3 * 4 + DOCUMENT_SIZE


SMALL_DOCUMENT: Final = 64 * 1024  # bytes; parsing a larger one takes a millisecond or more
