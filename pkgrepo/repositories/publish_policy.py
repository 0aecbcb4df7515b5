"""The configuration of hosted repositories whose files may be replaced, if their policy says so."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from pkgrepo.model import Repository, RepositoryType
from pkgrepo.model.structs import meaning

from .configuration import HostedConfig, PushRules
from .policy.schema import ServingPolicy
from .publish.bursts import Burst


class HostedPolicy(ServingPolicy, frozen=True):
    """The part of the policy of every hosted repository that is about its publishers."""

    burst: Annotated[
        Burst | None,
        meaning("When uploads are led to a stage that needs an approval; null for never. See Brakes in the book."),
    ] = None


class PublishPolicy(HostedPolicy, frozen=True):
    """
    Rules for what is published.

    ``allow_overwrite`` lets an upload that asks for it replace a file. The name of a deleted file can be published
    again only while ``reuse_deleted_names`` is on.
    """

    allow_overwrite: Annotated[bool, meaning("A file may be published again with other content.")] = False
    reuse_deleted_names: Annotated[bool, meaning("The name of something that was deleted can be published again.")] = (
        False
    )


class PublishConfig(HostedConfig, frozen=True):
    """The configuration of a hosted repository. ``type`` and ``push_rules`` are the fixed part."""

    fixed: ClassVar[tuple[str, ...]] = ("push_rules",)

    push_rules: Annotated[PushRules, meaning("Rules for pushes.")] = PushRules()
    policy: Annotated[PublishPolicy | None, meaning("Rules for uploads and for the packages that are served.")] = None


def publish_policy(repository: Repository) -> PublishPolicy:
    """The policy of a hosted repository. The other types have no rules for uploads."""
    if repository.type is not RepositoryType.HOSTED:
        return PublishPolicy()
    return msgspec.convert(repository.policy, PublishPolicy)
