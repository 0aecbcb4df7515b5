"""The configuration of a container repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.model import Repository

# cosign and oras write these anew with each signature or referrer.
EXEMPT = re.compile(r"sha256-[0-9a-f]{64}(\.(sig|att|sbom))?")


class PushRules(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What publishers may do."""

    allow_tag_overwrite: bool = False
    must_be_project_member: bool = False
    must_use_auth_token_for_push: bool = False
    require_content_trust: bool = False


class Policy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    What may be stored.

    With ``allow_sparse`` manifests may refer to what is not there, as in mirrors of some platforms; with
    ``other_media_types`` any JSON document is taken as a manifest. Tags that match a pattern of ``overwrite_exempt``
    may always be moved.
    """

    allow_sparse: bool = False
    other_media_types: bool = False
    allow_delete: bool = True
    overwrite_exempt: list[str] = []


class Auth(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Whether reads of a public repository need credentials."""

    enabled: bool = False


class HostedConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="type", tag="Hosted"):
    """Images are pushed here. Only ``type`` and ``push_rules`` are the format's own; the rest stands beside it."""

    push_rules: PushRules = PushRules()
    policy: Policy | None = None
    auth: Auth | None = None
    page: str | None = None


def validate(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    The fixed object with its push rules, and the settings beside it; keys that begin with ``x_`` are kept.

    :raises Invalid: an unknown key, a wrong value or what is not available, with its JSON pointer
    """
    kind = config.get("type", "Hosted")
    if kind == "Proxy":
        raise Invalid("proxy repositories of container images are not available in this version", "/type")
    kept = {key: value for key, value in config.items() if key.startswith("x_")}
    rest = {key: value for key, value in config.items() if key not in kept}
    try:
        parsed = msgspec.convert({**rest, "type": kind}, HostedConfig)
    except msgspec.ValidationError as error:
        raise Invalid(*_explain(str(error))) from error
    if parsed.push_rules.require_content_trust:
        raise Invalid("content trust is not available in this version", "/push_rules/require_content_trust")
    settings: dict[str, Any] = {**kept}
    for key in ("policy", "auth", "page"):
        value = getattr(parsed, key)
        if value is not None:
            settings[key] = msgspec.to_builtins(value)
    return {"type": "Hosted", "push_rules": msgspec.to_builtins(parsed.push_rules)}, settings


def schema() -> Mapping[str, Any]:
    """JSON Schema of the whole configuration."""
    return msgspec.json.schema(HostedConfig)


def push_rules(repository: Repository) -> PushRules:
    """The push rules of a repository."""
    return msgspec.convert(repository.config.get("push_rules", {}), PushRules)


def policy(repository: Repository) -> Policy:
    """The policy of a repository."""
    return msgspec.convert(repository.settings.get("policy") or {}, Policy)


def kept_tags(repository: Repository, tags: tuple[str, ...]) -> frozenset[str]:
    """Those of the tags that may not be moved once they stand for something."""
    if push_rules(repository).allow_tag_overwrite:
        return frozenset()
    globs = policy(repository).overwrite_exempt
    return frozenset(
        tag for tag in tags if EXEMPT.fullmatch(tag) is None and not any(fnmatchcase(tag, glob) for glob in globs)
    )


def _explain(message: str) -> tuple[str, str]:
    """Msgspec's sentence, and where it points, as sentence and JSON pointer."""
    text, _, where = message.partition(" - at `$")
    pointer = where.rstrip("`").replace(".", "/").replace("[", "/").replace("]", "")
    unknown = re.search(r"unknown field `([^`]*)`", text)
    if unknown:
        return text, f"{pointer}/{unknown[1]}"
    return text, pointer
