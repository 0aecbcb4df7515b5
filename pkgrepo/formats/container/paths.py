"""
Parsing of the paths of the registry API.

A name of an image may contain the words that follow names (``a/blobs/b`` is one), so a path is parsed from its end: the
last marker with a name before it and a valid rest after it counts.
"""

from __future__ import annotations

from enum import Enum
from urllib.parse import unquote

from attrs import frozen

from .names import is_image_name


class PathKind(Enum):
    """What a path below an image addresses."""

    MANIFEST = "manifest"
    BLOB = "blob"
    UPLOADS = "uploads"
    UPLOAD = "upload"
    TAGS = "tags"
    REFERRERS = "referrers"


@frozen
class ImagePath:
    """A parsed path: the image's name as the client wrote it; ``rest`` is a tag, a digest or the id of an upload."""

    name: str
    kind: PathKind
    rest: str = ""


_ENDS = (("/blobs/uploads/", PathKind.UPLOADS), ("/blobs/uploads", PathKind.UPLOADS), ("/tags/list", PathKind.TAGS))
_MARKERS = (
    ("/blobs/uploads/", PathKind.UPLOAD),
    ("/manifests/", PathKind.MANIFEST),
    ("/blobs/", PathKind.BLOB),
    ("/referrers/", PathKind.REFERRERS),
)


def parse_path(raw: bytes) -> ImagePath | None:
    """
    The parsed path; ``raw`` is what follows ``/v2``, as on the wire. None if the API has no such path.

    The name is not checked here: a wrong one has an error code of its own.
    """
    path = unquote(raw.decode("latin-1"))
    for end, kind in _ENDS:
        if path.endswith(end) and len(path) > len(end):
            return ImagePath(path[1 : -len(end)], kind)
    candidates = [found for marker, kind in _MARKERS if (found := _split(path, marker, kind)) is not None]
    if not candidates:
        return None
    # the candidate with the longest name has the last marker; "/blobs/uploads/x" is no blob "uploads/x"
    best = max(candidates, key=lambda each: len(each.name))
    valid = [each for each in candidates if is_image_name(each.name)]
    return max(valid, key=lambda each: len(each.name)) if valid else best


def _split(path: str, marker: str, kind: PathKind) -> ImagePath | None:
    """The path parsed by the last occurrence of a marker; None unless a name and one segment surround it."""
    name, found, rest = path.rpartition(marker)
    if not found or not rest or "/" in rest or len(name) < 2:
        return None
    return ImagePath(name[1:], kind, rest)
