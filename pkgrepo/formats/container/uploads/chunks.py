"""Checks of the Content-Range of a chunk against the upload and the received bytes."""

from __future__ import annotations

from pkgrepo.http.answers import Fields, Refusal
from pkgrepo.http.reading.ranges import ChunkRange, parse_chunk_range
from pkgrepo.http.request import Request
from pkgrepo.storage.catalog.blobs.uploads import UploadSession


def chunk_range(request: Request) -> ChunkRange | None:
    """
    The Content-Range of a request, or None if it has none.

    :raises Refusal: the range is malformed
    """
    value = request.header(b"content-range")
    try:
        return None if value is None else parse_chunk_range(value)
    except ValueError as error:
        raise Refusal(400, str(error), "BLOB_UPLOAD_INVALID") from None


def check_start(wanted: ChunkRange | None, session: UploadSession, headers: Fields) -> None:
    """Check that a chunk begins at the end of the upload. :raises Refusal: it does not"""
    if wanted is not None and wanted.start != session.position:
        sentence = f"the upload has {session.position} bytes, and the chunk begins at {wanted.start}"
        raise Refusal(416, sentence, "RANGE_INVALID", headers=headers)


def check_length(wanted: ChunkRange | None, count: int) -> None:
    """Check that the range of a chunk has ``count`` bytes. :raises Refusal: it has another length"""
    if wanted is not None and wanted.length != count:
        raise Refusal(400, f"the range has {wanted.length} bytes, and the chunk {count}", "SIZE_INVALID")
