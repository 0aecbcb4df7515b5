"""The configuration of an npm repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pkgrepo.model import Repository
from pkgrepo.repositories.hosted_config import Auth, parse_hosted_config


class Policy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    Rules for publishing.

    ``manifest_mismatch`` applies if ``dependencies``, ``scripts`` or ``bin`` of the sent manifest differ from
    package.json in the tarball: ``tarball`` stores the values of the tarball, since clients run those; ``refuse``
    refuses the publish. A removed version can be published again, even with the same bytes, only while
    ``reuse_deleted_names`` is on.
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
