"""Applies the rules to a user's standing and, where they depend on it, to what a query reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pkgrepo.auth.permissions.ownership import read_owner, read_owners
from pkgrepo.auth.permissions.rules import Decision, Standing, decide, read_standing
from pkgrepo.auth.tokens.bearer import behind
from pkgrepo.interfaces import Reader
from pkgrepo.model import Action, Extent, Identity, Project, Repository

NO_USER = Standing(user=None)

Question = tuple[Action, Repository, str | Extent | None]  # action, repository, and package if any


class _OwnerUnread(Exception):  # noqa: N818 - says what happened
    """The rules need the projects that own packages, which must be read from the catalog."""


def decide_unread(standing: Standing, identity: Identity, question: Question, *, anonymous: bool) -> Decision | None:
    """The decision without a query; None if it depends on the projects that own packages."""
    try:
        return _decide(standing, identity, question, _raise_unread, anonymous=anonymous)
    except _OwnerUnread:
        return None


def read_decisions(
    r: Reader, identity: Identity, questions: Sequence[Question], standing: Standing | None, anonymous: bool
) -> tuple[Standing, list[Decision]]:
    """The standing of the identity's user (read if it is None) and the decisions."""
    known = _read_standing(r, identity) if standing is None else standing

    def owners(repository: Repository, package: str | Extent) -> Iterable[Project]:
        if isinstance(package, Extent):
            return read_owners(r, repository, known.roles, pipeline=identity.pipeline is not None)
        owner = read_owner(r, repository, package)
        return () if owner is None else (owner,)

    return known, [_decide(known, identity, each, owners, anonymous=anonymous) for each in questions]


def read_known(r: Reader, identity: Identity, repository: Repository, anonymous: bool) -> bool:
    """Whether the identity's user may do anything in the repository, if only with one package."""
    questions: list[Question] = [(each, repository, Extent.SOME) for each in Action]
    _, decisions = read_decisions(r, behind(r, identity), questions, None, anonymous)
    return any(each.allowed for each in decisions)


def _read_standing(r: Reader, identity: Identity) -> Standing:
    return NO_USER if identity.user_id is None else read_standing(r, identity.user_id)


def _decide(
    standing: Standing,
    identity: Identity,
    question: Question,
    owners: Callable[[Repository, str | Extent], Iterable[Project]],
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
        owners=lambda: owners(repository, package or Extent.SOME) if package != "" else (),
        anonymous=anonymous,
    )


def _raise_unread(_repository: Repository, _package: str | Extent) -> Iterable[Project]:
    raise _OwnerUnread
