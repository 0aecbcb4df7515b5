"""
Which actions a change of somebody's rights adds, and whether the one who makes it holds them.

Taking a grant back may add actions too, for a grant stands before those of groups, the default actions and visibility
(see L{pkgrepo.auth.permissions.rules}). So the outcome of the rules before the change is compared with the outcome
after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from attrs import evolve

from pkgrepo.errors import Forbidden
from pkgrepo.model import Action, Identity, Repository, User, UserKind

from .placeholders import make_placeholder
from .rules import Standing, decide

_NO_NAME = "\0"  # only patterns for every name match it
_EPOCH = datetime.fromtimestamp(0, UTC)

# A private repository that is made later, in which default actions count at once.
FUTURE = make_placeholder(0, _NO_NAME, _NO_NAME)

# Somebody who is to be added, and was given nothing yet.
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
    """The actions that somebody may do in a whole repository; project roles give none, for they speak of packages."""
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
    Let a change of a user's standing pass when it adds nothing that the giver, with the standing ``own``, lacks.

    ``repositories`` are all that there are.

    :raises Forbidden: naming a repository and the actions that the giver does not hold there
    """
    if before.user is None or after.user is None:
        return
    receiver = Identity(user_id=after.user.id, via="password")
    # who is switched off now may be switched on later
    before = evolve(before, user=evolve(before.user, active=True))
    after = evolve(after, user=evolve(after.user, active=True))
    for repository in _concerned(own, before, after, repositories):
        added = held(after, receiver, repository) - held(before, receiver, repository)
        lacking = added - held(own, giver, repository) if added else added
        if lacking:
            words = ", ".join(action for action in Action if action in lacking)
            where = "every repository" if repository is FUTURE else repository.path
            raise Forbidden(f"only admins give rights that they do not hold themselves: {words} in {where}")


def _concerned(
    own: Standing, before: Standing, after: Standing, repositories: Iterable[Repository]
) -> Iterator[Repository]:
    """Where the change could add what the giver lacks: there may be thousands where it cannot."""
    ids = {key for key in before.own.keys() | after.own.keys() if before.own.get(key) != after.own.get(key)}
    if before.user != after.user:
        # where no grant says else, the giver's default actions count, as they do in a future repository
        ids |= own.own.keys() | own.groups.keys()
        yield FUTURE
    yield from (repository for repository in repositories if repository.id in ids)
