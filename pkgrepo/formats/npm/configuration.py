"""The configuration of an npm repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pkgrepo.model import Repository
from pkgrepo.repositories.hosted_config import Auth, parse_hosted_config


class Policy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    The rules of publishing.

    ``manifest_mismatch`` decides about a version whose sent manifest has other ``dependencies``, ``scripts`` or
    ``bin`` than the package.json in its tarball. With ``tarball`` the tarball's values replace the sent ones, since
    they are what runs; with ``refuse`` the publish is refused. A removed version can never be published again, not
    even with the same bytes, unless ``reuse_deleted_names`` is on at that time.
    """

    manifest_mismatch: Literal["tarball", "refuse"] = "tarball"
    reuse_deleted_names: bool = False


class HostedConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="type", tag="Hosted"):
    """The configuration of a hosted repository. ``type`` is the fixed object; the other fields are settings."""

    policy: Policy | None = None
    auth: Auth | None = None
    page: str | None = None


def policy_of(repository: Repository) -> Policy:
    """The policy of a repository; what it does not set has the default."""
    return msgspec.convert(dict(repository.settings.get("policy") or {}), Policy)


def validate(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    The fixed object (``{"type": "Hosted"}``) and the settings; keys that begin with ``x_`` are kept.

    :raises Invalid: an unknown key or a wrong value, with its JSON pointer
    """
    _, settings = parse_hosted_config(config, HostedConfig, ("policy", "auth", "page"), "the npm format")
    return {"type": "Hosted"}, settings


def schema() -> Mapping[str, Any]:
    """JSON Schema of the whole configuration."""
    return msgspec.json.schema(HostedConfig)
