"""
From the path of a request to what it is about.

Names of images may hold the words that follow them (``a/blobs/b`` is one), so a path is read from its end: the last
marker that leaves a name before it and a valid rest behind it counts.
"""

from __future__ import annotations

from enum import Enum
from urllib.parse import unquote

from attrs import frozen

from .names import is_image_name


class Kind(Enum):
    """What an address below an image is."""

    MANIFEST = "manifest"
    BLOB = "blob"
    UPLOADS = "uploads"
    UPLOAD = "upload"
    TAGS = "tags"
    REFERRERS = "referrers"


@frozen
class Place:
    """An address: the image's whole name as the client wrote it, and the last part: a tag, a digest, an upload's id."""

    name: str
    kind: Kind
    rest: str = ""


_ENDS = (("/blobs/uploads/", Kind.UPLOADS), ("/blobs/uploads", Kind.UPLOADS), ("/tags/list", Kind.TAGS))
_MARKERS = (
    ("/blobs/uploads/", Kind.UPLOAD),
    ("/manifests/", Kind.MANIFEST),
    ("/blobs/", Kind.BLOB),
    ("/referrers/", Kind.REFERRERS),
)


def parse_path(raw: bytes) -> Place | None:
    """
    The place that a path names; ``raw`` is what follows ``/v2``, as on the wire. None when there is no such address.

    The name is not checked here: for a wrong one there is a better answer than "not found".
    """
    path = unquote(raw.decode("latin-1"))
    for end, kind in _ENDS:
        if path.endswith(end) and len(path) > len(end):
            return Place(path[1 : -len(end)], kind)
    candidates = [found for marker, kind in _MARKERS if (found := _split(path, marker, kind)) is not None]
    if not candidates:
        return None
    # of several, that with the longest name: its marker is the last one; "/blobs/uploads/x" is no blob "uploads/x"
    best = max(candidates, key=lambda place: len(place.name))
    valid = [place for place in candidates if is_image_name(place.name)]
    return max(valid, key=lambda place: len(place.name)) if valid else best


def _split(path: str, marker: str, kind: Kind) -> Place | None:
    """The last place of a marker that has a name before it and one segment behind it."""
    name, found, rest = path.rpartition(marker)
    if not found or not rest or "/" in rest or len(name) < 2:
        return None
    return Place(name[1:], kind, rest)
