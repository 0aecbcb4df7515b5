"""Answers to requests about uploads."""

from __future__ import annotations

from pkgrepo.formats.container.names import Digest
from pkgrepo.formats.container.refusals import VERSION
from pkgrepo.formats.container.target import Target
from pkgrepo.http.answers import Answer, Fields
from pkgrepo.http.reading.ranges import render_received


def progress_headers(target: Target, uid: str, position: int) -> Fields:
    """The headers of every answer about an unfinished upload: its address, and how many bytes were received."""
    return (
        *VERSION,
        (b"Location", target.url(f"blobs/uploads/{uid}")),
        (b"Range", render_received(position)),
        (b"Docker-Upload-UUID", uid.encode("ascii")),
    )


def created_answer(target: Target, digest: Digest) -> Answer:
    """The answer after a blob was stored. ``digest`` is the one in the request."""
    headers: Fields = (
        *VERSION,
        (b"Location", target.url(f"blobs/{digest}")),
        (b"Docker-Content-Digest", str(digest).encode("ascii")),
    )
    return Answer(201, headers=headers)
