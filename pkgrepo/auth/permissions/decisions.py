"""
Applies the rules to a user's standing and, where they depend on it, to what a query reads; checks delegation.

Delegation: a change of a user's rights must not add actions that the giver does not hold. Removing a grant may add
actions too, because a grant takes precedence over those of groups, default actions and visibility (see ``rules``). So
the results of the rules before and after the change are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TypeVar

from attrs import evolve

from pkgrepo.auth.permissions.ownership import read_owner, read_owners
from pkgrepo.auth.permissions.rules import Decision, Standing, decide, make_placeholder, read_standing
from pkgrepo.auth.tokens.bearer import behind
from pkgrepo.errors import Forbidden
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Action, Extent, Identity, Project, Repository, User, UserKind

NO_USER = Standing(user=None)
T = TypeVar("T")

Question = tuple[Action, Repository, str | Extent | None]  # action, repository, and package if any

_NO_NAME = "\0"  # matched only by patterns for every name
_EPOCH = datetime.fromtimestamp(0, UTC)
# Stands for repositories created later, in which default actions apply.
FUTURE = make_placeholder(0, _NO_NAME, _NO_NAME)
# A user to be added, without any rights.
NEWCOMER = User(
    id=0,
    uid="",
    username="",
    key="",
    name="",
    email="",
    kind=UserKind.PERSON,
    active=True,
    admin=False,
    user_manager=False,
    system_manager=False,
    default_actions=frozenset(),
    generation=0,
    created_at=_EPOCH,
    updated_at=_EPOCH,
    last_login_at=None,
)


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


def held(standing: Standing, identity: Identity, repository: Repository) -> frozenset[Action]:
    """The actions allowed on a whole repository. Project roles do not count, because they apply to packages."""
    standing = evolve(standing, roles={})
    return frozenset(
        action
        for action in Action
        if decide(standing, identity, action, repository, _NO_NAME, owners=lambda: (), anonymous=True).allowed
    )


def change_as(
    tx: Transaction,
    giver: Identity,
    changed: Callable[[Transaction], Sequence[int]],
    repositories: Sequence[Repository],
    command: Callable[[Transaction], T],
) -> T:
    """
    Write command: run a command that changes the rights of users, for a giver who may give only what they hold.

    ``changed`` finds those users, ``repositories`` are all repositories.

    :raises Forbidden: a user would gain an action or a role that the giver does not hold
    """
    own = _read_standing(tx, giver)
    user_ids = changed(tx)
    before = [read_standing(tx, each) for each in user_ids]
    result = command(tx)
    for user_id, was in zip(user_ids, before, strict=True):
        check_delegation(giver, own, was, read_standing(tx, user_id), repositories)
    return result


def check_delegation(
    giver: Identity, own: Standing, before: Standing, after: Standing, repositories: Iterable[Repository]
) -> None:
    """
    Check that a change of a user's standing adds no action and no role that the giver (standing ``own``) lacks.

    ``repositories`` are all repositories.

    :raises Forbidden: naming a repository and the actions that the giver does not hold there, or the role
    """
    if before.user is None or after.user is None:
        return
    limited = giver.limits is not None and bool(giver.limits.repositories or giver.limits.packages)
    for project, role in after.roles.items():
        if role.rank > _rank(before, project) and (limited or role.rank > _rank(own, project)):
            raise Forbidden(f"only admins give roles in projects that they do not hold themselves: {role}")
    receiver = Identity(user_id=after.user.id, via="password")
    # an inactive user may be activated later
    before = evolve(before, user=evolve(before.user, active=True))
    after = evolve(after, user=evolve(after.user, active=True))
    for repository in _affected(own, before, after, repositories):
        added = held(after, receiver, repository) - held(before, receiver, repository)
        lacking = added - held(own, giver, repository) if added else added
        if lacking:
            words = ", ".join(action for action in Action if action in lacking)
            where = "every repository" if repository is FUTURE else repository.path
            raise Forbidden(f"only admins give rights that they do not hold themselves: {words} in {where}")


def _rank(standing: Standing, project_id: int) -> int:
    role = standing.roles.get(project_id)
    return -1 if role is None else role.rank


def _affected(
    own: Standing, before: Standing, after: Standing, repositories: Iterable[Repository]
) -> Iterator[Repository]:
    """The repositories where the change may add actions; there may be thousands where it cannot."""
    ids = {
        key
        for was, becomes in ((before.own, after.own), (before.groups, after.groups))
        for key in was.keys() | becomes.keys()
        if was.get(key) != becomes.get(key)
    }
    if before.user != after.user:
        # the giver's default actions apply where the giver has no grant, as in FUTURE
        ids |= own.own.keys() | own.groups.keys()
        yield FUTURE
    yield from (repository for repository in repositories if repository.id in ids)
