"""Storages."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from msgspec import UNSET, UnsetType, field

from pkgrepo.management.api.schema import Body, Name, Record


class StorageSettings(Body):
    """
    Where a storage of type Local keeps its files: a folder, by default storages/<name> below the data folder.

    Without readable_layout they are not shown under readable names, from which a lost database can be built again.
    """

    path: str | None = None
    readable_layout: bool | None = None


class OldStorageConfig(Body):
    """The form that other servers take: type and settings in one object."""

    type: str = "Local"
    settings: StorageSettings = field(default_factory=StorageSettings)


class NewStorage(Body):
    """A storage to be; path may stand here or in settings."""

    name: Name
    type: Literal["Local", "local"] = "Local"
    path: str | None = None
    settings: StorageSettings = field(default_factory=StorageSettings)
    config: OldStorageConfig | None = None
    active: bool = True


class StorageChange(Body):
    """What may be changed of a storage; the path only while nothing is stored there, readable_layout at any time."""

    name: Name | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    path: str | UnsetType = UNSET
    settings: StorageSettings | UnsetType = UNSET


class Usage(Record):
    """What a storage holds, in bytes and blobs; free_bytes is null while it cannot be asked."""

    bytes: int
    blobs: int
    free_bytes: int | None = None
    total_bytes: int | None = None


class StorageRecord(Record):
    """A place for bytes; the warnings are sentences about what its settings put at risk."""

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
    """The outcome of a probe: bytes were written durably, read back, compared and removed."""

    ok: bool
    error: str | None
    bytes: int
    write_ms: float
    read_ms: float
    free_bytes: int | None
