"""The configuration of a repository of crates."""

from __future__ import annotations

from typing import Annotated

import msgspec

from pkgrepo.model import Repository
from pkgrepo.model.structs import meaning
from pkgrepo.proxy.schema import MergingConfig, ProxyConfig
from pkgrepo.repositories import configuration
from pkgrepo.repositories.publish_policy import HostedPolicy


class Policy(HostedPolicy, frozen=True):
    """
    Rules for what is published.

    With ``unique_spellings`` a crate is refused whose name differs from that of a published one only in case, ``-`` or
    ``_``; without it names still differ in more than case. With ``standard_names`` the names of the compiler's own
    crates can be published. A deleted version can be published again only while ``reuse_deleted_names`` is on.
    """

    unique_spellings: Annotated[bool, meaning("A name that differs from another one only in spelling is refused.")] = (
        True
    )
    standard_names: Annotated[bool, meaning("Crates may have names of the standard library and the compiler.")] = False
    reuse_deleted_names: Annotated[bool, meaning("The name of something that was deleted can be published again.")] = (
        False
    )


class HostedConfig(configuration.HostedConfig, frozen=True):
    """The configuration of a hosted repository. ``type`` is the fixed object; the other fields are settings."""

    push_rules: Annotated[configuration.PushRules | None, meaning("Rules for pushes.")] = None
    policy: Annotated[Policy | None, meaning("Rules for uploads and for the packages that are served.")] = None


CONFIGURATIONS = configuration.Configurations("the Cargo format", HostedConfig | ProxyConfig | MergingConfig)


def policy_of(repository: Repository) -> Policy:
    """The policy of a hosted repository."""
    return msgspec.convert(repository.policy, Policy)
