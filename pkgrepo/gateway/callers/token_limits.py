"""The limits of tokens that package clients get by logging in to one repository."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Final

from pkgrepo.auth.tokens.limits import literal
from pkgrepo.errors import ReadOnly
from pkgrepo.model import Action, Repository, RepositoryScope, TokenLimits
from pkgrepo.proxy.virtual import publish_targets
from pkgrepo.repositories.registry import Registry

# The actions of a token from a login; administration of the repository is not among them.
PERSONAL: Final = frozenset({Action.READ, Action.WRITE, Action.OVERWRITE, Action.DELETE})


def limits_in(
    registry: Registry,
    repository: Repository,
    actions: Collection[Action] = PERSONAL,
    packages: tuple[str, ...] = (),
) -> TokenLimits:
    """
    The limits of a token that is issued in a repository; ``packages`` are globs, and empty for every package.

    It also reaches the repositories that changes go to, which check permissions of their own.
    """
    reached = [repository]
    with suppress(ReadOnly):
        reached += publish_targets(registry, repository)
    paths = dict.fromkeys(literal(each.path) for each in reached)
    return TokenLimits(repositories=tuple(RepositoryScope(path, frozenset(actions), packages) for path in paths))
