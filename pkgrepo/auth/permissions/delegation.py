"""
Who may give which rights: a change of a user's rights must not add actions that the giver does not hold.

Removing a grant may add actions too, because a grant takes precedence over less exact ones, those of groups, default
actions and visibility (see ``rules``). So the results of the rules before and after a change are compared:

===========================  =========================================================================================
changed                      compared
===========================  =========================================================================================
grant for a repository       what the rules say of that repository, before, after, and of the giver
default actions              the same for each repository in which the giver has a grant; for all others, and those made
                             later, what the giver holds everywhere
grant for a pattern          what the change can add in any repository with a name that the pattern matches, with what
                             the giver holds in all of these: also in those that are made later, or get another name
role in a project            its rank
===========================  =========================================================================================

The last but one names no repository, and so tells nothing of those that the giver does not see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final, TypeVar

from attrs import evolve

from pkgrepo.auth.patterns import covers, exactness, may_meet
from pkgrepo.auth.permissions.grants import Grants
from pkgrepo.auth.permissions.rules import READING, Standing, decide, read_standing
from pkgrepo.errors import Forbidden
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Action, Identity, Repository, TokenLimits, User, UserKind

EVERY: Final = "*"  # the pattern of all repositories
T = TypeVar("T")

_NO_NAME = "\0"  # matched only by patterns for every name
_EPOCH = datetime.fromtimestamp(0, UTC)
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
        if decide(standing, identity, action, repository, _NO_NAME, owners=lambda: (), anonymous=True).allowed
    )


def holds_all(standing: Standing, identity: Identity, action: Action, pattern: str, *, named: bool = True) -> bool:
    """
    Whether an action is certainly allowed in every repository whose name a pattern matches, whenever that is made.

    ``named`` says whether grants for one repository count, which may be in the way, since it may get such a name.
    """
    user = standing.user
    if user is None or not user.active or identity.pipeline is not None or identity.scoped is False:
        return False
    if identity.limits is not None and not _reach_all(identity.limits, action, pattern):
        return False
    if user.admin or (user.system_manager and action is not Action.ADMIN):
        return True
    own, groups = standing.own.subjects.values(), standing.groups.subjects.values()
    if not all(each.all_have(action, pattern, named=named) for each in own):
        return False
    have = [each for each in groups if each.all_have(action, pattern, named=named)]
    if any(each.covers(pattern) for each in (*own, *have)):
        return True
    return action in user.default_actions and len(have) == len(groups)


def _reach_all(limits: TokenLimits, action: Action, pattern: str) -> bool:
    """Whether the limits of a token allow an action with all packages of every repository that a pattern matches."""
    if not all(covers(each, EVERY) for each in limits.packages):
        return False
    return not limits.repositories or any(
        action in each.actions
        and covers(each.repository.lower(), pattern)
        and all(covers(glob, EVERY) for glob in each.packages)
        for each in limits.repositories
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
    own = Standing(user=None) if giver.user_id is None else read_standing(tx, giver.user_id)
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

    :raises Forbidden: naming a repository or pattern and the actions that the giver does not hold there, or the role
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
    for pattern, actions, named in _added(before, after):
        where = "every repository" if pattern == EVERY else f"every repository that {pattern} can match"
        added = {each for each in actions if not holds_all(before, receiver, each, pattern, named=named)}
        _check({each for each in added if not holds_all(own, giver, each, pattern, named=named)}, where)
    for repository in _affected(own, before, after, repositories):
        gained = held(after, receiver, repository) - held(before, receiver, repository)
        _check(gained - held(own, giver, repository) if gained else gained, repository.path)


def _check(lacking: Iterable[Action], where: str) -> None:
    """:raises Forbidden: there are any"""
    words = ", ".join(each for each in Action if each in lacking)
    if words:
        raise Forbidden(f"only admins give rights that they do not hold themselves: {words} in {where}")


def _rank(standing: Standing, project_id: int) -> int:
    role = standing.roles.get(project_id)
    return -1 if role is None else role.rank


def _added(before: Standing, after: Standing) -> Iterator[tuple[str, frozenset[Action], bool]]:
    """
    The patterns where a change may add actions in repositories with any name, the actions, and how they are compared.

    It may be more than is added, and is never less: where a changed grant decides, its own actions; where it decided
    before and does so no longer, those of all that may decide instead of it.
    """
    had, default = (each.user.default_actions if each.user else frozenset[Action]() for each in (before, after))
    yield EVERY, default - had, False
    whatever = READING | default  # READ: of those that are not private
    everybody = whatever.union(*(a for each in after.groups.subjects.values() for a in each.places.values()))
    for was, becomes, below in (
        (before.own, after.own, everybody),
        (before.groups, after.groups, whatever),
    ):
        for name in sorted(was.subjects.keys() | becomes.subjects.keys()):
            for pattern, added in _added_by(name, was, becomes, below):
                yield pattern, added, True


def _added_by(
    name: str, was: Grants, becomes: Grants, below: frozenset[Action]
) -> Iterator[tuple[str, frozenset[Action]]]:
    """What the changed patterns of a user or group may add; ``below`` decides where it has no grant any more."""
    old, new = was.of(name), becomes.of(name)
    patterns = sorted(each for each in old.keys() | new.keys() if isinstance(each, str))
    for pattern in patterns:
        if old.get(pattern) == new.get(pattern):
            continue
        instead = [
            (place, actions) for place, actions in new.items() if isinstance(place, str) and may_meet(place, pattern)
        ]
        if pattern not in new:
            yield pattern, below.union(*(actions for _, actions in instead))
        elif pattern in old and not old[pattern]:  # the end of a refusal lets others count that are equally exact
            equal = (actions for place, actions in instead if exactness(place) == exactness(pattern))
            yield pattern, new[pattern].union(*equal)
        else:
            yield pattern, new[pattern]


def _affected(
    own: Standing, before: Standing, after: Standing, repositories: Iterable[Repository]
) -> Iterator[Repository]:
    """The repositories, one by one, where the change may add actions; there may be thousands where it cannot."""
    ids = {
        place
        for was, becomes in ((before.own, after.own), (before.groups, after.groups))
        for name in was.subjects.keys() | becomes.subjects.keys()
        for place in was.of(name).keys() | becomes.of(name).keys()
        if isinstance(place, int) and was.of(name).get(place) != becomes.of(name).get(place)
    }
    for repository in repositories:
        # the giver's default actions apply where the giver has no grant, as in all that is made later
        granted = own.own.find(repository) or own.groups.find(repository) if before.user != after.user else None
        if granted is not None or repository.id in ids:
            yield repository
