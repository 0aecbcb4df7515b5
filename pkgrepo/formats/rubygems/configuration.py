"""The configuration of a Ruby repository."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from pkgrepo.model import Repository, RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.proxy.schema import ProxyConfig, VirtualConfig
from pkgrepo.repositories import configuration
from pkgrepo.repositories.publish_policy import HostedPolicy


class Policy(HostedPolicy, frozen=True):
    """
    Rules for what is published.

    With ``unique_numbers`` a version is refused that Ruby takes for equal to a published one, such as 1.0.0 and 1.0.
    With ``unique_spellings`` a gem is refused whose name differs from that of a published one only in case, ``-`` or
    ``_``. The name of a deleted file can be published again only while ``reuse_deleted_names`` is on; a yanked version
    can be restored, but never published again.
    """

    unique_numbers: Annotated[bool, meaning("Two versions that compare as equal are refused.")] = True
    unique_spellings: Annotated[bool, meaning("A name that differs from another one only in spelling is refused.")] = (
        True
    )
    reuse_deleted_names: Annotated[bool, meaning("The name of something that was deleted can be published again.")] = (
        False
    )


class CompactIndex(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """
    The compact index.

    ``created_at`` puts the time of publication into the lines of ``/info``, for clients that wait before they use a new
    version; after a change of it the list ``/versions`` is written anew, which has the digests of these documents. With
    ``drop_yanked`` a gem without versions vanishes from ``/versions`` at once, and its ``/info`` is 404; a Bundler that
    has cached the old list then fails.
    """

    created_at: Annotated[bool, meaning("List when each version was published.")] = True
    drop_yanked: Annotated[bool, meaning("Leave yanked versions out.")] = False


class HostedConfig(configuration.HostedConfig, frozen=True):
    """The configuration of a hosted repository. ``type`` and ``push_rules`` are the fixed part."""

    fixed: ClassVar[tuple[str, ...]] = ("push_rules",)

    push_rules: Annotated[configuration.PushRules, meaning("Rules for pushes.")] = configuration.PushRules()
    policy: Annotated[Policy | None, meaning("Rules for uploads and for the packages that are served.")] = None
    compact_index: Annotated[CompactIndex | None, meaning("What the list of versions contains for Bundler.")] = None


CONFIGURATIONS = configuration.Configurations("the Ruby format", HostedConfig | ProxyConfig | VirtualConfig)


def policy(repository: Repository) -> Policy:
    """The policy of a hosted repository. The other types have no rules for pushes."""
    if repository.type is not RepositoryType.HOSTED:
        return Policy()
    return msgspec.convert(repository.policy, Policy)


def compact_index(repository: Repository) -> CompactIndex:
    """The options of a repository's compact index."""
    return msgspec.convert(repository.settings.get("compact_index") or {}, CompactIndex)
