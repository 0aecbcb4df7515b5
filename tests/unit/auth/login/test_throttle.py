import pytest

from pkgrepo.auth.login.throttle import Throttle
from pkgrepo.errors import TooManyAttempts
from pkgrepo.storage.catalog.people.logins import LoginUnlock
from tests.support.auth import SettableTime
from tests.support.repositories import now


class Unlocks:
    """What was unlocked is told once, to whoever asks first."""

    def __init__(self, new):
        self._new = new

    def now(self):
        return [self._new.pop()] if self._new else []

    async def read(self):
        return self.now()


@pytest.fixture
def clock():
    return SettableTime()


@pytest.fixture
def throttle(clock):
    return Throttle(limit=5, clock=clock)


def fail(throttle, account, address, times):
    for _ in range(times):
        now(throttle.admit(account, address))
        throttle.begin(account, address).end(failed=True)


def wait(throttle, account, address):
    with pytest.raises(TooManyAttempts) as refused:
        now(throttle.admit(account, address))
    return refused.value.retry_after_s


def test_some_failures_are_free(throttle):
    fail(throttle, "bob", "192.0.2.1", 4)
    now(throttle.admit("bob", "192.0.2.1"))


def test_an_address_is_blocked_whatever_account_it_tries_next(throttle):
    fail(throttle, "bob", "192.0.2.1", 5)
    assert wait(throttle, "carol", "192.0.2.1") == 60


def test_an_account_is_blocked_whatever_address_comes_next(throttle):
    for last in range(5):
        fail(throttle, "bob", f"192.0.2.{last}", 1)
    assert wait(throttle, "bob", "198.51.100.1") == 60
    now(throttle.admit("carol", "198.51.100.1"))


def test_failures_spread_over_more_than_a_minute_do_not_add_up(throttle, clock):
    for _ in range(20):
        fail(throttle, "bob", "192.0.2.1", 1)
        clock.advance(16)


def test_every_further_block_is_longer_up_to_a_bound(throttle, clock):
    waits = []
    for _ in range(7):
        fail(throttle, "bob", "192.0.2.1", 5)
        waits.append(wait(throttle, "bob", "192.0.2.1"))
        clock.advance(waits[-1])
    assert waits == [60, 120, 240, 480, 900, 900, 900]


def test_a_quiet_hour_forgets_the_past(throttle, clock):
    fail(throttle, "bob", "192.0.2.1", 5)
    clock.advance(3601)
    fail(throttle, "bob", "192.0.2.1", 5)
    assert wait(throttle, "bob", "192.0.2.1") == 60


def test_others_cannot_lock_an_owner_out_of_the_address_they_use(throttle):
    throttle.succeeded("bob", "192.0.2.1")
    for last in range(5):
        fail(throttle, "bob", f"198.51.100.{last}", 1)
    wait(throttle, "bob", "198.51.100.77")
    now(throttle.admit("bob", "192.0.2.1"))


def test_a_known_address_may_not_guess_forever_either(throttle):
    throttle.succeeded("bob", "192.0.2.1")
    fail(throttle, "bob", "192.0.2.1", 5)
    assert wait(throttle, "bob", "192.0.2.1") == 60


def test_an_address_is_known_for_a_day(throttle, clock):
    throttle.succeeded("bob", "192.0.2.1")
    clock.advance(24 * 3600)
    for last in range(5):
        fail(throttle, "bob", f"198.51.100.{last}", 1)
    wait(throttle, "bob", "192.0.2.1")


def test_logging_in_to_an_own_account_clears_no_failures(throttle):
    fail(throttle, "bob", "192.0.2.1", 4)
    throttle.succeeded("mallory", "192.0.2.1")
    fail(throttle, "bob", "192.0.2.1", 1)
    wait(throttle, "bob", "192.0.2.1")


def test_an_ipv6_network_counts_as_one_address_and_mapped_ipv4_does_not(throttle):
    for last in range(5):
        fail(throttle, f"user{last}", f"2001:db8::{last}", 1)
    wait(throttle, "x", "2001:db8::abcd")
    now(throttle.admit("x", "2001:db8:0:1::1"))
    for last in range(5):
        fail(throttle, f"other{last}", f"::ffff:192.0.2.{last}", 1)
    now(throttle.admit("x", "::ffff:192.0.2.9"))


@pytest.mark.parametrize("address", ["unix", "fe80::1%eth0", "not:an:address"])
def test_odd_addresses_are_counted_as_they_are(throttle, address):
    fail(throttle, "bob", address, 5)
    wait(throttle, "carol", address)


@pytest.mark.parametrize(
    ("unlock", "freed", "blocked"),
    [
        (LoginUnlock(1, "bob", ""), [("bob", "192.0.2.8")], [("carol", "192.0.2.1")]),
        (LoginUnlock(1, "", "192.0.2.1"), [("carol", "192.0.2.1")], [("bob", "192.0.2.8")]),
        (LoginUnlock(1, "bob", "192.0.2.1"), [("carol", "192.0.2.1"), ("bob", "192.0.2.8")], []),
        (LoginUnlock(1, "carol", "192.0.2.9"), [], [("carol", "192.0.2.1"), ("bob", "192.0.2.8")]),
    ],
)
def test_a_block_is_lifted_by_account_and_by_address(clock, unlock, freed, blocked):
    new = []
    throttle = Throttle(limit=5, clock=clock, unlocks=Unlocks(new))
    fail(throttle, "bob", "192.0.2.1", 5)
    new.append(unlock)
    for account, address in blocked:
        wait(throttle, account, address)
    for account, address in freed:
        now(throttle.admit(account, address))
    if blocked or freed:
        assert new == []


def test_a_known_pair_is_unlocked_by_either_of_its_parts(clock):
    for unlock in (LoginUnlock(1, "bob", ""), LoginUnlock(1, "", "192.0.2.1")):
        new = []
        throttle = Throttle(limit=5, clock=clock, unlocks=Unlocks(new))
        throttle.succeeded("bob", "192.0.2.1")
        fail(throttle, "bob", "192.0.2.1", 5)
        wait(throttle, "bob", "192.0.2.1")
        new.append(unlock)
        now(throttle.admit("bob", "192.0.2.1"))


def test_attempts_without_an_address_are_counted_by_account_only(throttle):
    fail(throttle, "bob", "", 5)
    wait(throttle, "bob", "")
    now(throttle.admit("carol", ""))


def test_memory_is_bounded_and_the_busiest_guesser_is_remembered():
    throttle = Throttle(most_keys=10)
    for count in range(17):
        fail(throttle, f"other{count}", f"198.51.100.{count}", 1)
        if count % 4 == 0:
            fail(throttle, f"again{count}", "192.0.2.1", 1)
    wait(throttle, "x", "192.0.2.1")
    assert len(throttle._records) <= 10


def test_attempts_under_way_count_as_failures_until_they_end(throttle):
    fail(throttle, "bob", "192.0.2.1", 2)
    under_way = [throttle.begin(f"name{number}", "192.0.2.1") for number in range(3)]
    with pytest.raises(TooManyAttempts) as refused:
        throttle.begin("carol", "192.0.2.1")
    assert refused.value.retry_after_s == 1
    throttle.begin("carol", "198.51.100.1").end(failed=False)
    for each in under_way:
        each.end(failed=False)
    throttle.begin("carol", "192.0.2.1").end(failed=False)
    assert not throttle._in_progress


def test_an_account_has_no_more_guesses_under_way_than_it_may_fail(throttle):
    under_way = [throttle.begin("bob", f"192.0.2.{last}") for last in range(5)]
    with pytest.raises(TooManyAttempts):
        throttle.begin("bob", "198.51.100.1")
    for each in under_way:
        each.end(failed=True)
    assert wait(throttle, "bob", "198.51.100.1") == 60


@pytest.mark.parametrize(
    ("address", "mate", "stranger"),
    [
        ("192.0.2.1", "192.0.99.1", "198.51.100.1"),
        ("2001:db8:1:1::1", "2001:db8:2::1", "2001:db9::1"),
        ("2001:db8::1", "2001:db8::2", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1", "2001:db8::1"),
    ],
)
def test_networks_share_a_place_in_the_queue_with_their_kin(throttle, address, mate, stranger):
    assert throttle.queue_path("a", address)[:2] == throttle.queue_path("b", mate)[:2]
    assert throttle.queue_path("a", address)[:2] != throttle.queue_path("a", stranger)[:2]


def test_known_addresses_queue_apart_from_all_others(throttle):
    throttle.succeeded("bob", "192.0.2.1")
    known = throttle.queue_path("bob", "192.0.2.1")[0]
    assert throttle.queue_path("eve", "192.0.2.1")[0] != known
    assert throttle.queue_path("bob", "192.0.2.2")[0] != known


def test_a_failure_at_another_process_counts_after_an_unlock_that_is_read_late(clock):
    new = []
    throttle = Throttle(limit=2, clock=clock, unlocks=Unlocks(new))
    for _ in range(2):
        throttle.add_failure([("", "192.0.2.1/32"), ("bob", "")])
    new.append(LoginUnlock(1, "bob", "192.0.2.1"))
    now(throttle.hear_failure([("", "192.0.2.1/32"), ("bob", "")]))
    throttle.begin("bob", "192.0.2.1").end(failed=True)
    with pytest.raises(TooManyAttempts):
        throttle.begin("bob", "192.0.2.1")
