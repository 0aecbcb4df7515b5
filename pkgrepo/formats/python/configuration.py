"""The configuration of a Python repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pkgrepo.repositories.hosted_config import Auth, parse_hosted_config


class Policy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    Rules for uploads; all are off by default.

    ``allow_overwrite`` lets an upload replace a file. ``strict_filenames`` accepts only normalised file names. The name
    of a deleted file can be published again, even with the same bytes, only while ``reuse_deleted_names`` is on.
    """

    allow_overwrite: bool = False
    strict_filenames: bool = False
    reuse_deleted_names: bool = False


class HostedConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="type", tag="Hosted"):
    """The configuration of a hosted repository. ``type`` is fixed; the other fields are settings."""

    policy: Policy | None = None
    auth: Auth | None = None
    page: str | None = None


def validate(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    Split a configuration into the fixed part (``{"type": "Hosted"}``) and the settings; ``x_`` keys are kept.

    :raises Invalid: an unknown key or a wrong value, with its JSON pointer
    """
    _, settings = parse_hosted_config(config, HostedConfig, ("policy", "auth", "page"), "the Python format")
    return {"type": "Hosted"}, settings


def schema() -> Mapping[str, Any]:
    """JSON Schema of the whole configuration."""
    return msgspec.json.schema(HostedConfig)
