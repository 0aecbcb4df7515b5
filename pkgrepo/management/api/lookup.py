"""Repositories by the names that callers use."""

from __future__ import annotations

from collections.abc import Callable

from pkgrepo.errors import Invalid
from pkgrepo.model import Repository
from pkgrepo.repositories.registry import Registry


def find_repository(registry: Registry, name: str) -> Repository | None:
    """The repository behind an id, or behind ``storage/name``; None when there is none."""
    storage, slash, rest = name.partition("/")
    return registry.find(storage, rest) if slash else registry.find_uid(name.lower())


def named_repository(
    registry: Registry, name: str, pointer: str, knows: Callable[[Repository], bool] | None = None
) -> Repository:
    """
    The same for a name in a body or query; ``knows`` tells whether the caller may know of a repository.

    :raises Invalid: there is none, or none for this caller, with the pointer of the name
    """
    repository = find_repository(registry, name)
    if repository is None or (knows is not None and not knows(repository)):
        raise Invalid(f"there is no repository {name!r}; give its id, or storage/name", pointer)
    return repository
