"""Logins with a password: who is recognised, what is remembered, and what one verification serves."""

import pytest
from twisted.internet.defer import Deferred
from zope.interface.verify import verifyObject

from pkgrepo.auth.login.authenticator import Authenticator
from pkgrepo.errors import AuthenticationFailed
from pkgrepo.interfaces import IAuthenticator
from pkgrepo.model import ANONYMOUS
from pkgrepo.storage.catalog.people.groups import add_group
from pkgrepo.storage.catalog.people.users import find_user, remove_user, set_password, update_user
from tests.support.auth import HOME, PASSWORD, at, basic, fails
from tests.support.quick_starts import FAST


def test_the_interface_is_kept(scene):
    assert verifyObject(IAuthenticator, scene.authenticator)


async def test_without_a_header_nobody_asks(scene):
    assert await scene.authenticator.authenticate(None, HOME) is ANONYMOUS
    assert scene.authenticator.recall(None, HOME) is ANONYMOUS


async def test_a_password_establishes_its_user_whatever_the_case_of_the_name(scene):
    user = scene.user("Alice", admin=True)
    identity = await scene.authenticator.authenticate(basic("aLICE", PASSWORD), HOME)
    assert (identity.user_id, identity.username, identity.via) == (user.id, "Alice", "password")
    assert identity.admin
    assert identity.limits is None


async def test_wrong_name_wrong_password_and_no_password_all_fail_alike(scene):
    scene.user("alice")
    scene.user("robot", password="")
    scene.user("gone", active=False)
    said = set()
    for header in (basic("alice", "wrong"), basic("bob", PASSWORD), basic("robot", "x"), basic("gone", PASSWORD)):
        with pytest.raises(AuthenticationFailed) as failed:
            await scene.authenticator.authenticate(header, HOME)
        said.add(str(failed.value))
    assert len(said) == 1


async def test_an_unknown_name_costs_a_verification_as_a_known_one_does(scene):
    scene.user("alice")
    await fails(scene, basic("nobody", "x"))
    assert scene.threads.calls == 1
    await fails(scene, basic("alice", "x"))
    assert scene.threads.calls == 2


async def test_a_verified_header_is_recalled_without_another_verification(scene):
    scene.user("alice")
    header = basic("alice", PASSWORD)
    assert scene.authenticator.recall(header) is None
    identity = await scene.authenticator.authenticate(header, HOME)
    assert scene.authenticator.recall(header) is identity
    assert await scene.authenticator.authenticate(header, HOME) is identity
    assert scene.threads.calls == 1
    assert scene.authenticator.recall(basic("alice", "wrong")) is None


async def test_what_is_remembered_is_verified_again_after_a_minute(scene):
    scene.user("alice")
    header = basic("alice", PASSWORD)
    await scene.authenticator.authenticate(header, HOME)
    scene.clock.advance(59.9)
    assert scene.authenticator.recall(header) is not None
    scene.clock.advance(0.1)
    assert scene.authenticator.recall(header) is None
    await scene.authenticator.authenticate(header, HOME)
    assert scene.threads.calls == 2


@pytest.mark.parametrize("change", ["deactivate", "password", "remove"])
async def test_a_change_of_the_user_is_felt_at_once(scene, change):
    user = scene.user("alice")
    header = basic("alice", PASSWORD)
    await scene.authenticator.authenticate(header, HOME)
    match change:
        case "deactivate":
            scene.catalog.do(update_user, user.id, now_ms=1, active=False)
        case "password":
            scene.catalog.do(set_password, user.id, FAST.hash("another secret"), now_ms=1)
        case "remove":
            scene.catalog.do(remove_user, user.id)
    assert scene.authenticator.recall(header) is None
    await fails(scene, header)


async def test_commits_that_change_no_identity_forget_nothing(scene):
    scene.user("alice")
    header = basic("alice", PASSWORD)
    await scene.authenticator.authenticate(header, HOME)
    scene.catalog.do(lambda tx: None)
    assert scene.authenticator.recall(header) is not None
    scene.catalog.do(add_group, name="any", now_ms=1)
    assert scene.authenticator.recall(header) is None


async def test_a_change_during_verification_keeps_the_outcome_from_being_remembered(scene):
    user = scene.user("alice")
    header = basic("alice", PASSWORD)
    scene.threads.held = []
    running = Deferred.fromCoroutine(scene.authenticator.authenticate(header, HOME))
    scene.catalog.do(update_user, user.id, now_ms=1, active=False)
    scene.authenticator.recall(b"")  # another request notices the change first
    scene.threads.release()
    await running
    assert scene.authenticator.recall(header) is None
    await fails(scene, header)


async def test_many_connections_with_one_header_share_one_verification(scene):
    scene.user("alice")
    header = basic("alice", PASSWORD)
    scene.threads.held = []
    running = [Deferred.fromCoroutine(scene.authenticator.authenticate(header, HOME)) for _ in range(20)]
    scene.threads.release()
    names = {(await each).username for each in running}
    assert names == {"alice"}
    assert scene.threads.calls == 1


async def test_many_connections_with_one_wrong_header_are_one_failure(scene):
    scene.user("alice")
    scene.threads.held = []
    running = [
        Deferred.fromCoroutine(scene.authenticator.authenticate(basic("alice", "wrong"), HOME)) for _ in range(20)
    ]
    scene.threads.release()
    for each in running:
        with pytest.raises(AuthenticationFailed):
            await each
    assert (await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)).username == "alice"


async def test_the_first_of_many_may_leave_without_taking_the_others_along(scene):
    scene.user("alice")
    header = basic("alice", PASSWORD)
    scene.threads.held = []
    first = Deferred.fromCoroutine(scene.authenticator.authenticate(header, HOME))
    first.addErrback(lambda failure: None)
    second = Deferred.fromCoroutine(scene.authenticator.authenticate(header, HOME))
    first.cancel()
    scene.threads.release()
    assert (await second).username == "alice"
    assert scene.threads.calls == 1


async def test_a_login_is_noted_at_most_once_an_hour(scene):
    user = scene.user("alice")
    await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)
    scene.clock.advance(600)
    await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)
    assert scene.catalog.peek(find_user, user.id).last_login_at == at(0)
    scene.clock.advance(3600)
    await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)
    assert scene.catalog.peek(find_user, user.id).last_login_at == at(4200)


async def test_an_old_hash_is_renewed_at_login(scene):
    import argon2

    from pkgrepo.storage.catalog.people.users import password_hash

    user = scene.user("alice")
    old = argon2.PasswordHasher(time_cost=2, memory_cost=8, parallelism=1).hash(PASSWORD)
    scene.catalog.do(set_password, user.id, old, now_ms=1)
    header = basic("alice", PASSWORD)
    await scene.authenticator.authenticate(header, HOME)
    renewed = scene.catalog.peek(password_hash, user.id)
    assert renewed != old
    assert FAST.verify(renewed, PASSWORD)
    assert scene.authenticator.recall(header) is not None


async def test_a_full_disk_keeps_nobody_from_logging_in(scene, monkeypatch):
    from pkgrepo.errors import StorageFull

    async def full(*args, **kwargs):
        raise StorageFull("catalog")

    scene.user("alice")
    monkeypatch.setattr(scene.catalog, "write", full)
    assert (await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)).username == "alice"


async def test_memory_of_headers_is_bounded_and_drops_the_oldest(scene):
    authenticator = Authenticator(scene.catalog, scene.portal, scene.uses, clock=scene.clock, most_cached=3)
    user = scene.user("alice")
    headers = [b"Bearer " + scene.token(user)[0].encode() for _ in range(4)]
    for header in headers:
        await authenticator.authenticate(header, HOME)
    assert [authenticator.recall(header) is None for header in headers] == [True, False, False, False]


async def test_a_form_logs_in_as_a_header_does(scene):
    user = scene.user("alice")
    text, token = scene.token(user)
    assert (await scene.authenticator.login("alice", PASSWORD, HOME)).via == "password"
    assert (await scene.authenticator.login("x", text, HOME)).token_id == token.id
    with pytest.raises(AuthenticationFailed):
        await scene.authenticator.login("alice", "wrong", HOME)
    with pytest.raises(AuthenticationFailed):
        await scene.authenticator.login("", "", HOME)
