"""
Adds, changes and removes repositories of all types, and shows their configurations.

=============  ================================================  ============================================
place          credentials                                       members of virtual repositories
=============  ================================================  ============================================
request        in clear, or masked: the stored ones              paths (storage/name) or public ids
catalog        sealed                                            public ids, so that renaming keeps members
answer         masked                                            paths
=============  ================================================  ============================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor, Repository, RepositoryType
from pkgrepo.repositories.companions import Companions
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.server import repositories

from .credentials import mask_credentials
from .members import check_members, check_no_member, targets_in

Config = Mapping[str, Any]


def with_member_ids(config: Config, find: Callable[[str, str], Repository]) -> Config:
    """
    The fixed configuration with public ids instead of the names of members.

    ``find`` gets a name and its JSON pointer, and returns the repository or raises an error.
    """
    if config["type"] != RepositoryType.VIRTUAL:
        return config
    members = [find(name, f"/members/{index}").uid for index, name in enumerate(config["members"])]
    targets = {key: find(name, f"/{key}").uid for key, name in targets_in(config).items()}
    return {**config, "members": members, **targets}


def shown_config(repository: Repository, registry: Registry) -> dict[str, Any]:
    """The fixed configuration as people may see it: it can be sent back without a change."""
    config = mask_credentials(repository.config)
    if repository.type is RepositoryType.VIRTUAL:
        config["members"] = [_path(registry, uid) for uid in config["members"]]
        config |= {key: _path(registry, uid) for key, uid in targets_in(config).items()}
    return config


def ca_files(config: Config) -> set[str]:
    """The files of the server that the routes of a fixed configuration name."""
    routes = config.get("proxy", {}).get("routes", ())
    return {route["ca_file"] for route in routes if "ca_file" in route}


def add_repository(
    tx: Transaction, /, *, companions: Companions, format: str, config: Config, now_ms: int, **more: Any
) -> Repository:
    """
    See L{repositories.add_repository}. The type is that of the configuration. Its companions are added, too.

    :raises Invalid: the members of a virtual repository are wrong
    """
    _check(tx, config, format)
    added = repositories.add_repository(tx, format=format, config=config, type=config["type"], now_ms=now_ms, **more)
    companions.ensure(tx, added, now_ms)
    return added


def configure_repository(
    tx: Transaction,
    repository: Repository,
    *,
    companions: Companions,
    config: Config,
    settings: Config,
    now_ms: int,
) -> Repository:
    """
    See L{repositories.update_repository}. Its companions follow.

    :raises Invalid: the members of a virtual repository are wrong
    """
    _check(tx, config, repository.format, repository.uid)
    changed = repositories.update_repository(tx, repository.id, config=config, settings=settings, now_ms=now_ms)
    companions.ensure(tx, changed, now_ms)
    return changed


def remove_repository(tx: Transaction, repository: Repository, *, now_ms: int, purge: bool, actor: Actor) -> None:
    """See L{repositories.remove_repository}. :raises Conflict: it is a member of a virtual repository"""
    check_no_member(tx, repository)
    repositories.remove_repository(tx, repository.id, now_ms=now_ms, purge=purge, actor=actor)


def _check(r: Reader, config: Config, format: str, uid: str = "") -> None:
    if config["type"] == RepositoryType.VIRTUAL:
        check_members(r, config, format, uid)


def _path(registry: Registry, uid: str) -> str:
    found = registry.find_uid(uid)
    return uid if found is None else found.path
