"""Virtual repositories: which members they may have, what that makes visible, and where packages are published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

from pkgrepo.errors import Conflict, Invalid, ReadOnly
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository, RepositoryType, Visibility
from pkgrepo.proxy.configuration import proxy_config_of, virtual_config_of
from pkgrepo.repositories.configuration import agreed
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.server import repositories

_WHAT_WORKS: Final = (
    "Its policy.reserved_names keeps a package from clients, and policy.minimum_release_age versions that are new"
)

MOST_LEVELS = 4  # of virtual repositories in virtual ones, the outermost counted
_OPENNESS = (Visibility.PRIVATE, Visibility.HIDDEN, Visibility.PUBLIC)
_known_virtuals: WeakKeyDictionary[Registry, tuple[int, Sequence[Repository]]] = WeakKeyDictionary()
Graph = Mapping[str, Sequence[str]]  # the virtual members of each virtual repository, all as public ids


def check_publishes(repository: Repository) -> None:
    """
    Check that clients may publish to a repository, and change and delete packages in it.

    :raises ReadOnly: it is a proxy repository, a virtual one without ``publish_to``, a companion of one, or a view
    """
    if repository.view is not None:
        raise ReadOnly(
            f"{repository.address} shows what {repository.path} had at that time, and nothing is published, changed or "
            f"deleted there: use the address of {repository.path}"
        )
    if repository.is_companion and repository.stage is not None:
        raise ReadOnly(
            f"repository {repository.path} is made of what is staged: publish to the stage, and what belongs to no "
            "stage to the repository that it is for"
        )
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


def check_members(r: Reader, config: Mapping[str, Any], format: str, uid: str = "") -> None:
    """
    Check the members of the virtual repository ``uid`` (empty: a new one), whose fixed configuration is ``config``.

    :raises Invalid: a member does not exist, is of another format, is listed twice, names packages in another way or
        contains the repository; too many virtual repositories contain each other; a target takes no packages
    """
    members: list[str] = config["members"]
    found = {member: repositories.find_repository(r, member) for member in members}
    for index, member in enumerate(members):
        repository, pointer = found[member], f"/members/{index}"
        if repository is None:
            raise Invalid("there is no such repository", pointer)
        if repository.format != format:
            raise Invalid(f"{repository.path} is of format {repository.format}, not {format}", pointer)
        if agreed(repository.config) != agreed(config):
            raise Invalid(f"{repository.path} names packages by other patterns than this repository", pointer)
        if member in members[:index]:
            raise Invalid(f"{repository.path} is listed twice", pointer)
    for key, chosen in targets_in(config).items():
        target = found.get(chosen)
        if target is None or target.type is not RepositoryType.HOSTED:
            raise Invalid(f"{key} is a hosted member of this repository", f"/{key}")
    every = repositories.repositories_of_type(r, RepositoryType.VIRTUAL)
    others = {each.uid: each for each in every if each.stage is None}
    graph = {own: [m for m in virtual_config_of(each).members if m in others] for own, each in others.items()}
    graph[uid] = [member for member in members if member in others]
    _check_levels(graph, uid, members)


def targets_in(config: Mapping[str, Any]) -> dict[str, str]:
    """The members to which a virtual repository publishes, by the keys of its fixed configuration that name them."""
    return {key: config[key] for key in ("publish_to", "publish_snapshots_to") if config.get(key) is not None}


def virtuals_with(r: Reader, uid: str) -> list[Repository]:
    """The virtual repositories of which a repository is a member, ordered by path; none of a stage."""
    every = repositories.repositories_of_type(r, RepositoryType.VIRTUAL)
    return [each for each in every if each.stage is None and uid in virtual_config_of(each).members]


def check_no_member(r: Reader, repository: Repository) -> None:
    """:raises Conflict: virtual repositories have the repository as a member; the sentence names them"""
    found = [each.path for each in virtuals_with(r, repository.uid) if each.id != repository.id]
    if found:
        raise Conflict(
            f"repository {repository.path} is a member of {', '.join(found[:5])}"
            f"{f' and {len(found) - 5} more' if len(found) > 5 else ''}; remove it from the members there first"
        )


def exposure_warnings(registry: Registry, repository: Repository) -> list[str]:
    """
    Warnings about what a repository makes visible, or what makes it visible, as sentences.

    They name no other repository and no upstream: every reader of this repository sees them.
    """
    found = []
    if repository.type is RepositoryType.PROXY:
        routes = proxy_config_of(repository).routes
        plain = sum(route.credentials is not None and route.target.scheme == "http" for route in routes)
        if plain:
            found.append(f"Upstreams to which credentials are sent without encryption (http): {plain}.")
    if repository.type is RepositoryType.VIRTUAL:
        members = [registry.find_uid(uid) for uid in virtual_config_of(repository).members]
        closed = sum(each is not None and _openness(each) < _openness(repository) for each in members)
        if closed:
            found.append(
                f"Members that are less visible than this repository: {closed}. Its readers get their packages, too."
            )
    open_ = sum(
        repository.uid in virtual_config_of(each).members and _openness(each) > _openness(repository)
        for each in _virtuals(registry)
    )
    if open_:
        found.append(
            f"Virtual repositories that are more visible than this one, of which it is a member: {open_}. "
            "Their readers get its packages, too."
        )
    return found


def _virtuals(registry: Registry) -> Sequence[Repository]:
    """All virtual repositories, found once for each state of the configuration: lists ask for every repository."""
    kept = _known_virtuals.get(registry)
    if kept is None or kept[0] != registry.serial:
        found = [each for each in registry.all() if each.type is RepositoryType.VIRTUAL and each.stage is None]
        kept = _known_virtuals[registry] = registry.serial, found
    return kept[1]


def _check_levels(graph: Graph, uid: str, members: Sequence[str]) -> None:
    below: dict[str, int] = {}

    def levels(each: str, inside: tuple[str, ...]) -> int:
        """The number of virtual repositories in each other from ``each`` downwards; ``inside`` are those around it."""
        if each in inside:
            raise Invalid("a virtual repository cannot contain itself, not even through other ones", _place(inside))
        if each not in below:
            below[each] = 1 + max((levels(inner, (*inside, each)) for inner in graph[each]), default=0)
        return below[each]

    def _place(inside: tuple[str, ...]) -> str:
        path = (*inside, uid)
        return f"/members/{members.index(path[1])}"

    above, around = 0, {uid}
    while around:
        around = {outer for outer, inner in graph.items() if around & {*inner}}
        above += bool(around)
        if above > MOST_LEVELS:
            break  # a loop, which ``levels`` names, or too many levels
    if levels(uid, ()) + above > MOST_LEVELS:
        raise Invalid(f"at most {MOST_LEVELS} virtual repositories may contain each other", "/members")


def _openness(repository: Repository) -> tuple[int, bool]:
    return _OPENNESS.index(repository.visibility), not repository.auth_enabled
