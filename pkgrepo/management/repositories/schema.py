"""The bodies and records of repositories and their configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import UNSET, UnsetType

from pkgrepo.auth.permissions.format_rights import has_images
from pkgrepo.management.api.fields import (
    CreatedAt,
    DryRun,
    FormatName,
    ObjectId,
    RepositoryKind,
    UpdatedAt,
    VisibilityName,
    Warnings,
)
from pkgrepo.management.api.schema import Body, Name, Record, Text
from pkgrepo.management.quotas import Amount, QuotaGiven
from pkgrepo.model import Repository
from pkgrepo.model.structs import meaning

Json = Any


class NewRepository(Body):
    """A new repository."""

    name: Name
    storage: Annotated[str | None, meaning("The name or id of the storage.")] = None
    storage_name: Annotated[str | None, meaning("The name of the storage, instead of storage.")] = None
    storage_id: Annotated[str | None, meaning("The id of the storage, instead of storage.")] = None
    format: Annotated[str | None, meaning("The name of the package format.")] = None
    visibility: Annotated[str, meaning("Who may read it: public, private or hidden, in upper or lower case.")] = (
        "private"
    )
    description: Annotated[Text, meaning("A text for people about the repository.")] = ""
    active: Annotated[bool, meaning("Whether the repository is served.")] = True
    config: Annotated[dict[str, Json] | None, meaning("The whole configuration.")] = None
    configs: Annotated[dict[str, Json] | None, meaning("An older form of config, with one entry for each part.")] = None


class RepositoryChange(Body):
    """
    The fields of a repository that can be changed. Its configuration has its own operations.

    quota is the number of bytes, or an object of limits; null removes them all. Only system managers change it.
    """

    visibility: Annotated[str | UnsetType, meaning("Who may read it: public, private or hidden.")] = UNSET
    description: Annotated[Text | UnsetType, meaning("A text for people about the repository.")] = UNSET
    active: Annotated[bool | UnsetType, meaning("Whether the repository is served.")] = UNSET
    quota: Annotated[
        Amount | QuotaGiven | UnsetType | None,
        meaning("The number of bytes, or limits; null removes them all. Only system managers change it."),
    ] = UNSET


class RepositoryRecord(Record):
    """
    A repository.

    actions are those that the caller may take in it, and takes_files whether they may upload files to it in a form;
    both are null in lists. Without read among them the caller may read some of its packages, and quota and what is said
    of usage is null. upstream_state is that of the worst route of a proxy: open while one fails and is not asked,
    half_open while it is tried again, failing if its last request failed, closed if all that were asked work, unused if
    none was asked; null for repositories of other types.
    """

    id: ObjectId
    name: Annotated[str, meaning("The name within the storage.")]
    storage_id: Annotated[str, meaning("The id of the storage.")]
    storage_name: Annotated[str, meaning("The name of the storage.")]
    format: FormatName
    has_images: Annotated[bool, meaning("Whether its packages are images, which clients address below /v2/.")]
    type: RepositoryKind
    visibility: VisibilityName
    active: Annotated[bool, meaning("Whether the repository is served.")]
    description: Annotated[str, meaning("A text for people about the repository.")]
    auth_enabled: Annotated[bool, meaning("Whether reading needs a login, also while it is public.")]
    created_at: CreatedAt
    updated_at: UpdatedAt
    url: Annotated[str, meaning("The address of the repository, for clients.")]
    registry_host: Annotated[str, meaning("The host and port by which container clients name the server.")]
    warnings: Warnings
    usage_bytes: Annotated[
        int | None, meaning("The size of its content in bytes; null in lists without include_usage.")
    ]
    package_count: Annotated[int | None, meaning("How many packages it has; null in lists without include_usage.")]
    version_count: Annotated[int | None, meaning("How many versions it has; null in lists without include_usage.")]
    repository_type: Annotated[str, meaning("An older name of format.")]
    repository_kind: Annotated[str, meaning("An older name of type.")]
    storage_usage_bytes: Annotated[int | None, meaning("An older name of usage_bytes.")]
    actions: Annotated[
        list[str] | None,
        meaning("What the caller may do in it; null in lists. Without read, only some packages can be read."),
    ] = None
    takes_files: Annotated[bool | None, meaning("Whether the caller may upload files in a form; null in lists.")] = None
    upstream_state: Annotated[
        str | None,
        meaning("The state of the worst route: open, half_open, failing, closed or unused; null if it is no proxy."),
    ] = None
    quota: Annotated[
        int | None,
        meaning("The most bytes that it may have; null in lists. The quota of the repository has its other limits."),
    ] = None
    downloads: Annotated[
        list[int] | None,
        meaning("Downloads of each of the last 30 days (UTC), oldest first; null in lists without include_usage."),
    ] = None

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
            has_images=has_images(repository),
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

    id: ObjectId
    repository_id: Annotated[str, meaning("The same as id.")]


class RepositoryNames(Record):
    """The name and path of a repository; repository_name repeats name."""

    id: ObjectId
    name: Annotated[str, meaning("The name within the storage.")]
    repository_name: Annotated[str, meaning("The same as name.")]
    storage_name: Annotated[str, meaning("The name of the storage.")]
    path: Annotated[str, meaning("The storage and the name, as storage/name.")]


class MemberRecord(Record):
    """A member of a virtual repository, by its path."""

    repository: Annotated[str, meaning("The path of the member, as storage/name.")]
    id: Annotated[str, meaning("The id of the member.")]
    type: RepositoryKind
    visibility: VisibilityName
    active: Annotated[bool, meaning("Whether the member is served.")]

    @classmethod
    def of(cls, repository: Repository) -> Self:
        """The record of a member."""
        return cls.from_attributes(repository, repository=repository.path, id=repository.uid)


class Members(Record):
    """
    The members of a virtual repository in the order in which they are asked.

    Packages that are published to it go to the member publish_to.
    """

    members: Annotated[list[MemberRecord], meaning("The members in the order in which they are asked.")]
    publish_to: Annotated[str | None, meaning("The member to which packages are published; null for none.")]
    resolution: Annotated[str, meaning("How members that are not hosted are joined: first or merge.")]


class MemberName(msgspec.Struct):
    """A member as an object: its path or id. Other fields are ignored."""

    repository: Annotated[str, meaning("The path or the id of the member.")]


class NewMembers(Body):
    """The members of a virtual repository, by path or id; publish_to and resolution stay if they are absent."""

    members: Annotated[
        list[str | MemberName], meaning("The paths or ids of the members, in the order in which they are asked.")
    ]
    publish_to: Annotated[
        str | UnsetType | None, meaning("The member to which packages are published; null for none.")
    ] = UNSET
    resolution: Annotated[str | UnsetType, meaning("How members that are not hosted are joined: first or merge.")] = (
        UNSET
    )


class RepositoryType(Record):
    """A package format, with the types of its repositories, its configuration keys and the default configuration."""

    name: Annotated[str, meaning("The name of the format.")]
    aliases: Annotated[list[str], meaning("Other names that the API accepts for it.")]
    types: Annotated[list[str], meaning("The types of repositories that it has.")]
    config_keys: Annotated[list[str], meaning("The keys of its configuration.")]
    defaults: Annotated[dict[str, Json], meaning("The default configuration.")]


class DeletedRepository(Record):
    """The repository that was deleted, or would be with dry_run. Without purge it goes to the trash."""

    id: ObjectId
    path: Annotated[str, meaning("The storage and the name, as storage/name.")]
    purged: Annotated[bool, meaning("Whether it was deleted for good, and did not go to the trash.")]
    dry_run: DryRun
    package_count: Annotated[int, meaning("How many packages it had.")]
    usage_bytes: Annotated[int, meaning("The size of its content, in bytes.")]


class ConfigKey(Record):
    """A part of the configuration and its meaning."""

    key: Annotated[str, meaning("The key of the part.")]
    description: Annotated[str, meaning("What the part is about.")]


class Validation(Record):
    """Whether a configuration is valid: config as it would be stored, or errors."""

    valid: Annotated[bool, meaning("Whether the configuration is valid.")]
    config: Annotated[dict[str, Json] | None, meaning("The configuration as it would be stored.")] = None
    errors: Annotated[list[Mapping[str, str]], meaning("What is wrong, with a pointer to it.")] = []


class Snippet(Record):
    """Text that configures a client for the repository. <TOKEN> stands for an access token."""

    client: Annotated[str, meaning("The client program.")]
    title: Annotated[str, meaning("What the text does, for people.")]
    file: Annotated[str, meaning("The file that the text belongs into; empty if it is a command.")]
    language: Annotated[str, meaning("The language of the text, for colouring.")]
    text: Annotated[str, meaning("The text; <TOKEN> stands for an access token.")]
