from datetime import UTC, datetime

import pytest
import pytest_twisted
from attrs import evolve
from twisted.internet.defer import CancelledError, Deferred
from zope.interface.verify import verifyObject

from pkgrepo.auth.login import authenticator as module
from pkgrepo.auth.login.identities import identity_of
from pkgrepo.auth.tokens.bearer import Access
from pkgrepo.errors import AuthenticationFailed, TooManyAttempts
from pkgrepo.interfaces import IAuthenticator
from pkgrepo.model import ANONYMOUS, TokenLimits
from pkgrepo.storage.catalog.people.grants import add_group
from pkgrepo.storage.catalog.people.tokens import get_token, revoke_token, update_token
from pkgrepo.storage.catalog.people.users import find_user, remove_user, set_password, update_user
from tests.support.auth import FAST, PASSWORD, START, AuthServices, basic

HOME = "192.0.2.1"


@pytest.fixture
def scene():
    return AuthServices()


def at(seconds):
    return datetime.fromtimestamp(START + seconds, UTC)


async def fails(scene, header, address=HOME):
    with pytest.raises(AuthenticationFailed):
        await scene.authenticator.authenticate(header, address)


def test_the_interface_is_kept(scene):
    assert verifyObject(IAuthenticator, scene.authenticator)


@pytest_twisted.ensureDeferred
async def test_without_a_header_nobody_asks(scene):
    assert await scene.authenticator.authenticate(None, HOME) is ANONYMOUS
    assert scene.authenticator.recall(None, HOME) is ANONYMOUS


@pytest_twisted.ensureDeferred
async def test_a_password_establishes_its_user_whatever_the_case_of_the_name(scene):
    user = scene.user("Alice", admin=True)
    identity = await scene.authenticator.authenticate(basic("aLICE", PASSWORD), HOME)
    assert (identity.user_id, identity.username, identity.via) == (user.id, "Alice", "password")
    assert identity.admin
    assert identity.limits is None


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
async def test_an_unknown_name_costs_a_verification_as_a_known_one_does(scene):
    scene.user("alice")
    await fails(scene, basic("nobody", "x"))
    assert scene.threads.calls == 1
    await fails(scene, basic("alice", "x"))
    assert scene.threads.calls == 2


@pytest_twisted.ensureDeferred
async def test_a_verified_header_is_recalled_without_another_verification(scene):
    scene.user("alice")
    header = basic("alice", PASSWORD)
    assert scene.authenticator.recall(header) is None
    identity = await scene.authenticator.authenticate(header, HOME)
    assert scene.authenticator.recall(header) is identity
    assert await scene.authenticator.authenticate(header, HOME) is identity
    assert scene.threads.calls == 1
    assert scene.authenticator.recall(basic("alice", "wrong")) is None


@pytest_twisted.ensureDeferred
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
@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
async def test_commits_that_change_no_identity_forget_nothing(scene):
    scene.user("alice")
    header = basic("alice", PASSWORD)
    await scene.authenticator.authenticate(header, HOME)
    scene.catalog.do(lambda tx: None)
    assert scene.authenticator.recall(header) is not None
    scene.catalog.do(add_group, name="any", now_ms=1)
    assert scene.authenticator.recall(header) is None


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
async def test_many_connections_with_one_header_share_one_verification(scene):
    scene.user("alice")
    header = basic("alice", PASSWORD)
    scene.threads.held = []
    running = [Deferred.fromCoroutine(scene.authenticator.authenticate(header, HOME)) for _ in range(20)]
    scene.threads.release()
    names = {(await each).username for each in running}
    assert names == {"alice"}
    assert scene.threads.calls == 1


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
async def test_guesses_are_throttled_and_tokens_are_not(scene):
    user = scene.user("alice")
    text, _ = scene.token(user)
    for guess in range(5):
        await fails(scene, basic("alice", f"guess {guess}"))
    with pytest.raises(TooManyAttempts):
        await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)
    assert (await scene.authenticator.authenticate(basic("alice", text), HOME)).via == "token"
    scene.clock.advance(60)
    assert (await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)).via == "password"


@pytest_twisted.ensureDeferred
async def test_parallel_guesses_get_no_further_than_guesses_in_a_row(scene):
    scene.user("alice")
    scene.threads.held = []
    running = [
        Deferred.fromCoroutine(scene.authenticator.authenticate(basic("alice", f"guess {count}"), HOME))
        for count in range(50)
    ]
    scene.threads.release()
    outcomes = []
    for each in running:
        with pytest.raises((AuthenticationFailed, TooManyAttempts)) as failed:
            await each
        outcomes.append(failed.type)
    assert scene.threads.calls == 5  # those under way count, so none begins beside the fifth
    assert outcomes.count(AuthenticationFailed) == scene.threads.calls


@pytest_twisted.ensureDeferred
async def test_a_burst_of_guesses_keeps_nobody_else_from_logging_in(scene):
    scene.user("alice")
    scene.threads.held = []
    guesses = [
        Deferred.fromCoroutine(scene.authenticator.authenticate(basic(f"nobody{count}", "guess"), HOME))
        for count in range(250)
    ]
    for each in guesses[::2]:
        each.addErrback(lambda failure: failure.trap(AuthenticationFailed, TooManyAttempts, CancelledError))
    for each in guesses[10::4]:
        each.cancel()  # clients that leave
    right = Deferred.fromCoroutine(scene.authenticator.authenticate(basic("alice", PASSWORD), "198.51.100.1"))
    scene.threads.release()
    assert (await right).username == "alice"
    assert scene.threads.calls <= 5 + 1
    for each in guesses[1::2]:
        with pytest.raises((AuthenticationFailed, TooManyAttempts)):
            await each
    again = await scene.authenticator.authenticate(basic("ALICE", PASSWORD), "198.51.100.2")
    assert again.username == "alice"


@pytest_twisted.ensureDeferred
async def test_many_networks_of_strangers_delay_an_owner_by_one_guess_at_most(scene):
    scene.user("alice")
    await scene.authenticator.login("alice", PASSWORD, "192.0.2.7")
    scene.threads.held = []
    guesses = [
        Deferred.fromCoroutine(
            scene.authenticator.login(f"nobody{count}", "guess", f"2001:db8:{count % 9}:{count:x}::1")
        )
        for count in range(300)
    ]
    for each in guesses:
        each.addErrback(lambda failure: failure.trap(AuthenticationFailed, TooManyAttempts))
    owner = Deferred.fromCoroutine(scene.authenticator.login("alice", PASSWORD, "192.0.2.7"))
    newcomer = Deferred.fromCoroutine(scene.authenticator.login("alice", PASSWORD, "198.51.100.7"))
    calls = []
    for each in (owner, newcomer):
        each.addCallback(lambda identity: calls.append(scene.threads.calls) or identity)
    before = scene.threads.calls
    while not newcomer.called:
        held, scene.threads.held = scene.threads.held, []
        for gate in held:
            gate.callback(None)
    assert owner.called
    assert [count - before for count in calls] <= [4, 6]
    scene.threads.release()


@pytest_twisted.ensureDeferred
async def test_a_login_that_nobody_waits_for_any_more_is_not_hashed(scene):
    scene.threads.held = []
    busy = [Deferred.fromCoroutine(scene.authenticator.login(f"n{count}", "x", f"192.0.2.{count}")) for count in (1, 2)]
    left = [Deferred.fromCoroutine(scene.authenticator.login("n", "x", HOME)) for _ in range(2)]
    for each in left:
        each.addErrback(lambda failure: failure.trap(CancelledError))
        each.cancel()
    scene.threads.release()
    for each in busy:
        with pytest.raises(AuthenticationFailed):
            await each
    assert scene.threads.calls == 2


@pytest_twisted.ensureDeferred
async def test_stale_tokens_lock_nobody_out(scene):
    user = scene.user("alice")
    text, token = scene.token(user)
    scene.catalog.do(revoke_token, token.id, now_ms=1)
    for _ in range(20):
        await fails(scene, b"Bearer " + text.encode())
    assert (await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)).username == "alice"


@pytest.mark.parametrize("name", ["alice", "ALICE", "", "token", "__token__", "whoever"])
@pytest_twisted.ensureDeferred
async def test_a_token_is_its_owner_under_any_name_that_is_nobody_elses(scene, name):
    user = scene.user("alice")
    limits = TokenLimits(packages=("x",))
    text, token = scene.token(user, limits)
    identity = await scene.authenticator.authenticate(basic(name, text), HOME)
    assert (identity.user_id, identity.token_id, identity.via, identity.limits) == (user.id, token.id, "token", limits)


@pytest_twisted.ensureDeferred
async def test_a_token_under_another_users_name_fails(scene):
    scene.user("bob")
    text, _ = scene.token(scene.user("alice"))
    await fails(scene, basic("bob", text))


@pytest_twisted.ensureDeferred
async def test_a_user_who_is_called_token_changes_nothing_for_tokens(scene):
    scene.user("token")
    text, _ = scene.token(scene.user("alice"))
    assert (await scene.authenticator.authenticate(basic("token", text), HOME)).username == "alice"


@pytest.mark.parametrize("end", ["revoke", "expire", "deactivate", "remove"])
@pytest_twisted.ensureDeferred
async def test_a_token_ends_at_once(scene, end):
    user = scene.user("alice")
    text, token = scene.token(user, TokenLimits(expires_at=at(30)))
    header = b"Bearer " + text.encode()
    await scene.authenticator.authenticate(header, HOME)
    match end:
        case "revoke":
            scene.catalog.do(revoke_token, token.id, now_ms=1)
        case "expire":
            scene.clock.advance(30)
        case "deactivate":
            scene.catalog.do(update_user, user.id, now_ms=1, active=False)
        case "remove":
            scene.catalog.do(remove_user, user.id)
    assert scene.authenticator.recall(header) is None
    await fails(scene, header)


@pytest_twisted.ensureDeferred
async def test_a_well_formed_token_that_was_never_issued_fails(scene):
    from pkgrepo.auth.tokens.text import make_token
    from pkgrepo.model import TokenKind

    await fails(scene, make_token(TokenKind.PERSONAL).encode())


@pytest_twisted.ensureDeferred
async def test_a_token_bound_to_a_network_works_from_there_only_recalled_or_not(scene):
    text, _ = scene.token(scene.user("alice"), TokenLimits(cidrs=("192.0.2.0/24",)))
    header = b"Bearer " + text.encode()
    await fails(scene, header, "198.51.100.1")
    assert (await scene.authenticator.authenticate(header, "192.0.2.9")).username == "alice"
    assert scene.authenticator.recall(header, "192.0.2.9") is not None
    assert scene.authenticator.recall(header, "198.51.100.1") is None
    assert scene.authenticator.recall(header) is None
    await fails(scene, header, "198.51.100.1")


@pytest_twisted.ensureDeferred
async def test_uses_are_counted_recalled_or_not_and_written_together(scene):
    text, token = scene.token(scene.user("alice"))
    header = b"Bearer " + text.encode()
    await scene.authenticator.authenticate(header, HOME, "pip/26")
    scene.clock.advance(5)
    scene.authenticator.recall(header)
    scene.authenticator.recall(header)
    await scene.authenticator.authenticate(header, HOME, "pip/26", counted=False)
    assert scene.catalog.peek(get_token, token.id).uses == 0
    await scene.uses.flush()
    found = scene.catalog.peek(get_token, token.id)
    assert (found.uses, found.last_used_ip, found.last_used_client) == (3, HOME, "pip/26")
    assert found.last_used_at == at(5)
    assert scene.authenticator.recall(header) is not None  # writing them down forgot nothing


@pytest_twisted.ensureDeferred
async def test_a_login_is_noted_at_most_once_an_hour(scene):
    user = scene.user("alice")
    await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)
    scene.clock.advance(600)
    await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)
    assert scene.catalog.peek(find_user, user.id).last_login_at == at(0)
    scene.clock.advance(3600)
    await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)
    assert scene.catalog.peek(find_user, user.id).last_login_at == at(4200)


@pytest_twisted.ensureDeferred
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


@pytest_twisted.ensureDeferred
async def test_a_full_disk_keeps_nobody_from_logging_in(scene, monkeypatch):
    from pkgrepo.errors import StorageFull

    async def full(*args, **kwargs):
        raise StorageFull("catalog")

    scene.user("alice")
    monkeypatch.setattr(scene.catalog, "write", full)
    assert (await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)).username == "alice"


@pytest_twisted.ensureDeferred
async def test_memory_of_headers_is_bounded_and_drops_the_oldest(scene, monkeypatch):
    monkeypatch.setattr(module, "MOST_CACHED", 3)
    user = scene.user("alice")
    headers = [b"Bearer " + scene.token(user)[0].encode() for _ in range(4)]
    for header in headers:
        await scene.authenticator.authenticate(header, HOME)
    assert [scene.authenticator.recall(header) is None for header in headers] == [True, False, False, False]


@pytest_twisted.ensureDeferred
async def test_a_form_logs_in_as_a_header_does(scene):
    user = scene.user("alice")
    text, token = scene.token(user)
    assert (await scene.authenticator.login("alice", PASSWORD, HOME)).via == "password"
    assert (await scene.authenticator.login("x", text, HOME)).token_id == token.id
    with pytest.raises(AuthenticationFailed):
        await scene.authenticator.login("alice", "wrong", HOME)
    with pytest.raises(AuthenticationFailed):
        await scene.authenticator.login("", "", HOME)


@pytest_twisted.ensureDeferred
async def test_a_bearer_token_stands_for_its_user_until_something_changes(scene):
    user = scene.user("alice")
    identity = await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)
    issued = await scene.bearer.issue(identity, [Access("main/r1/x", "main/r1", "x", ("pull",))])
    header = b"Bearer " + issued.text.encode()
    found = await scene.authenticator.authenticate(header, HOME)
    assert (found.user_id, found.via, found.token_id) == (user.id, "bearer", None)
    assert scene.authenticator.recall(header) is found
    scene.catalog.do(set_password, user.id, "", now_ms=1)
    assert scene.authenticator.recall(header) is None
    await fails(scene, header)


@pytest.mark.parametrize("change", ["revoke", "limits", "flags", "deactivate", "time"])
@pytest_twisted.ensureDeferred
async def test_a_bearer_token_issued_for_an_access_token_ends_with_it(scene, change):
    user = scene.user("alice", user_manager=True)
    text, token = scene.token(user)
    identity = await scene.authenticator.authenticate(b"Bearer " + text.encode(), HOME)
    header = b"Bearer " + (await scene.bearer.issue(identity, [])).text.encode()
    assert (await scene.authenticator.authenticate(header, HOME)).token_id == token.id
    match change:
        case "revoke":
            scene.catalog.do(revoke_token, token.id, now_ms=1)
        case "limits":
            scene.catalog.do(update_token, token.id, limits=TokenLimits(packages=("y",)))
        case "flags":
            scene.catalog.do(update_user, user.id, now_ms=1, user_manager=False)
        case "deactivate":
            scene.catalog.do(update_user, user.id, now_ms=1, active=False)
        case "time":
            scene.clock.advance(961)
    await fails(scene, header)


@pytest_twisted.ensureDeferred
async def test_a_bearer_token_keeps_the_networks_of_its_access_token(scene):
    text, _ = scene.token(scene.user("alice"), TokenLimits(cidrs=("192.0.2.0/24",)))
    identity = await scene.authenticator.authenticate(b"Bearer " + text.encode(), HOME)
    header = b"Bearer " + (await scene.bearer.issue(identity, [])).text.encode()
    await fails(scene, header, "198.51.100.1")
    assert (await scene.authenticator.authenticate(header, HOME)).via == "bearer"


@pytest_twisted.ensureDeferred
async def test_a_bearer_token_with_somebody_elses_access_token_fails(scene):
    _, token = scene.token(scene.user("bob"))
    mixed = evolve(identity_of(scene.user("alice"), via="token"), token_id=token.id)
    await fails(scene, b"Bearer " + (await scene.bearer.issue(mixed, [])).text.encode())


@pytest_twisted.ensureDeferred
async def test_an_anonymous_bearer_token_is_nobody_narrowed(scene):
    issued = await scene.bearer.issue(ANONYMOUS, [Access("main/r1/x", "main/r1", "x", ("pull",))])
    found = await scene.authenticator.authenticate(b"Bearer " + issued.text.encode(), HOME)
    assert found.anonymous
    assert found.via == "bearer"
    assert found.limits.repositories
