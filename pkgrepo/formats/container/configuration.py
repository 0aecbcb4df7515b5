"""The configuration of a container repository."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Any

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.model import Repository
from pkgrepo.repositories.hosted_config import Auth, parse_hosted_config

from .public_keys import KeyInvalid, parse_key

# Tags that cosign and oras move with each signature or referrer.
EXEMPT = re.compile(r"sha256-[0-9a-f]{64}(\.(sig|att|sbom))?")

MOST_KEYS = 16  # of a repository; each signature is verified with each of them


class PushRules(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    Rules for pushes.

    ``allow_tag_overwrite`` lets a push move an existing tag. ``must_be_project_member`` and
    ``must_use_auth_token_for_push`` restrict who may push. With ``require_content_trust`` readers see an image only
    after it has a valid signature.
    """

    allow_tag_overwrite: bool = False
    must_be_project_member: bool = False
    must_use_auth_token_for_push: bool = False
    require_content_trust: bool = False


class Policy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    Rules for stored images.

    ``allow_sparse`` accepts manifests that refer to missing content, such as mirrors of some platforms only.
    ``other_media_types`` accepts any JSON document as a manifest. Tags that match a pattern of ``overwrite_exempt`` can
    always be moved.
    """

    allow_sparse: bool = False
    other_media_types: bool = False
    allow_delete: bool = True
    overwrite_exempt: list[str] = []


class TrustPolicy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    The trusted public keys, and how long an unsigned image is kept.

    ``keys`` are in PEM (ECDSA P-256, Ed25519, RSA from 2048 bits); an empty list means the keys of the server.
    ``window_s`` is the time in seconds in which a pushed image must be signed.
    """

    keys: Annotated[list[str], msgspec.Meta(max_length=MOST_KEYS)] = []
    window_s: Annotated[int, msgspec.Meta(ge=60, le=30 * 86400)] = 3600


class HostedConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True, tag_field="type", tag="Hosted"):
    """
    The configuration of a hosted repository. ``type`` and ``push_rules`` are the fixed part, the others are settings.

    ``default`` marks the repository for image names that do not begin with a storage and a repository.
    """

    push_rules: PushRules = PushRules()
    policy: Policy | None = None
    trust: TrustPolicy | None = None
    default: bool | None = None
    auth: Auth | None = None
    page: str | None = None


def validate(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """
    The fixed object with its push rules, and the settings beside it; keys that begin with ``x_`` are kept.

    :raises Invalid: a key is unknown, a value wrong or a feature unavailable, with its JSON pointer
    """
    parsed, settings = parse_hosted_config(
        config, HostedConfig, ("policy", "trust", "default", "auth", "page"), "container images"
    )
    _check_trust(parsed)
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


def trust_policy(repository: Repository) -> TrustPolicy | None:
    """The trusted keys and the quarantine of a repository, or None where no signature is required."""
    if not push_rules(repository).require_content_trust:
        return None
    return msgspec.convert(repository.settings.get("trust") or {}, TrustPolicy)


def immutable_tags(repository: Repository, tags: tuple[str, ...]) -> frozenset[str]:
    """The tags that the repository does not allow moving, of those given."""
    if push_rules(repository).allow_tag_overwrite:
        return frozenset()
    globs = policy(repository).overwrite_exempt
    return frozenset(
        tag for tag in tags if EXEMPT.fullmatch(tag) is None and not any(fnmatchcase(tag, glob) for glob in globs)
    )


def _check_trust(config: HostedConfig) -> None:
    listed = [] if config.trust is None else config.trust.keys
    for index, text in enumerate(listed):
        try:
            parse_key(text)
        except KeyInvalid as error:
            raise Invalid(str(error), f"/trust/keys/{index}") from None
