"""Where packages go that clients publish: a proxy repository takes none, a virtual one hands them to a member."""

from __future__ import annotations

from pkgrepo.errors import ReadOnly
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.repositories.registry import Registry

from .configuration import virtual_config_of


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
            "changed or deleted in it"
        )
    if repository.type is RepositoryType.VIRTUAL and virtual_config_of(repository).publish_to is None:
        raise ReadOnly(
            f"repository {repository.path} is virtual, and its configuration has no publish_to: "
            "publish to one of its members"
        )


def publishes(repository: Repository) -> bool:
    """Whether clients may publish to a repository."""
    try:
        check_publishes(repository)
    except ReadOnly:
        return False
    return True


def publish_target(registry: Registry, repository: Repository) -> Repository:
    """
    The repository that packages published to ``repository`` go to, and whose permissions and rules apply.

    :raises ReadOnly: there is none
    """
    check_publishes(repository)
    if repository.type is not RepositoryType.VIRTUAL:
        return repository
    target = registry.find_uid(virtual_config_of(repository).publish_to or "")
    if target is None:
        raise ReadOnly(f"the repository that {repository.path} publishes to does not exist")
    return target
