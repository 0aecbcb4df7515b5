"""The range that a chunk announces, checked against the upload and against the bytes that came."""

from __future__ import annotations

from pkgrepo.http.answers import Fields, Refusal
from pkgrepo.http.reading.ranges import ChunkRange, parse_chunk_range
from pkgrepo.http.request import Request
from pkgrepo.storage.catalog.blobs.uploads import UploadSession


def chunk_range(request: Request) -> ChunkRange | None:
    """
    The range of the chunk that a request brings, or None when the client does not send one.

    :raises Refusal: it is malformed
    """
    value = request.header(b"content-range")
    try:
        return None if value is None else parse_chunk_range(value)
    except ValueError as error:
        raise Refusal(400, str(error), "BLOB_UPLOAD_INVALID") from None


def check_start(wanted: ChunkRange | None, session: UploadSession, headers: Fields) -> None:
    """Let a chunk pass that begins where the upload ends. :raises Refusal: it begins elsewhere"""
    if wanted is not None and wanted.start != session.position:
        sentence = f"the upload has {session.position} bytes, and the chunk begins at {wanted.start}"
        raise Refusal(416, sentence, "RANGE_INVALID", headers=headers)


def check_length(wanted: ChunkRange | None, count: int) -> None:
    """Let a chunk of ``count`` bytes pass if its range has as many. :raises Refusal: it has more or fewer"""
    if wanted is not None and wanted.length != count:
        raise Refusal(400, f"the range has {wanted.length} bytes, and the chunk {count}", "SIZE_INVALID")
