"""
Delegation: a change of a user's rights must not add actions that the giver does not hold.

Removing a grant may add actions too, because a grant takes precedence over those of groups, default actions and
visibility (see L{pkgrepo.auth.permissions.rules}). So the results of the rules before and after the change are
compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from attrs import evolve

from pkgrepo.errors import Forbidden
from pkgrepo.model import Action, Identity, Repository, User, UserKind

from .placeholders import make_placeholder
from .rules import Standing, decide

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


def held(standing: Standing, identity: Identity, repository: Repository) -> frozenset[Action]:
    """The actions allowed on a whole repository. Project roles do not count, because they apply to packages."""
    standing = evolve(standing, roles={})
    return frozenset(
        action
        for action in Action
        if decide(standing, identity, action, repository, _NO_NAME, owner=lambda: None, anonymous=True).allowed
    )


def check_delegation(
    giver: Identity, own: Standing, before: Standing, after: Standing, repositories: Iterable[Repository]
) -> None:
    """
    Check that a change of a user's standing adds no action that the giver, with the standing ``own``, lacks.

    ``repositories`` are all repositories.

    :raises Forbidden: naming a repository and the actions that the giver does not hold there
    """
    if before.user is None or after.user is None:
        return
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


def _affected(
    own: Standing, before: Standing, after: Standing, repositories: Iterable[Repository]
) -> Iterator[Repository]:
    """The repositories where the change may add actions; there may be thousands where it cannot."""
    ids = {key for key in before.own.keys() | after.own.keys() if before.own.get(key) != after.own.get(key)}
    if before.user != after.user:
        # the giver's default actions apply where the giver has no grant, as in FUTURE
        ids |= own.own.keys() | own.groups.keys()
        yield FUTURE
    yield from (repository for repository in repositories if repository.id in ids)
