import pytest

from pkgrepo.auth import throttle as module
from pkgrepo.auth.throttle import Throttle
from pkgrepo.errors import TooManyAttempts
from tests.support.auth import Time


@pytest.fixture
def clock():
    return Time()


@pytest.fixture
def throttle(clock):
    return Throttle(limit=5, clock=clock)


def fail(throttle, account, address, times):
    for _ in range(times):
        throttle.admit(account, address)
        throttle.failed(account, address)


def wait(throttle, account, address):
    with pytest.raises(TooManyAttempts) as refused:
        throttle.admit(account, address)
    return refused.value.retry_after_s


def test_some_failures_are_free(throttle):
    fail(throttle, "bob", "192.0.2.1", 4)
    throttle.admit("bob", "192.0.2.1")


def test_an_address_is_blocked_whatever_account_it_tries_next(throttle):
    fail(throttle, "bob", "192.0.2.1", 5)
    assert wait(throttle, "carol", "192.0.2.1") == 60


def test_an_account_is_blocked_whatever_address_comes_next(throttle):
    for last in range(5):
        fail(throttle, "bob", f"192.0.2.{last}", 1)
    assert wait(throttle, "bob", "198.51.100.1") == 60
    throttle.admit("carol", "198.51.100.1")


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
    throttle.admit("bob", "192.0.2.1")


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
    throttle.admit("x", "2001:db8:0:1::1")
    for last in range(5):
        fail(throttle, f"other{last}", f"::ffff:192.0.2.{last}", 1)
    throttle.admit("x", "::ffff:192.0.2.9")


@pytest.mark.parametrize("address", ["", "unix", "fe80::1%eth0", "not:an:address"])
def test_odd_addresses_are_counted_as_they_are(throttle, address):
    fail(throttle, "bob", address, 5)
    wait(throttle, "carol", address)


def test_memory_is_bounded_and_the_busiest_guesser_is_remembered(throttle, monkeypatch):
    monkeypatch.setattr(module, "MAX_KEYS", 10)
    for count in range(4):
        fail(throttle, f"name{count}", "192.0.2.1", 1)
    for count in range(30):
        throttle.failed(f"other{count}", f"198.51.100.{count}")
        if count % 4 == 0:
            throttle.failed(f"again{count}", "192.0.2.1")
    wait(throttle, "x", "192.0.2.1")
    assert len(throttle._records) <= 10
