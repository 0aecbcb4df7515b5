"""Where packages go that clients publish: a proxy repository takes none, a virtual one hands them to a member."""

from __future__ import annotations

from typing import Final

from pkgrepo.errors import ReadOnly
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.repositories.registry import Registry

from .configuration import virtual_config_of

_WHAT_WORKS: Final = (
    "Its policy.reserved_names keeps a package from clients, and policy.minimum_release_age versions that are new"
)


def check_publishes(repository: Repository) -> None:
    """
    Check that clients may publish to a repository, and change and delete packages in it.

    :raises ReadOnly: it is a proxy repository, a virtual one without ``publish_to``, or a companion of one
    """
    if repository.parent is not None:
        check_publishes(repository.parent)
    if repository.type is RepositoryType.PROXY:
        raise ReadOnly(
            f"repository {repository.path} is a proxy: its packages come from upstream, and nothing is published, "
            f"changed or deleted in it. {_WHAT_WORKS}"
        )
    if repository.type is RepositoryType.VIRTUAL and not _targets(repository):
        raise ReadOnly(
            f"repository {repository.path} is virtual, and its configuration has no publish_to: "
            "publish to one of its members"
        )


def check_yanks(repository: Repository) -> None:
    """
    Check that a version can be yanked in this repository itself, so that its clients see it.

    :raises ReadOnly: its packages come from upstreams or members, and clients would not see it
    """
    if repository.type is RepositoryType.PROXY:
        raise ReadOnly(
            f"repository {repository.path} is a proxy: clients see what its upstream says of a version, so nothing is "
            f"yanked in it. {_WHAT_WORKS}"
        )
    if repository.type is RepositoryType.VIRTUAL:
        raise ReadOnly(f"repository {repository.path} is virtual: yank the version in the member that has it")


def publishes(repository: Repository) -> bool:
    """Whether clients may publish to a repository."""
    try:
        check_publishes(repository)
    except ReadOnly:
        return False
    return True


def publish_target(registry: Registry, repository: Repository, *, snapshot: bool = False) -> Repository:
    """
    The repository that packages published to ``repository`` go to, and whose permissions and rules apply.

    It may be another one for a ``snapshot``.

    :raises ReadOnly: there is none
    """
    check_publishes(repository)
    if repository.type is not RepositoryType.VIRTUAL:
        return repository
    config = virtual_config_of(repository)
    uid = (snapshot and config.publish_snapshots_to) or config.publish_to
    if uid is None:
        raise ReadOnly(f"repository {repository.path} takes snapshots only: its configuration has no publish_to")
    target = registry.find_uid(uid)
    if target is None:
        raise ReadOnly(f"the repository that {repository.path} publishes to does not exist")
    return target


def publish_targets(registry: Registry, repository: Repository) -> list[Repository]:
    """
    All repositories that packages published to ``repository`` may go to, that of releases first.

    :raises ReadOnly: there is none
    """
    check_publishes(repository)
    if repository.type is not RepositoryType.VIRTUAL:
        return [repository]
    found = [each for uid in _targets(repository) if (each := registry.find_uid(uid)) is not None]
    if not found:
        raise ReadOnly(f"the repository that {repository.path} publishes to does not exist")
    return found


def _targets(virtual: Repository) -> list[str]:
    config = virtual_config_of(virtual)
    return list(dict.fromkeys(uid for uid in (config.publish_to, config.publish_snapshots_to) if uid is not None))
