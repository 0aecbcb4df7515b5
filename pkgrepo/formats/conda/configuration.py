"""The configuration of a conda repository."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from pkgrepo.model import Repository, RepositoryType
from pkgrepo.repositories import configuration


class PushRules(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    Rules for uploads.

    ``must_be_project_member`` lets only members of the project that owns a package upload it. With
    ``must_use_auth_token_for_push`` a password is not enough.
    """

    must_be_project_member: bool = False
    must_use_auth_token_for_push: bool = False


class Policy(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    Rules for what is published.

    ``allow_overwrite`` lets an upload that asks for it replace a file. The name of a deleted file can be published
    again only while ``reuse_deleted_names`` is on.
    """

    allow_overwrite: bool = False
    reuse_deleted_names: bool = False


class HostedConfig(configuration.HostedConfig, frozen=True):
    """The configuration of a hosted repository. ``type`` and ``push_rules`` are the fixed part."""

    fixed: ClassVar[tuple[str, ...]] = ("push_rules",)

    push_rules: PushRules = PushRules()
    policy: Policy | None = None


CONFIGURATIONS = configuration.Configurations("the conda format", HostedConfig)


def companion_config(parent: Repository) -> Mapping[str, Any] | None:
    """The configuration of the channel beside a repository of another format, whose rules for uploads it has."""
    if parent.type is RepositoryType.VIRTUAL:
        return None
    rules = {key: parent.policy[key] for key in Policy.__struct_fields__ if key in parent.policy}
    return {"type": RepositoryType.HOSTED.value} | ({"policy": rules} if rules else {})


def converts_wheels(parent: Repository) -> bool:
    """Whether wheels of the repository that a channel belongs to become packages: its setting ``conda.from_wheels``."""
    setting: Mapping[str, Any] = parent.settings.get("conda") or {}
    return bool(setting.get("from_wheels", True))


def push_rules(repository: Repository) -> PushRules:
    """The rules for uploads to a repository."""
    return msgspec.convert(repository.config.get("push_rules") or {}, PushRules)


def policy(repository: Repository) -> Policy:
    """The policy of a repository."""
    return msgspec.convert(repository.policy, Policy)
