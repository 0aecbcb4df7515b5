"""The configuration of a conda repository."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.configuration import VirtualConfig as Members
from pkgrepo.proxy.configuration import virtual_config_of
from pkgrepo.proxy.schema import ListProxyConfig, VirtualConfig
from pkgrepo.repositories.configuration import Configurations
from pkgrepo.repositories.publish_policy import PublishConfig, PublishPolicy

AUTO = "auto"


CONFIGURATIONS = Configurations("the conda format", PublishConfig | ListProxyConfig | VirtualConfig)


def companion_config(parent: Repository, companion: Callable[[str], str | None]) -> Mapping[str, Any] | None:
    """
    The configuration of the channel beside a repository of another format, whose rules for uploads it has.

    That of a virtual repository has the channels beside the members, which ``companion`` finds by the members' ids.
    """
    if parent.type is RepositoryType.VIRTUAL:
        return _virtual_companion(virtual_config_of(parent), companion)
    rules = {key: parent.policy[key] for key in PublishPolicy.__struct_fields__ if key in parent.policy}
    return {"type": RepositoryType.HOSTED.value} | ({"policy": rules} if rules else {})


def _virtual_companion(parent: Members, companion: Callable[[str], str | None]) -> Mapping[str, Any] | None:
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
