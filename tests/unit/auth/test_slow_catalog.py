"""Identities and permissions over a catalog that does not answer at once."""

from __future__ import annotations

from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.auth.login.authenticator import Authenticator
from pkgrepo.auth.login.checkers import PasswordChecker, SignedChecker, TokenChecker, identity_of, make_portal
from pkgrepo.auth.login.throttle import NewUnlocks, Throttle
from pkgrepo.auth.permissions.authorizer import Authorizer
from pkgrepo.errors import TooManyAttempts
from pkgrepo.model import ANONYMOUS, Action, ProjectRole, SubjectKind, Visibility
from pkgrepo.storage.catalog.people.grants import set_permission
from pkgrepo.storage.catalog.people.logins import add_unlock
from pkgrepo.storage.catalog.people.projects import add_project, bind_names, set_project_member
from pkgrepo.storage.catalog.people.users import identity_snapshot, update_user
from tests.support.auth import PASSWORD, AuthServices, basic, make_factors
from tests.support.delayed_catalog import DelayedCatalog

READ, WRITE = Action.READ, Action.WRITE
HOME = "192.0.2.1"


class Slow(AuthServices):
    """The scene with what looks things up standing over a catalog whose answers come when the clock moves."""

    def __init__(self) -> None:
        super().__init__()
        self.timer = Clock()
        self.delayed = catalog = DelayedCatalog(self.catalog, self.timer, 0.2)
        self.throttle = Throttle(clock=self.clock, unlocks=NewUnlocks(catalog, 0))
        serial = identity_snapshot(catalog)
        self.authorizer = Authorizer(catalog, clock=self.clock, serial=serial)
        checkers = [
            PasswordChecker(
                catalog, self.passwords, self.throttle, make_factors(catalog, self.throttle), clock=self.clock
            ),
            TokenChecker(catalog, clock=self.clock),
            SignedChecker(catalog, self.bearer, clock=self.clock),
        ]
        portal = make_portal(catalog, checkers)
        self.authenticator = Authenticator(catalog, portal, self.uses, clock=self.clock, serial=serial)

    def answer(self, asked: Any) -> Any:
        """The result of a coroutine, once every answer that it waits for has come."""
        outcome: list[Any] = []
        Deferred.fromCoroutine(asked).addBoth(outcome.append)
        for _ in range(50):
            if outcome:
                return outcome[0]
            self.timer.advance(0.1)
        raise AssertionError("it waits for something else")


@pytest.fixture
def scene() -> Slow:
    return Slow()


def test_leave_is_unknown_after_a_commit_and_known_once_somebody_has_waited(scene: Slow) -> None:
    alice = identity_of(scene.user("alice"), via="password")
    repository = scene.repository(visibility=Visibility.PUBLIC)
    assert scene.authorizer.may_now(alice, READ, repository) is None
    assert scene.authorizer.knows_now(alice, repository) is None
    assert scene.answer(scene.authorizer.may(alice, READ, repository)) is True
    assert scene.authorizer.may_now(alice, READ, repository) is True
    assert scene.authorizer.may_now(ANONYMOUS, WRITE, repository) is False  # nobody has to be looked up for this
    scene.catalog.do(set_permission, repository.id, SubjectKind.USER, alice.user_id, [])
    assert scene.authorizer.may_now(alice, READ, repository) is None
    assert scene.answer(scene.authorizer.may(alice, READ, repository)) is False


def test_many_questions_cost_one_query(scene: Slow) -> None:
    alice = identity_of(scene.user("alice"), via="password")
    repository = scene.repository()
    project = scene.catalog.do(add_project, key="acme", now_ms=1)
    scene.catalog.do(bind_names, repository.id, "acme-*", project.id)
    scene.catalog.do(set_project_member, project.id, SubjectKind.USER, alice.user_id, ProjectRole.DEVELOPER)
    names = [f"{prefix}-{number}" for number in range(50) for prefix in ("acme", "zinc")]
    scene.answer(scene.authorizer.may(ANONYMOUS, READ, repository))
    before = len(scene.delayed.operations)
    allowed = scene.answer(scene.authorizer.may_each(alice, [(WRITE, repository, name) for name in names]))
    assert allowed == [name.startswith("acme") for name in names]
    assert len(scene.delayed.operations) == before + 1


def test_a_decision_from_before_a_change_is_not_remembered_after_it(scene: Slow) -> None:
    alice, bob = (identity_of(scene.user(name), via="password") for name in ("alice", "bob"))
    repository = scene.repository()
    scene.catalog.do(set_permission, repository.id, SubjectKind.USER, alice.user_id, [READ])
    scene.answer(scene.authorizer.may(ANONYMOUS, READ, repository))
    scene.delayed.delay_s = 10
    asked = Deferred.fromCoroutine(scene.authorizer.may(alice, READ, repository))
    scene.timer.advance(5)  # it is read, and on its way
    scene.catalog.do(set_permission, repository.id, SubjectKind.USER, alice.user_id, [])
    scene.delayed.delay_s = 0.2
    assert scene.answer(scene.authorizer.may(bob, READ, repository)) is False  # who notices the change
    scene.timer.advance(5)
    assert asked.result is True  # as it was when it was asked
    assert scene.authorizer.may_now(alice, READ, repository) is None
    assert scene.answer(scene.authorizer.may(alice, READ, repository)) is False


def test_credentials_are_recalled_only_of_the_current_generation(scene: Slow) -> None:
    user, header = scene.user("alice"), basic("alice", PASSWORD)
    assert scene.authenticator.recall(header) is None
    identity = scene.answer(scene.authenticator.authenticate(header, HOME))
    assert scene.answer(scene.authenticator.authenticate(header, HOME)) is identity
    assert scene.authenticator.recall(header) is identity
    scene.catalog.do(lambda tx: None)
    assert scene.authenticator.recall(header) is None
    assert scene.answer(scene.authenticator.authenticate(header, HOME)) is identity
    assert scene.authenticator.recall(header) is identity
    scene.catalog.do(update_user, user.id, now_ms=1, active=False)
    assert scene.authenticator.recall(header) is None
    assert scene.answer(scene.authenticator.authenticate(header, HOME)).type.__name__ == "AuthenticationFailed"


def test_what_was_verified_while_the_user_changed_is_not_recalled(scene: Slow) -> None:
    user, header = scene.user("alice"), basic("alice", PASSWORD)
    scene.threads.held = []
    verifying = Deferred.fromCoroutine(scene.authenticator.authenticate(header, HOME))
    while not scene.threads.held:
        scene.timer.advance(0.1)
    scene.catalog.do(update_user, user.id, now_ms=1, active=False)
    scene.threads.release()
    while not verifying.called:
        scene.timer.advance(0.1)
    assert verifying.result.username == "alice"  # it was so when it was asked
    assert scene.authenticator.recall(header) is None
    assert scene.answer(scene.authenticator.authenticate(header, HOME)).type.__name__ == "AuthenticationFailed"


def test_a_block_that_was_lifted_elsewhere_is_learnt_before_anybody_is_refused(scene: Slow) -> None:
    for _ in range(5):
        scene.throttle.begin("alice", HOME).end(failed=True)
    assert scene.answer(scene.throttle.admit("alice", HOME)).check(TooManyAttempts)
    scene.catalog.do(add_unlock, username="alice", address=HOME, now_ms=1)
    with pytest.raises(TooManyAttempts):  # what is asked without waiting cannot know
        scene.throttle.begin("alice", HOME)
    assert scene.answer(scene.throttle.admit("alice", HOME)) is None
    scene.throttle.begin("alice", HOME).end(failed=False)
