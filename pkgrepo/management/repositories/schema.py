"""Repositories and their configuration."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote, urlsplit

from msgspec import UNSET, UnsetType

from pkgrepo.management.api.schema import Body, Name, Record, Text
from pkgrepo.model import Repository

Json = Any


class NewRepository(Body):
    """
    A repository to be; the storage goes by name or id.

    config is the whole configuration object; configs is the older form, with one entry for each part. Visibility is
    public, private or hidden, in any case.
    """

    name: Name
    storage: str | None = None
    storage_name: str | None = None
    storage_id: str | None = None
    format: str | None = None
    visibility: str = "private"
    description: Text = ""
    active: bool = True
    config: dict[str, Json] | None = None
    configs: dict[str, Json] | None = None


class RepositoryChange(Body):
    """What may be changed of a repository beside its configuration."""

    visibility: str | UnsetType = UNSET
    description: Text | UnsetType = UNSET
    active: bool | UnsetType = UNSET


class RepositoryRecord(Record):
    """
    A repository.

    warnings are sentences about what its configuration brings about. Usage figures are null in lists unless
    include_usage asks for them. repository_type (the format), repository_kind and storage_usage_bytes are older
    spellings.
    """

    id: str
    name: str
    storage_id: str
    storage_name: str
    format: str
    type: str
    visibility: str
    active: bool
    description: str
    auth_enabled: bool
    created_at: datetime
    updated_at: datetime
    url: str
    registry_host: str
    warnings: list[str]
    usage_bytes: int | None
    package_count: int | None
    repository_type: str
    repository_kind: str
    storage_usage_bytes: int | None

    measured = frozenset({"usage_bytes", "package_count", "storage_usage_bytes", "url", "registry_host"})

    @classmethod
    def of(
        cls, repository: Repository, *, storage_uid: str, base_url: str, warnings: list[str], usage: bool = True
    ) -> Self:
        """The record of a repository; its usage figures are null without ``usage``."""
        size = repository.bytes_used if usage else None
        return cls.from_attributes(
            repository,
            id=repository.uid,
            storage_id=storage_uid,
            url=f"{base_url}/repositories/{quote(repository.path)}",
            registry_host=urlsplit(base_url).netloc,
            warnings=warnings,
            usage_bytes=size,
            package_count=repository.package_count if usage else None,
            repository_type=repository.format,
            repository_kind=repository.type,
            storage_usage_bytes=size,
        )


class FoundRepository(Record):
    """The id of a repository that was asked for by name."""

    id: str
    repository_id: str


class RepositoryNames(Record):
    """How a repository is called."""

    id: str
    name: str
    repository_name: str
    storage_name: str
    path: str


class RepositoryType(Record):
    """A format that repositories may have."""

    name: str
    aliases: list[str]
    config_keys: list[str]
    defaults: dict[str, Json]


class DeletedRepository(Record):
    """What went, or would go; without purge it can be had back for some days."""

    id: str
    path: str
    purged: bool
    dry_run: bool
    package_count: int
    usage_bytes: int


class ConfigKey(Record):
    """A part of the configuration."""

    key: str
    description: str


class Validation(Record):
    """Whether a configuration would be accepted, and how it would be kept."""

    valid: bool
    config: dict[str, Json] | None = None
    errors: list[Mapping[str, str]] = []


class Snippet(Record):
    """How a client is told of the repository; <TOKEN> marks the place of an access token."""

    client: str
    title: str
    file: str
    language: str
    text: str
