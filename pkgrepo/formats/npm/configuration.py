"""The configuration of an npm repository."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from pkgrepo.model import Repository
from pkgrepo.model.structs import meaning
from pkgrepo.proxy.schema import MergingConfig, ProxyConfig
from pkgrepo.repositories import configuration
from pkgrepo.repositories.publish_policy import HostedPolicy


class Policy(HostedPolicy, frozen=True):
    """
    Rules for publishing.

    ``manifest_mismatch`` applies if ``dependencies``, ``scripts`` or ``bin`` of the sent manifest differ from
    package.json in the tarball: ``tarball`` stores the values of the tarball, since clients run those; ``refuse``
    refuses the publish. A removed version can be published again, even with the same bytes, only while
    ``reuse_deleted_names`` is on.
    """

    manifest_mismatch: Annotated[
        Literal["tarball", "refuse"],
        meaning(
            "What to do if the sent manifest differs from package.json in the tarball: tarball "
            "stores the values of the tarball, refuse refuses the publish."
        ),
    ] = "tarball"
    reuse_deleted_names: Annotated[bool, meaning("The name of something that was deleted can be published again.")] = (
        False
    )


class HostedConfig(configuration.HostedConfig, frozen=True):
    """The configuration of a hosted repository. ``type`` is the fixed object; the other fields are settings."""

    push_rules: Annotated[configuration.PushRules | None, meaning("Rules for pushes.")] = None
    policy: Annotated[Policy | None, meaning("Rules for uploads and for the packages that are served.")] = None


CONFIGURATIONS = configuration.Configurations("the npm format", HostedConfig | ProxyConfig | MergingConfig)


def policy_of(repository: Repository) -> Policy:
    """The policy of a repository; what it does not set has the default."""
    return msgspec.convert(repository.policy, Policy)
