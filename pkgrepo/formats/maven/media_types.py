"""Media types of files, by their names."""

from __future__ import annotations

from typing import Final

OTHER: Final = "application/octet-stream"

_MEDIA_TYPES: Final = {
    "jar": "application/java-archive",
    "war": "application/java-archive",
    "ear": "application/java-archive",
    "aar": "application/java-archive",
    "pom": "application/xml",
    "xml": "application/xml",
    "module": "application/json",
    "json": "application/json",
    "asc": "text/plain",
    "md5": "text/plain",
    "sha1": "text/plain",
    "sha256": "text/plain",
    "sha512": "text/plain",
    "txt": "text/plain",
    "zip": "application/zip",
    "gz": "application/gzip",
    "tgz": "application/gzip",
    "tar": "application/x-tar",
}


def media_type(path: str) -> str:
    """The media type of the file at a path."""
    return _MEDIA_TYPES.get(path.rpartition(".")[2].lower(), OTHER)
