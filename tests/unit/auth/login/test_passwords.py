"""The threads that hash passwords, and the permits that processes share."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from threading import get_native_id
from time import monotonic
from typing import Any

import argon2
import pytest
import pytest_twisted
from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.auth.login.passwords import (
    NICE,
    PERMITS,
    HashingThreads,
    Passwords,
    check_password,
    generate_password,
    hold_permit,
)
from pkgrepo.concurrency.pools import Pool
from pkgrepo.errors import Invalid, TooManyAttempts
from tests.support.auth import PASSWORD, InlineThreads
from tests.support.quick_starts import FAST
from tests.support.timeouts import TIMEOUT_S

reactor: Any = _reactor
HOLDER = """
import sys
from pathlib import Path
from pkgrepo.auth.login.passwords import hold_permit
with hold_permit(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def threads():
    return InlineThreads()


@pytest.fixture
def passwords(threads):
    return Passwords(threads, Clock(), hasher=FAST)


async def test_the_right_password_verifies_and_others_do_not(passwords):
    stored = await passwords.hash(PASSWORD)
    assert stored.startswith("$argon2id$")
    assert (await passwords.verify(stored, PASSWORD)).correct
    assert not (await passwords.verify(stored, PASSWORD + "x")).correct
    assert not (await passwords.verify(stored, "")).correct


async def test_hashes_made_with_other_parameters_come_back_renewed(passwords):
    old = argon2.PasswordHasher(time_cost=2, memory_cost=8, parallelism=1).hash(PASSWORD)
    verdict = await passwords.verify(old, PASSWORD)
    assert verdict.correct
    assert verdict.rehashed is not None
    again = await passwords.verify(verdict.rehashed, PASSWORD)
    assert again.correct
    assert again.rehashed is None


async def test_a_wrong_password_renews_nothing(passwords):
    old = argon2.PasswordHasher(time_cost=2, memory_cost=8, parallelism=1).hash(PASSWORD)
    assert (await passwords.verify(old, "wrong")).rehashed is None


async def test_nobody_has_the_empty_hash_and_it_is_verified_all_the_same(passwords, threads):
    await passwords.verify("", "x")
    before = threads.calls
    assert not (await passwords.verify("", "nobody has this password")).correct
    assert threads.calls == before + 1


async def test_a_damaged_hash_is_never_right(passwords):
    assert not (await passwords.verify("$argon2id$broken", PASSWORD)).correct
    assert not (await passwords.verify("plain", "plain")).correct


async def test_no_more_than_the_allowed_number_run_at_once(threads):
    passwords = Passwords(threads, Clock(), hasher=FAST, parallel=2)
    stored = FAST.hash(PASSWORD)
    threads.held = []
    running = [Deferred.fromCoroutine(passwords.verify(stored, PASSWORD)) for _ in range(5)]
    assert threads.calls == 2
    threads.release()
    for each in running:
        assert (await each).correct
    assert threads.calls == 5


async def test_a_full_queue_turns_people_away_at_once(threads):
    passwords = Passwords(threads, Clock(), hasher=FAST, parallel=1, most_waiting=1)
    stored = FAST.hash(PASSWORD)
    threads.held = []
    running = [Deferred.fromCoroutine(passwords.verify(stored, PASSWORD)) for _ in range(2)]
    with pytest.raises(TooManyAttempts):
        await passwords.verify(stored, PASSWORD)
    threads.release()
    for each in running:
        await each
    assert (await passwords.verify(stored, PASSWORD)).correct


class Counted:
    """An attempt that notes how it ended."""

    def __init__(self):
        self.ends = []

    def end(self, *, failed):
        self.ends.append(failed)


async def test_attempts_begin_when_the_turn_comes_and_their_refusal_frees_the_turn(threads):
    passwords = Passwords(threads, Clock(), hasher=FAST, parallel=1)
    stored = FAST.hash(PASSWORD)

    def refuse():
        raise TooManyAttempts(7)

    with pytest.raises(TooManyAttempts):
        await passwords.verify(stored, PASSWORD, begin=refuse)
    assert threads.calls == 0
    assert (await passwords.verify(stored, PASSWORD)).correct


async def test_attempts_end_with_what_they_were(threads):
    passwords = Passwords(threads, Clock(), hasher=FAST, parallel=1)
    stored, counted = FAST.hash(PASSWORD), Counted()
    await passwords.verify(stored, PASSWORD, begin=lambda: counted)
    await passwords.verify(stored, "wrong", begin=lambda: counted)
    await passwords.verify("", PASSWORD, begin=lambda: counted)
    assert counted.ends == [False, True, True]


async def test_a_burst_for_nobody_hashes_nothing_that_is_not_admitted(threads):
    passwords = Passwords(threads, Clock(), hasher=FAST, parallel=2)

    def refuse():
        raise TooManyAttempts(7)

    for _ in range(10):
        with pytest.raises(TooManyAttempts):
            await passwords.verify("", "x", begin=refuse)
    assert threads.calls == 0


def test_hundreds_who_are_refused_in_a_row_cost_no_permit(threads):
    clock = Clock()
    passwords = Passwords(threads, clock, hasher=FAST, parallel=2)
    stored = FAST.hash(PASSWORD)
    blocked = []

    def begin():
        if blocked:
            raise TooManyAttempts(60)
        return Counted()

    threads.held = []
    asked = [Deferred.fromCoroutine(passwords.verify(stored, "wrong", begin=begin)) for _ in range(200)]
    outcomes = []
    for each in asked:
        each.addBoth(outcomes.append)
    blocked.append(True)
    threads.release()
    clock.pump([0] * 20)
    assert len(outcomes) == 200
    right = Deferred.fromCoroutine(passwords.verify(stored, PASSWORD))
    right.addCallback(lambda verdict: outcomes.append(verdict.correct))
    assert outcomes[-1] is True


def test_who_leaves_while_their_password_is_hashed_keeps_the_permit_until_it_is(threads):
    passwords = Passwords(threads, Clock(), hasher=FAST, parallel=1)
    stored, counted = FAST.hash(PASSWORD), Counted()
    threads.held = []
    leaving = Deferred.fromCoroutine(passwords.verify(stored, "wrong", begin=lambda: counted))
    leaving.addErrback(lambda failure: None)
    following = Deferred.fromCoroutine(passwords.verify(stored, PASSWORD))
    leaving.cancel()
    assert (threads.calls, counted.ends) == (1, [])
    threads.release()
    assert counted.ends == [True]
    assert following.called


async def test_leaving_the_queue_frees_the_place(threads):
    passwords = Passwords(threads, Clock(), hasher=FAST, parallel=1)
    stored = FAST.hash(PASSWORD)
    threads.held = []
    first = Deferred.fromCoroutine(passwords.verify(stored, PASSWORD))
    second = Deferred.fromCoroutine(passwords.verify(stored, PASSWORD))
    second.addErrback(lambda failure: None)
    second.cancel()
    threads.release()
    assert (await first).correct
    assert (await passwords.verify(stored, PASSWORD)).correct


@pytest.mark.parametrize(
    "password",
    [
        "short",
        "elevenchars",
        "password1234",
        "12345Password!",
        "qwertyuiop12",
        "qwertyuiopasdfghjkl",
        "aaaaaaaaaaaaaaa",
        "121212121212",
        "123456789012",
        "abcdefghijklmnop",
        "098765432109",
        "Alice-2026-!!",
    ],
)
def test_short_and_common_passwords_are_refused(passwords, password):
    with pytest.raises(Invalid) as refused:
        passwords.check(password, username="alice")
    assert refused.value.pointer == "/password"
    assert password not in str(refused.value)


@pytest.mark.parametrize(
    "password", [PASSWORD, "Tr0ub4dor&3xyz", "ünïcödé sätze", "password manager fan", "x9" * 3 + "abcdef"]
)
def test_other_passwords_are_taken_without_composition_rules(passwords, password):
    passwords.check(password, username="alice")


def test_the_least_length_is_a_setting(threads):
    Passwords(threads, Clock(), min_length=5).check("hm0k!")
    with pytest.raises(Invalid, match="at least 20"):
        Passwords(threads, Clock(), min_length=20).check(PASSWORD)


def test_generated_passwords_are_letters_and_digits_and_pass_the_policy():
    made = {generate_password() for _ in range(500)}
    assert len(made) == 500
    for password in made:
        assert password.isascii()
        assert password.isalnum()
        check_password(password, username="admin", min_length=12)


ROOT = Path(__file__).parents[4]


@pytest_twisted.async_yield_fixture
async def pool() -> Any:
    made = Pool(reactor, "password", PERMITS)
    made.start()
    yield made
    await made.stop()


def priority() -> int:
    return os.getpriority(os.PRIO_PROCESS, get_native_id())


async def test_passwords_are_hashed_at_a_lower_priority_than_requests_are_served(pool: Pool) -> None:
    before = priority()
    assert await HashingThreads(pool, None)(priority) == NICE
    assert priority() == before


async def test_a_sandbox_may_forbid_the_priority(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "setpriority", refuse)
    assert await HashingThreads(pool, None)(lambda: "hashed") == "hashed"


async def test_a_permit_is_returned_also_after_an_error(pool: Pool, tmp_path: Path) -> None:
    threads = HashingThreads(pool, tmp_path / "permits")
    for _ in range(2 * PERMITS):
        with pytest.raises(ZeroDivisionError):
            await threads(lambda: 1 / 0)
    assert await threads(lambda: "hashed") == "hashed"


def test_processes_wait_for_each_others_permits(tmp_path: Path) -> None:
    permits = tmp_path / "permits"
    command = [sys.executable, "-c", HOLDER, str(permits)]
    with ExitStack() as mine:
        for _ in range(PERMITS):
            mine.enter_context(hold_permit(permits))
        other = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        ends_at = monotonic() + TIMEOUT_S
        while not is_waited_for(permits):
            assert not select.select([other.stdout], [], [], 0.01)[0], "it has a permit"
            assert monotonic() < ends_at
    assert other.stdout.readline() == "held\n"
    other.kill()  # with its permit
    other.communicate()
    with ExitStack() as mine:
        for _ in range(PERMITS):
            mine.enter_context(hold_permit(permits))


def is_waited_for(path: Path) -> bool:
    """Whether the kernel has a process wait for a lock on a file."""
    inode = path.stat().st_ino
    lines = Path("/proc/locks").read_text().splitlines()
    return any(f":{inode} " in each for each in lines if "->" in each)


def test_without_locks_there_is_no_waiting(tmp_path: Path) -> None:
    with hold_permit(tmp_path / "absent" / "permits"):
        pass
