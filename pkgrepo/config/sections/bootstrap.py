"""What an empty server is given at its first start."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, field

from pkgrepo.config.keys import Section
from pkgrepo.config.kinds import ExistingFile, Secret
from pkgrepo.model.structs import meaning

from .texts import Address, Name, Sha256, User


class Admin(Section, frozen=True):
    """The first admin, created if there is no user yet, and never changed afterwards."""

    user: Annotated[User, meaning("its name")] = "admin"
    password: Annotated[Secret | None, meaning("its password")] = None
    password_hash: Annotated[
        Annotated[Secret, Meta(title="a hash")] | None,
        meaning("its password as an argon2id hash, $argon2id$..., instead of the password"),
    ] = None


class BootstrapStorage(Section, frozen=True):
    """A storage, created if it does not exist."""

    name: Annotated[Name, meaning("its name")]
    type: Annotated[Literal["Local", "S3"], meaning("its kind: a folder, or a bucket")] = "Local"
    path: Annotated[Path | None, meaning("its folder; unset means <name> below data.storages")] = None
    settings: Annotated[
        Mapping[str, Any],
        meaning(
            "those of a bucket: endpoint, bucket, region, prefix, path_style, redirect_from, ca_file, as in the API; "
            "credentials are found in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY), in files or of the "
            "instance"
        ),
    ] = field(default_factory=dict)
    readable_layout: Annotated[
        bool,
        meaning(
            "false: no files under readable names, which saves a few directory entries for each version; if the "
            "database is lost, pkgrepo reindex cannot bring back what the storage holds"
        ),
    ] = True


class BootstrapRepository(Section, frozen=True):
    """A repository, created if it does not exist; an existing one is not changed."""

    name: Annotated[Name, meaning("its name")]
    format: Annotated[str, meaning("its format", pattern=r"[a-z]+", title="the name of a format, such as python")]
    storage: Annotated[Name, meaning("its storage")] = "main"
    visibility: Annotated[Literal["public", "private", "hidden"], meaning("who may see it without a grant")] = "public"
    description: Annotated[str, meaning("its description", pattern=r"(?s).*", title="a text")] = ""
    config: Annotated[Mapping[str, Any], meaning("its configuration, as in the API")] = field(
        default_factory=lambda: {"type": "Hosted"}
    )


class BootstrapTokenScope(Section, frozen=True):
    """Actions that a token may do in the repositories that match a pattern."""

    repository: Annotated[str, meaning("storage/name, with * and ? as wildcards")]
    actions: Annotated[
        tuple[Literal["read", "write", "overwrite", "delete", "edit", "admin"], ...],
        meaning("the allowed actions", title="a list of actions"),
    ] = ("read",)


class BootstrapToken(Section, frozen=True):
    """A token, created if it does not exist, identified by its hash."""

    name: Annotated[str, meaning("its name", pattern=r".{1,100}", title="1 to 100 characters")]
    user: Annotated[User, meaning("the user it belongs to")]
    hash: Annotated[Sha256 | None, meaning("sha256 of its text")] = None
    file: Annotated[ExistingFile | None, meaning("file that holds its text, instead of the hash")] = None
    scopes: Annotated[tuple[str, ...], meaning("server scopes, as in the API", title="a list of scopes")] = ()
    repositories: Annotated[
        tuple[BootstrapTokenScope, ...], meaning("its repositories; without any, all that its user may use")
    ] = ()
    packages: Annotated[tuple[str, ...], meaning("its packages", title="a list of patterns")] = ()
    expires_days: Annotated[
        Annotated[int, Meta(ge=1, le=36_500)] | None, meaning("days from the first start until it expires")
    ] = None


class Bootstrap(Section, frozen=True):
    """Objects that a start creates if they are missing."""

    admin: Admin = field(default_factory=Admin)
    storages: Annotated[tuple[BootstrapStorage, ...], meaning("storages")] = ()
    repositories: Annotated[tuple[BootstrapRepository, ...], meaning("repositories")] = ()
    tokens: Annotated[tuple[BootstrapToken, ...], meaning("tokens")] = ()
    starter: Annotated[
        tuple[str, ...],
        meaning(
            "formats of which the starter set is made: a hosted repository, a proxy of the address in upstreams, if "
            "there is one, and a virtual one of both; all stands for all formats",
            title="a list of formats",
        ),
    ] = ()
    upstreams: Annotated[
        Mapping[str, Address], meaning("addresses of public registries by format, for proxies of the starter set")
    ] = field(default_factory=dict)
