"""The bodies and records of repositories and their configuration."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import UNSET, UnsetType

from pkgrepo.management.api.schema import Body, Name, Record, Text
from pkgrepo.management.quotas import Amount, QuotaGiven
from pkgrepo.model import Repository

Json = Any


class NewRepository(Body):
    """
    A new repository. storage, storage_name or storage_id names its storage, by name or id.

    config is the whole configuration; configs is an older form with one entry for each part. visibility is public,
    private or hidden, in upper or lower case.
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
    """
    The fields of a repository that can be changed. Its configuration has its own operations.

    quota is the number of bytes, or an object of limits; null removes them all. Only system managers change it.
    """

    visibility: str | UnsetType = UNSET
    description: Text | UnsetType = UNSET
    active: bool | UnsetType = UNSET
    quota: Amount | QuotaGiven | UnsetType | None = UNSET


class RepositoryRecord(Record):
    """
    A repository.

    warnings are sentences about consequences of its configuration. actions are those that the caller may take in it,
    and takes_files whether they may upload files to it in a form; both are null in lists. Without read among them the
    caller may read some of its packages, and quota and what is said of usage is null. quota is the limit of its
    bytes (others are at /quota), null in lists. usage_bytes, package_count, version_count and downloads are null in
    lists unless the request has include_usage; downloads are those of each of the last 30
    days (UTC), the oldest first. upstream_state is that of the worst route of a proxy: open while one fails and is not
    asked, half_open while it is tried again, failing if its last request failed, closed if all that were asked work,
    unused if none was asked; null for repositories of other types.
    repository_type, repository_kind and storage_usage_bytes are older names of format, type and usage_bytes.
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
    version_count: int | None
    repository_type: str
    repository_kind: str
    storage_usage_bytes: int | None
    actions: list[str] | None = None
    takes_files: bool | None = None
    upstream_state: str | None = None
    quota: int | None = None
    downloads: list[int] | None = None

    measured = frozenset(
        {
            "warnings",
            "actions",
            "takes_files",
            "upstream_state",
            "quota",
            "version_count",
            "usage_bytes",
            "package_count",
            "downloads",
            "storage_usage_bytes",
            "url",
            "registry_host",
        }
    )

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
            version_count=repository.version_count if usage else None,
            repository_type=repository.format,
            repository_kind=repository.type,
            storage_usage_bytes=size,
        )


class FoundRepository(Record):
    """The id of a repository; both fields have the same value."""

    id: str
    repository_id: str


class RepositoryNames(Record):
    """The name and path of a repository; repository_name repeats name."""

    id: str
    name: str
    repository_name: str
    storage_name: str
    path: str


class MemberRecord(Record):
    """A member of a virtual repository, by its path."""

    repository: str
    id: str
    type: str
    visibility: str
    active: bool

    @classmethod
    def of(cls, repository: Repository) -> Self:
        """The record of a member."""
        return cls.from_attributes(repository, repository=repository.path, id=repository.uid)


class Members(Record):
    """
    The members of a virtual repository in the order in which they are asked.

    Packages that are published to it go to the member publish_to. resolution tells how members that are not hosted are
    joined: first or merge.
    """

    members: list[MemberRecord]
    publish_to: str | None
    resolution: str


class MemberName(msgspec.Struct):
    """A member as an object: its path or id. Other fields are ignored."""

    repository: str


class NewMembers(Body):
    """The members of a virtual repository, by path or id; publish_to and resolution stay if they are absent."""

    members: list[str | MemberName]
    publish_to: str | UnsetType | None = UNSET
    resolution: str | UnsetType = UNSET


class RepositoryType(Record):
    """A package format, with the types of its repositories, its configuration keys and the default configuration."""

    name: str
    aliases: list[str]
    types: list[str]
    config_keys: list[str]
    defaults: dict[str, Json]


class DeletedRepository(Record):
    """The repository that was deleted, or would be with dry_run. Without purge it goes to the trash."""

    id: str
    path: str
    purged: bool
    dry_run: bool
    package_count: int
    usage_bytes: int


class ConfigKey(Record):
    """A part of the configuration and its meaning."""

    key: str
    description: str


class Validation(Record):
    """Whether a configuration is valid: config as it would be stored, or errors."""

    valid: bool
    config: dict[str, Json] | None = None
    errors: list[Mapping[str, str]] = []


class Snippet(Record):
    """Text that configures a client for the repository. <TOKEN> stands for an access token."""

    client: str
    title: str
    file: str
    language: str
    text: str
