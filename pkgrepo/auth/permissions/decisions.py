"""Applies the rules to a user's standing and, where they depend on it, to what a query reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pkgrepo.auth.tokens.bearer import behind
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Identity, Project, Repository
from pkgrepo.storage.catalog.people.projects import list_bindings

from .ownership import read_owner
from .rules import Decision, Standing, decide, has_any_right, read_standing

NOBODY = Standing(user=None)

Question = tuple[Action, Repository, str | None]  # action, repository, and package if any


class _OwnerUnread(Exception):  # noqa: N818 - says what happened
    """The rules need the project that owns the package, which must be read from the catalog."""


def decide_unread(standing: Standing, identity: Identity, question: Question, *, anonymous: bool) -> Decision | None:
    """The decision without a query; None if it depends on the project that owns the package."""
    try:
        return _decide(standing, identity, question, _raise_unread, anonymous=anonymous)
    except _OwnerUnread:
        return None


def read_decisions(
    r: Reader, identity: Identity, questions: Sequence[Question], standing: Standing | None, anonymous: bool
) -> tuple[Standing, list[Decision]]:
    """The standing of the identity's user (read if it is None) and the decisions."""
    known = _read_standing(r, identity) if standing is None else standing

    def owner(repository: Repository, package: str) -> Project | None:
        return read_owner(r, repository, package)

    return known, [_decide(known, identity, each, owner, anonymous=anonymous) for each in questions]


def read_known(r: Reader, identity: Identity, repository: Repository) -> bool:
    """Whether the identity's user may do anything in the repository; see ``has_any_right``."""
    return has_any_right(
        _read_standing(r, identity),
        behind(r, identity),
        repository,
        bound=lambda: frozenset(each.project_id for each in list_bindings(r, repository_id=repository.id)),
    )


def _read_standing(r: Reader, identity: Identity) -> Standing:
    return NOBODY if identity.user_id is None else read_standing(r, identity.user_id)


def _decide(
    standing: Standing,
    identity: Identity,
    question: Question,
    owner: Callable[[Repository, str], Project | None],
    *,
    anonymous: bool,
) -> Decision:
    action, repository, package = question
    return decide(
        standing,
        identity,
        action,
        repository,
        package,
        owner=lambda: owner(repository, package) if package else None,
        anonymous=anonymous,
    )


def _raise_unread(_repository: Repository, _package: str) -> Project | None:
    raise _OwnerUnread
