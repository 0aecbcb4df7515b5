"""The configuration of an npm repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.model import Repository


class Policy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    What publishing may do.

    ``manifest_mismatch`` decides what becomes of a version whose sent manifest has other ``dependencies``, ``scripts``
    or ``bin`` than the package.json in its tarball, which is what runs: the tarball's are taken, or it is refused.
    """

    manifest_mismatch: Literal["tarball", "refuse"] = "tarball"
    reuse_deleted_names: bool = False


class Auth(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Whether reads of a public repository need credentials."""

    enabled: bool = False


class HostedConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="type", tag="Hosted"):
    """Packages are published here. Only ``type`` is the format's own; the rest stands beside it."""

    policy: Policy | None = None
    auth: Auth | None = None
    page: str | None = None


def policy_of(repository: Repository) -> Policy:
    """The policy of a repository, with its defaults."""
    return msgspec.convert(dict(repository.settings.get("policy") or {}), Policy)


def validate(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    The fixed object (``{"type": "Hosted"}``) and the settings beside it; keys that begin with ``x_`` are kept.

    :raises Invalid: an unknown key or a wrong value, with its JSON pointer
    """
    kind = config.get("type", "Hosted")
    if kind == "Proxy":
        raise Invalid("proxy repositories of the npm format are not available in this version", "/type")
    kept = {key: value for key, value in config.items() if key.startswith("x_")}
    rest = {key: value for key, value in config.items() if key not in kept}
    try:
        parsed = msgspec.convert({**rest, "type": kind}, HostedConfig)
    except msgspec.ValidationError as error:
        raise Invalid(*_explain(str(error))) from error
    settings: dict[str, Any] = {**kept}
    for key in ("policy", "auth", "page"):
        value = getattr(parsed, key)
        if value is not None:
            settings[key] = msgspec.to_builtins(value)
    return {"type": "Hosted"}, settings


def schema() -> Mapping[str, Any]:
    """JSON Schema of the whole configuration."""
    return msgspec.json.schema(HostedConfig)


def _explain(message: str) -> tuple[str, str]:
    """Msgspec's sentence, and where it points, as sentence and JSON pointer."""
    text, _, where = message.partition(" - at `$")
    pointer = where.rstrip("`").replace(".", "/").replace("[", "/").replace("]", "")
    unknown = re.search(r"unknown field `([^`]*)`", text)
    return text, f"{pointer}/{unknown[1]}" if unknown else pointer
