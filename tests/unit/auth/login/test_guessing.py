"""Guesses of passwords are slowed down, and delay nobody else."""

import pytest
from twisted.internet.defer import CancelledError, Deferred

from pkgrepo.errors import AuthenticationFailed, TooManyAttempts
from pkgrepo.storage.catalog.people.tokens import revoke_token
from tests.support.auth import HOME, PASSWORD, basic, fails


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


async def test_stale_tokens_lock_nobody_out(scene):
    user = scene.user("alice")
    text, token = scene.token(user)
    scene.catalog.do(revoke_token, token.id, now_ms=1)
    for _ in range(20):
        await fails(scene, b"Bearer " + text.encode())
    assert (await scene.authenticator.authenticate(basic("alice", PASSWORD), HOME)).username == "alice"
