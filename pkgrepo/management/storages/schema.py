"""Storages."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import UNSET, UnsetType, field

from pkgrepo.management.api.schema import Body, Name, Record


class StorageSettings(Body):
    """
    Settings of a storage of type Local. path is its folder, by default storages/<name> in the data folder.

    readable_layout (on by default) also keeps the files under their names; from this layout a lost database can be
    rebuilt.
    """

    path: str | None = None
    readable_layout: bool | None = None


class OldStorageConfig(Body):
    """Type and settings in one object, as clients of other servers send them."""

    type: str = "Local"
    settings: StorageSettings = field(default_factory=StorageSettings)


class NewStorage(Body):
    """A new storage. path may be given here or in settings."""

    name: Name
    type: Literal["Local", "local"] = "Local"
    path: str | None = None
    settings: StorageSettings = field(default_factory=StorageSettings)
    config: OldStorageConfig | None = None
    active: bool = True


class StorageChange(Body):
    """The fields of a storage that can be changed; path only while the storage is unused, the others at any time."""

    name: Name | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    path: str | UnsetType = UNSET
    settings: StorageSettings | UnsetType = UNSET


class Usage(Record):
    """Size and number of the stored blobs, and the capacity of the disk; null while the disk cannot be read."""

    bytes: int
    blobs: int
    free_bytes: int | None = None
    total_bytes: int | None = None


class StorageRecord(Record):
    """A storage. warnings are sentences about risks of its settings."""

    id: str
    name: str
    type: str
    settings: dict[str, str | bool]
    active: bool
    created_at: datetime
    updated_at: datetime
    usage: Usage
    warnings: list[str] = []

    measured = frozenset({"usage"})


class StorageCheck(Record):
    """The result of a test: times in milliseconds, and the error if ok is false."""

    ok: bool
    error: str | None
    bytes: int
    write_ms: float
    read_ms: float
    free_bytes: int | None
