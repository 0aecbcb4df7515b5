"""
Forms with files (multipart/form-data, RFC 7578), read part by part while they arrive.

Nothing is kept in memory: a part is an iterator over its bytes, and a caller that does not want them asks for the next
part.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator

from attrs import frozen
from multipart import (
    MultipartError,
    MultipartSegment,
    ParserLimitReached,
    PushMultipartParser,
    parse_options_header,
)

from pkgrepo.http.responses import Refusal

from .body import Body

_TYPE = re.compile(r"multipart/form-data[ \t]*(?:;|$)", re.IGNORECASE)


@frozen
class MultipartLimits:
    """Limits of a form: the number of parts, and the sizes of a text part and of a header line in bytes."""

    parts: int = 200
    text_bytes: int = 1024 * 1024
    header_bytes: int = 4096
    header_count: int = 8


class Part:
    """
    One part of a form; an asynchronous iterator over its bytes, valid until the next part is asked for.

    ``filename`` is None for a plain field. ``name`` and ``filename`` are what the client sent: they may hold anything.
    """

    def __init__(self, form: _Form, segment: MultipartSegment) -> None:
        self.name: str = segment.name or ""
        self.filename: str | None = segment.filename
        self._segment = segment
        self._form = form

    @property
    def headers(self) -> dict[str, str]:
        """The header fields of the part, with names in lower case."""
        return {name.lower(): value for name, value in self._segment.headerlist}

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._form.chunks_of(self)

    async def read_bytes(self, limit: int | None = None) -> bytes:
        """
        The whole part, for small fields; ``limit`` in bytes takes the place of the form's ``text_bytes``.

        :raises Refusal: it is longer (413)
        """
        limit = self._form.limits.text_bytes if limit is None else limit
        pieces: list[bytes] = []
        size = 0
        while (chunk := await self._form.read(self)) is not None:
            size += len(chunk)
            if size > limit:
                raise Refusal(
                    413, f"the form field {self.name[:100]!r} is longer than {limit} bytes", "FIELD_TOO_LARGE"
                )
            pieces.append(chunk)
        return b"".join(pieces)

    async def read_text(self, limit: int | None = None) -> str:
        """
        The whole part as UTF-8 text; see ``read_bytes``.

        :raises Refusal: it is too long (413), or not UTF-8 (400)
        """
        try:
            return (await self.read_bytes(limit)).decode("utf-8")
        except UnicodeDecodeError as error:
            raise Refusal(400, f"the form field {self.name[:100]!r} is not UTF-8", "BAD_FORM") from error


def read_form(body: Body, content_type: bytes | None, limits: MultipartLimits | None = None) -> AsyncIterator[Part]:
    """
    The parts of the form in a request's body, in their order; ``content_type`` is that of the request.

    :raises Refusal: the body is no form (415), is malformed or cut short (400), or exceeds a limit (413)
    """
    return _Form(body, content_type, limits or MultipartLimits()).parts()


class _Form:
    """The parser's events, as parts and their bytes."""

    def __init__(self, body: Body, content_type: bytes | None, limits: MultipartLimits) -> None:
        self.limits = limits
        self._body = body
        self._parser = _make_parser(content_type, limits)
        self._events: Iterator[object] = iter(())
        self._current: Part | None = None

    async def parts(self) -> AsyncIterator[Part]:
        while True:
            event = await self._next()
            if isinstance(event, MultipartSegment):
                self._current = Part(self, event)
                yield self._current
            elif event is _END:
                return

    async def chunks_of(self, part: Part) -> AsyncIterator[bytes]:
        while (chunk := await self.read(part)) is not None:
            yield chunk

    async def read(self, part: Part) -> bytes | None:
        """The next bytes of a part, or None at its end."""
        if part is not self._current:
            return None
        event = await self._next()
        if isinstance(event, (bytes, bytearray)):
            return bytes(event)
        self._current = None
        return None

    async def _next(self) -> object:
        """A segment, some of its bytes, None at its end, or _END."""
        while True:
            try:
                event = next(self._events, _NEEDS_INPUT)
                if event is not _NEEDS_INPUT:
                    return event
                chunk = await self._body.read()
                if not chunk:
                    self._parser.close()
                    return _END
                self._events = self._parser.parse(chunk)
            except ParserLimitReached as error:
                raise Refusal(413, f"the form is too large: {error}", "FORM_TOO_LARGE") from error
            except MultipartError as error:
                raise Refusal(400, f"the form is malformed: {error}", "BAD_FORM") from error


_END = object()
_NEEDS_INPUT = object()  # None is an event


def _make_parser(content_type: bytes | None, limits: MultipartLimits) -> PushMultipartParser:
    text = (content_type or b"").decode("latin-1")
    if not _TYPE.match(text):
        raise Refusal(415, "the body must be multipart/form-data", "NOT_A_FORM")
    boundary = parse_options_header(text)[1].get("boundary", "")
    try:
        return PushMultipartParser(
            boundary,
            max_header_size=limits.header_bytes,
            max_header_count=limits.header_count,
            max_segment_count=limits.parts,
            header_charset="utf8",
        )
    except MultipartError as error:
        raise Refusal(400, f"the form's boundary is malformed: {error}", "BAD_FORM") from error
