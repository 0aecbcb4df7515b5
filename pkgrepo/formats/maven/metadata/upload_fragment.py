"""
What the last upload of metadata says beside the stored files, as one fragment.

The rest of a document follows from the files. An upload whose meaning is the same as that of the document is served
byte for byte, as long as both mean the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Final

import msgspec

from pkgrepo.interfaces import Reader
from pkgrepo.storage.catalog.documents import fragments

from .values import Other, Plugin, ReadMetadata, SnapshotFile, is_time, meaning

UPLOADED: Final = "uploaded"  # the kind of the fragment; its key is empty, or the version whose directory it is of


class Uploaded(msgspec.Struct, array_like=True, frozen=True):
    """
    An upload.

    ``meaning`` and ``content`` (compressed by zlib) are empty if its bytes are not kept.
    """

    claimed: tuple[str, ...] = ()  # of earlier releases: versions without files, which are not listed any more
    plugins: tuple[Plugin, ...] = ()
    others: tuple[Other, ...] = ()
    meaning: bytes = b""
    content: bytes = b""

    def verbatim(self, now: bytes) -> bytes | None:
        """The bytes of the upload if it has this meaning, or None."""
        return zlib.decompress(self.content) if self.content and self.meaning == now else None


_decoder = msgspec.msgpack.Decoder(Uploaded)


def encode(uploaded: Uploaded) -> bytes:
    """The body of the fragment."""
    return msgspec.msgpack.encode(uploaded)


def find_uploaded(reader: Reader, package_id: int, version: str = "") -> Uploaded | None:
    """The upload for the directory of a package, or of one of its snapshots; None if there was none."""
    body = fragments.find_fragment(reader, package_id, UPLOADED, b"", version)
    return None if body is None else _decoder.decode(body)


def meaning_of_artifact(read: ReadMetadata) -> bytes | None:
    """
    What uploaded metadata of an artifact mean; None if clients would read them differently from generated ones.

    C{LATEST} is the release to clients if C{latest} is missing. When they were changed does not matter.
    """
    if not is_time(read.last_updated) or read.version or read.timestamp or read.snapshots:
        return None
    latest = read.latest or read.release
    return artifact_meaning(read.group, read.artifact, read.versions, latest, read.release, read.plugins, read.others)


def meaning_of_snapshot(read: ReadMetadata) -> bytes | None:
    """What uploaded metadata of a snapshot mean; None if they are no such metadata."""
    if read.versions or read.plugins or read.latest or read.release:
        return None
    build = (read.timestamp, read.build_number)
    coordinates = (read.group, read.artifact, read.version)
    return snapshot_meaning(coordinates, build, read.snapshots, read.last_updated, read.others)


def snapshot_meaning(
    coordinates: tuple[str, str, str],
    build: tuple[str, str],
    files: Iterable[SnapshotFile],
    last_updated: str,
    others: tuple[Other, ...],
) -> bytes:
    """A digest of the metadata of a snapshot; ``build`` are timestamp and number, empty if there is none."""
    shown = sorted((each.classifier, each.extension, each.value, each.updated) for each in files)
    return meaning(coordinates, build, shown, last_updated, sorted(others))


def artifact_meaning(
    group: str,
    artifact: str,
    versions: tuple[str, ...],
    latest: str,
    release: str,
    plugins: tuple[Plugin, ...],
    others: tuple[Other, ...],
) -> bytes:
    """A digest of the metadata of an artifact without the time of their last change."""
    return meaning(group, artifact, versions, latest, release, sorted(plugins), sorted(others))
