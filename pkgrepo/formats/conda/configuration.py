"""The configuration of a conda repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec import UNSET

from pkgrepo.errors import Invalid
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.proxy import schema
from pkgrepo.proxy.configuration import VirtualConfig, virtual_config_of
from pkgrepo.proxy.route_schema import RouteConfig
from pkgrepo.repositories import configuration
from pkgrepo.repositories.policy.schema import ServingPolicy

AUTO = "auto"


class Policy(ServingPolicy, frozen=True):
    """
    Rules for what is published.

    ``allow_overwrite`` lets an upload that asks for it replace a file. The name of a deleted file can be published
    again only while ``reuse_deleted_names`` is on.
    """

    allow_overwrite: Annotated[bool, meaning("A file may be published again with other content.")] = False
    reuse_deleted_names: Annotated[bool, meaning("The name of something that was deleted can be published again.")] = (
        False
    )


class HostedConfig(configuration.HostedConfig, frozen=True):
    """The configuration of a hosted repository. ``type`` and ``push_rules`` are the fixed part."""

    fixed: ClassVar[tuple[str, ...]] = ("push_rules",)

    push_rules: Annotated[configuration.PushRules, meaning("Rules for pushes.")] = configuration.PushRules()
    policy: Annotated[Policy | None, meaning("Rules for uploads and for the packages that are served.")] = None


class ProxyConfig(schema.ProxyConfig, frozen=True, tag=RepositoryType.PROXY.value):
    """
    The configuration of a proxy repository, as for other formats.

    Its routes are addresses of one channel: a folder is asked of the first one that has it, or with routes_are_replicas
    of the first one that answers. Several channels are the members of a virtual repository.
    """

    def normalised(self) -> Self:
        """The configuration as it is stored. :raises Invalid: a route is only for some packages"""
        found = super().normalised()
        assert found.proxy is not UNSET, "it is normalised"
        for index, route in enumerate(found.proxy.routes):
            if isinstance(route, RouteConfig) and route.packages is not UNSET:
                raise Invalid(
                    "the routes of a channel have all its packages; use reserved_names, or proxies with other channels",
                    f"/proxy/routes/{index}/packages",
                )
        return found


CONFIGURATIONS = configuration.Configurations("the conda format", HostedConfig | ProxyConfig | schema.VirtualConfig)


def companion_config(parent: Repository, companion: Callable[[str], str | None]) -> Mapping[str, Any] | None:
    """
    The configuration of the channel beside a repository of another format, whose rules for uploads it has.

    That of a virtual repository has the channels beside the members, which ``companion`` finds by the members' ids.
    """
    if parent.type is RepositoryType.VIRTUAL:
        return _virtual_companion(virtual_config_of(parent), companion)
    rules = {key: parent.policy[key] for key in Policy.__struct_fields__ if key in parent.policy}
    return {"type": RepositoryType.HOSTED.value} | ({"policy": rules} if rules else {})


def _virtual_companion(parent: VirtualConfig, companion: Callable[[str], str | None]) -> Mapping[str, Any] | None:
    members = [found for each in parent.members if (found := companion(each)) is not None]
    if not members:
        return None
    return {
        "type": RepositoryType.VIRTUAL.value,
        "members": members,
        "publish_to": None if parent.publish_to is None else companion(parent.publish_to),
        "resolution": "merge" if parent.merges else "first",
    }


def converts_wheels(parent: Repository, *, read: bool) -> bool:
    """
    Whether wheels of the repository that a channel belongs to become packages: its setting ``conda.from_wheels``.

    With ``auto`` they do once somebody has ``read`` the channel.
    """
    setting: Mapping[str, Any] = parent.settings.get("conda") or {}
    chosen = setting.get("from_wheels", AUTO)
    return parent.type is RepositoryType.HOSTED and (read if chosen == AUTO else bool(chosen))


def policy(repository: Repository) -> Policy:
    """The policy of a hosted repository. The other types have no rules for uploads."""
    if repository.type is not RepositoryType.HOSTED:
        return Policy()
    return msgspec.convert(repository.policy, Policy)
