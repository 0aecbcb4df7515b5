"""
Index documents of one package, kept up to date inside the transaction that changes it.

A format stores a fragment per file or version; its documents are spliced from them when somebody asks (see
``splicing``), so that a change costs one fragment, whatever the number of versions.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from typing import Protocol

import zstandard
from attrs import frozen

from pkgrepo.interfaces import Transaction
from pkgrepo.model import Document, File, Package, Version
from pkgrepo.storage.catalog.packages import files, versions
from pkgrepo.storage.catalog.packages import fragments as documents
from pkgrepo.storage.catalog.packages.version_batches import VersionRow

COMPRESS_FROM = 1024  # bytes; below that the head of the answer outweighs the gain
FAST_FROM = 256 * 1024  # bytes; above that the time of a publish matters more than the last percents


@frozen
class Change:
    """What happened to a package: to one version of it, with files that came or went, or to none in particular."""

    version: Version | None = None
    added: tuple[File, ...] = ()
    removed: tuple[File, ...] = ()


class PackageIndex:
    """
    A package in the middle of a change, as its format sees it.

    ``tx`` is the transaction of the change, for formats that keep more than documents.
    """

    def __init__(self, tx: Transaction, package: Package, now_ms: int) -> None:
        self.package = package
        self.tx = tx
        self.now_ms = now_ms

    def versions(self) -> list[Version]:
        """Every version, in the format's order."""
        return versions.list_versions(self.tx, self.package.id)

    def version_texts(self) -> list[str]:
        """How every version is written, in the format's order."""
        return versions.version_texts(self.tx, self.package.id)

    def files(self, version: Version | None = None) -> list[File]:
        """The files of one version, or of the whole package."""
        if version is not None:
            return files.files_of_version(self.tx, version.id)
        return files.files_of_package(self.tx, self.package.id)

    def put_fragment(self, kind: str, sort: bytes, key: str, body: bytes) -> None:
        """Set one part of a document; parts are joined in the order of (sort, key)."""
        documents.put_fragment(self.tx, self.package.id, kind, sort, key, body)

    def remove_fragment(self, kind: str, sort: bytes, key: str) -> None:
        """Take one part out."""
        documents.remove_fragment(self.tx, self.package.id, kind, sort, key)


class Indexer(Protocol):
    """A format's part in a change: bring the package's documents up to date."""

    def __call__(self, index: PackageIndex, change: Change) -> None:
        """Runs in the writer's transaction; raising undoes the whole change."""


class VersionsIndexer(Protocol):
    """A format's part in a change of many versions, which the rows show as they are now, or as they were removed."""

    def __call__(self, index: PackageIndex, rows: Sequence[VersionRow]) -> None:
        """Runs in the writer's transaction; raising undoes the whole change."""


def render(content_type: str, body: bytes, serial: int) -> Document:
    """A document with its validator and compressed forms."""
    packed = zpacked = None
    if len(body) >= COMPRESS_FROM:
        fast = len(body) >= FAST_FROM
        gz = zlib.compressobj(1 if fast else 6, zlib.DEFLATED, 31)
        packed = gz.compress(body) + gz.flush()
        zpacked = zstandard.ZstdCompressor(level=1 if fast else 6).compress(body)
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return Document(content_type=content_type, body=body, etag=etag, serial=serial, gzip=packed, zstd=zpacked)
