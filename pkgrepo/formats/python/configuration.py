"""The configuration of a Python repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from pkgrepo.repositories.hosted import Auth, parse_hosted


class Policy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    What uploads may do. Every switch is off by default.

    The name of a deleted file stays burned, whatever the bytes, unless ``reuse_deleted_names`` is on when it is
    uploaded again.
    """

    allow_overwrite: bool = False
    strict_filenames: bool = False
    reuse_deleted_names: bool = False


class HostedConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="type", tag="Hosted"):
    """Packages are published here. Only ``type`` is the format's own; the rest stands beside it."""

    policy: Policy | None = None
    auth: Auth | None = None
    page: str | None = None


def validate(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    The fixed object (``{"type": "Hosted"}``) and the settings beside it; keys that begin with ``x_`` are kept.

    :raises Invalid: an unknown key or a wrong value, with its JSON pointer
    """
    _, settings = parse_hosted(config, HostedConfig, ("policy", "auth", "page"), "the Python format")
    return {"type": "Hosted"}, settings


def schema() -> Mapping[str, Any]:
    """JSON Schema of the whole configuration."""
    return msgspec.json.schema(HostedConfig)
