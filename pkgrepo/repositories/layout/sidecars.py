"""
The JSON documents of the readable layout, from which the whole catalog can be rebuilt.

``.repository.json`` is in a repository's directory, ``.package.json`` in a package's, and ``<name>-<version>.json``
beside the files of a version. ``.burned.json`` in a package's directory stays when the package is removed, until its
name is released.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.model import File, Package, Repository, Version
from pkgrepo.model.structs import from_attributes
from pkgrepo.storage.catalog.packages.files import Tombstone
from pkgrepo.untrusted.strict_json import ERRORS

Sidecar = TypeVar("Sidecar", bound=msgspec.Struct)

REPOSITORY = ".repository.json"
PACKAGE = ".package.json"
BURNED = ".burned.json"


class RepositorySidecar(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration and description of a repository."""

    uid: str
    storage: str
    name: str
    format: str
    type: str
    visibility: str
    active: bool
    description: str
    config: dict[str, Any]
    settings: dict[str, Any]
    created_at: datetime

    @classmethod
    def of(cls, repository: Repository) -> RepositorySidecar:
        """Make the sidecar of a repository."""
        return from_attributes(cls, repository, storage=repository.storage_name)


class PackageSidecar(msgspec.Struct, frozen=True, kw_only=True):
    """A package without its versions; ``tags`` are texts of versions, by name."""

    key: str
    name: str
    meta: dict[str, Any]
    tags: dict[str, str] = {}
    created_at: datetime | None = None
    updated_at: datetime | None = None

    @classmethod
    def of(cls, package: Package, tags: Mapping[str, str]) -> PackageSidecar:
        """Make the sidecar of a package."""
        return from_attributes(cls, package, tags=dict(tags))


class BurnedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A deleted file; only a file with the same content may be published at its path."""

    path: str
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
    deleted_at: datetime
    actor: str


class BurnedSidecar(msgspec.Struct, frozen=True, kw_only=True):
    """
    The paths of deleted files of a package that may not be reused; ``package`` is its key.

    ``retired_at`` is when the package was removed, if its name is retired: no upstream is asked for it.
    """

    package: str
    files: list[BurnedFile]
    retired_at: datetime | None = None

    @classmethod
    def of(cls, package_key: str, tombstones: Sequence[Tombstone], retired_at: datetime | None) -> BurnedSidecar:
        """Make the sidecar of a package with these tombstones."""
        files = [from_attributes(BurnedFile, each) for each in tombstones]
        return cls(package=package_key, files=files, retired_at=retired_at)

    def tombstones(self) -> list[Tombstone]:
        """Return the tombstones that it was made of."""
        return [Tombstone(each.path, self.package, each.sha256, each.deleted_at, each.actor) for each in self.files]


class FileSidecar(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a version; ``place`` is its path in the readable layout, ``locator`` that of its blob."""

    path: str
    place: str
    locator: str
    sha256: str
    size: int
    media_type: str
    digests: dict[str, str]
    attrs: dict[str, Any]
    created_at: datetime

    @classmethod
    def of(cls, file: File, place: str) -> FileSidecar:
        """Make the entry of a file."""
        return from_attributes(cls, file, place=place)


class VersionSidecar(msgspec.Struct, frozen=True, kw_only=True):
    """A version with its files; the display name of the package is only in the package's sidecar."""

    package: str
    key: str
    version: str
    state: str
    reason: str
    sort: bytes
    meta: dict[str, Any]
    published_at: datetime
    publisher: str
    files: list[FileSidecar]

    @classmethod
    def of(cls, package: Package, version: Version, files: list[FileSidecar]) -> VersionSidecar:
        """Make the sidecar of a version."""
        return from_attributes(cls, version, package=package.key, version=version.text, files=files)


def encode(sidecar: msgspec.Struct) -> bytes:
    """Return a sidecar as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(sidecar), indent=1) + b"\n"


def decode(data: bytes, kind: type[Sidecar], where: str) -> Sidecar:
    """
    Return the sidecar in ``data``.

    :raises Invalid: it is not valid; the message names ``where``
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except ERRORS as error:
        raise Invalid(f"{where}: {error}") from error
