"""Who may give which rights: a table of what the giver has, what the receiver had, and what the receiver is to have."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest

from pkgrepo.auth.login.identities import identity_of
from pkgrepo.auth.permissions.delegation import check_delegation
from pkgrepo.auth.permissions.rules import Standing
from pkgrepo.errors import Forbidden
from pkgrepo.model import Action, Identity, ProjectRole, RepositoryScope, SubjectKind, TokenLimits, User, Visibility
from pkgrepo.storage.catalog.people.grants import set_permission
from pkgrepo.storage.catalog.people.projects import add_project, set_project_member
from pkgrepo.storage.catalog.people.users import find_user
from tests.support.auth import AuthServices
from tests.support.repositories import now

R, W, D, E, A = Action.READ, Action.WRITE, Action.DELETE, Action.EDIT, Action.ADMIN
ALL = frozenset(Action)


class Case:
    """A private and a public repository, a giver and a receiver with grants in the private one."""

    def __init__(self, *, giver: Any = (), had: Any = None, defaults: Any = (), **fields: Any) -> None:
        self.scene = AuthServices()
        self.private = self.scene.repository(1)
        self.public = self.scene.repository(2, visibility=Visibility.PUBLIC)
        self.giver = self.scene.user("giver", user_manager=True, **fields)
        self.receiver = self.scene.user("receiver", default_actions=frozenset(defaults))
        for user, actions in ((self.giver, giver), (self.receiver, had)):
            if actions is not None:
                self.scene.catalog.do(set_permission, 1, SubjectKind.USER, user.id, actions)

    def allowed(self, *, user: User | None = None, limits: TokenLimits | None = None, **changes: Any) -> bool:
        identity = identity_of(self.scene.catalog.peek(find_user, self.giver.id), via="password")
        identity = Identity(user_id=identity.user_id, username="giver", via="token", limits=limits)
        receiver = self.receiver if user is None else user
        try:
            now(self.scene.authorizer.check_delegation(identity, receiver, [self.private, self.public], **changes))
        except Forbidden:
            return False
        return True


@pytest.mark.parametrize(
    ("giver", "had", "defaults", "given", "allowed"),
    [
        ((), None, (), {1: {R}}, False),
        ((R,), None, (), {1: {R}}, True),
        ((R,), None, (), {1: {R, A}}, False),
        ((R, W), (R,), (), {1: {R, W}}, True),
        ((), (R, A), (), {1: {R, A}}, True),  # as it was
        ((), (R, A), (), {1: {R}}, True),  # less
        ((), (R, A), (), {}, True),
        ((), (), (R,), {}, False),  # the end of a refusal lets the default actions count
        ((R,), (), (R,), {}, True),
        ((), None, (), {2: {R}}, True),  # what everybody may
        ((R,), None, (), {2: {W}}, False),
        (ALL, None, (), {1: ALL}, True),
    ],
)
def test_a_grant_adds_what_its_giver_holds(
    giver: Any, had: Any, defaults: Any, given: dict[int, set[Action]], allowed: bool
) -> None:
    case = Case(giver=giver, had=had, defaults=defaults)
    assert case.allowed(grants={key: frozenset(actions) for key, actions in given.items()}) is allowed


@pytest.mark.parametrize(
    ("fields", "giver", "given", "allowed"),
    [
        ({}, ALL, {R}, False),
        ({"default_actions": frozenset({R})}, None, {R}, True),
        ({"default_actions": frozenset({R})}, None, {R, W}, False),
        ({"default_actions": frozenset({R})}, (), {R}, False),  # but not in the one that refuses the giver
        ({"system_manager": True}, None, {R, W, D, E}, True),
        ({"system_manager": True}, None, {A}, False),
        ({"admin": True}, None, ALL, True),
    ],
)
@pytest.mark.parametrize("new", [False, True])
def test_default_actions_are_given_by_whoever_holds_them_everywhere(
    fields: dict[str, Any], giver: Any, given: set[Action], allowed: bool, new: bool
) -> None:
    case = Case(giver=giver, **fields)
    identity = Identity(user_id=case.giver.id, username="giver", via="password")
    receiver = None if new else case.receiver
    every = [case.private, case.public]
    try:
        now(case.scene.authorizer.check_delegation(identity, receiver, every, default_actions=frozenset(given)))
    except Forbidden:
        assert not allowed
    else:
        assert allowed


@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        (None, True),
        (TokenLimits(repositories=(RepositoryScope("main/*", frozenset({R})),)), True),
        (TokenLimits(repositories=(RepositoryScope("main/*", frozenset({R}), ("*",)),)), True),
        (TokenLimits(repositories=(RepositoryScope("main/*", frozenset({R}), ("a*",)),)), False),
        (TokenLimits(repositories=(RepositoryScope("main/r2", frozenset({R})),)), False),
        (TokenLimits(scopes=frozenset({"users"}), packages=("x",)), False),
    ],
)
def test_a_token_gives_what_it_may_do_itself(limits: TokenLimits | None, allowed: bool) -> None:
    assert Case(admin=True).allowed(limits=limits, grants={1: frozenset({R})}) is allowed


def test_a_role_in_a_project_is_no_right_in_the_repository() -> None:
    case = Case(giver=None)
    project = case.scene.catalog.do(add_project, key="acme", now_ms=1)
    case.scene.catalog.do(set_project_member, project.id, SubjectKind.USER, case.giver.id, ProjectRole.OWNER)
    assert not case.allowed(grants={1: frozenset({W})})


@pytest.mark.parametrize(
    ("own", "before", "after", "allowed"),
    [
        (None, ProjectRole.MAINTAINER, ProjectRole.MAINTAINER, True),  # as it was
        (None, ProjectRole.MAINTAINER, ProjectRole.DEVELOPER, True),  # less
        (None, None, ProjectRole.REPORTER, False),
        (ProjectRole.DEVELOPER, None, ProjectRole.DEVELOPER, True),
        (ProjectRole.DEVELOPER, ProjectRole.DEVELOPER, ProjectRole.MAINTAINER, False),
    ],
)
@pytest.mark.parametrize("limited", [False, True])
def test_a_role_is_given_by_whoever_holds_it_and_not_by_a_token_for_less(
    own: ProjectRole | None, before: ProjectRole | None, after: ProjectRole, allowed: bool, limited: bool
) -> None:
    case = Case()
    limits = TokenLimits(packages=("x",)) if limited else None
    giver = Identity(user_id=case.giver.id, username="giver", via="token", limits=limits)
    more = after.rank > (-1 if before is None else before.rank)

    def standing(user: User, role: ProjectRole | None) -> Standing:
        return Standing(user, roles={} if role is None else {1: role})

    found = standing(case.giver, own), standing(case.receiver, before), standing(case.receiver, after)
    with nullcontext() if allowed and not (limited and more) else pytest.raises(Forbidden, match="roles in projects"):
        check_delegation(giver, *found, [])
