"""Finds actions, visibilities, formats, repositories, users and groups by the names in requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from pkgrepo.errors import Conflict, Invalid
from pkgrepo.gateway.format import Format
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Action, Repository, SubjectKind, Visibility
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.people import groups, users

_ORDER = list(Action)


def parse_action(text: str) -> Action | None:
    """The action of this name in any case, also as ``repository:read`` or ``ReadRepository``; None for others."""
    word = text.casefold().removeprefix("repository:").removesuffix("repository")
    try:
        return Action(word)
    except ValueError:
        return None


def parse_actions(texts: Iterable[str], pointer: str) -> frozenset[Action]:
    """
    A set of actions.

    :raises Invalid: one of the names is unknown; ``pointer`` and its index say which
    """
    found = set()
    for index, text in enumerate(texts):
        action = parse_action(text)
        if action is None:
            raise Invalid(f"there is no action {text!r}; there are {', '.join(Action)}", f"{pointer}/{index}")
        found.add(action)
    return frozenset(found)


def action_names(actions: Iterable[Action]) -> list[str]:
    """The names of actions, in the order in which L{Action} defines them."""
    return [str(action) for action in sorted(actions, key=_ORDER.index)]


def parse_visibility(text: str, pointer: str = "/visibility") -> Visibility:
    """
    The visibility of this name, in upper or lower case.

    :raises Invalid: no visibility has this name
    """
    try:
        return Visibility(text.lower())
    except ValueError:
        raise Invalid(f"visibility is one of {', '.join(Visibility)}", pointer) from None


def get_format(formats: Mapping[str, Format], name: str, pointer: str = "/format") -> Format:
    """
    The format of this name or alias, in any case.

    :raises Invalid: there is none
    """
    wanted = name.casefold()
    for format_ in formats.values():
        if wanted == format_.name or wanted in format_.aliases:
            return format_
    raise Invalid(f"there is no format {name!r}; there are {', '.join(sorted(formats))}", pointer)


def check_independent(repository: Repository) -> None:
    """:raises Conflict: the repository belongs to another one, which decides how it is configured and removed"""
    if repository.parent is not None:
        raise Conflict(f"repository {repository.path} belongs to {repository.parent.path}: change that one instead")


def find_repository(registry: Registry, name: str) -> Repository | None:
    """The repository with this id or this path ``storage/name``; None when there is none."""
    storage, slash, rest = name.partition("/")
    return registry.find(storage, rest) if slash else registry.find_uid(name.lower())


async def get_repository(
    registry: Registry, name: str, pointer: str, knows: Callable[[Repository], Awaitable[bool]] | None = None
) -> Repository:
    """
    The repository with the id or path in a body or query, to which rights are given or which becomes a member.

    ``knows`` tells whether the caller may know that a repository exists; without it, every repository is found.

    :raises Invalid: there is none, the caller may not know of it, or it is a companion, which has neither; ``pointer``
        is the place of the name
    """
    repository = find_repository(registry, name)
    if repository is None or (knows is not None and not await knows(repository)):
        raise Invalid(f"there is no repository {name!r}; give its id, or storage/name", pointer)
    if repository.parent is not None:
        raise Invalid(f"{repository.path} belongs to {repository.parent.path}: name that one instead", pointer)
    return repository


async def find_subject(
    catalog: ICatalog, user: str | None, group: str | None, pointer: str = "/"
) -> tuple[SubjectKind, int, str]:
    """
    The user or the group that a body names: its kind, catalog key and name.

    :raises Invalid: both or neither is named, or it does not exist; ``pointer`` is the place of the two fields
    """
    if (user is None) == (group is None):
        raise Invalid("name either a user or a group", f"{pointer}user")
    if user is not None:
        found = await catalog.look(users.find_user_by_id, user)
        if found is None:
            raise Invalid(f"there is no user {user!r}", f"{pointer}user")
        return SubjectKind.USER, found.id, found.username
    there = await catalog.look(groups.find_group, group or "")
    if there is None:
        raise Invalid(f"there is no group {group!r}", f"{pointer}group")
    return SubjectKind.GROUP, there.id, there.name
