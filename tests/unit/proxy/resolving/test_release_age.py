"""The minimum age of releases."""

from __future__ import annotations

import pytest

from pkgrepo.auth.permissions.rules import make_placeholder
from pkgrepo.model import Repository
from pkgrepo.proxy.resolving.release_age import AgeRule, TooYoung

DAY = 86_400_000
RULE = AgeRule(7 * DAY, 7, "main/npm")


def asked(path: str) -> Repository:
    return make_placeholder(1, *path.split("/"))


@pytest.mark.parametrize(("age_ms", "hidden"), [(0, True), (7 * DAY - 1, True), (7 * DAY, False), (9 * DAY, False)])
def test_a_release_is_hidden_until_it_is_old_enough(age_ms: int, hidden: bool) -> None:
    now_ms = 100 * DAY
    assert RULE.hides(now_ms - age_ms, now_ms) is hidden


def test_a_release_of_unknown_time_is_hidden() -> None:
    assert RULE.hides(None, 100 * DAY)


def test_the_next_opening_is_that_of_the_oldest_release_that_is_too_young() -> None:
    now_ms = 100 * DAY
    assert RULE.next_opening_ms([1, now_ms - DAY, now_ms - 3 * DAY, None], now_ms) == now_ms + 4 * DAY
    assert RULE.next_opening_ms([1, None], now_ms) is None


def test_a_refusal_survives_dates_that_no_calendar_has() -> None:
    latest_ms = 253_402_300_799_000  # the end of the year 9999
    with pytest.raises(TooYoung, match="in the future"):
        RULE.check("x-1.tgz", latest_ms, 2000, asked("main/npm"))


def test_a_refusal_says_when_the_release_will_be_served() -> None:
    with pytest.raises(TooYoung, match=r"x-1\.tgz .* 7 days .* main/npm .* from 1970-01-08 00:00:01 UTC"):
        RULE.check("x-1.tgz", 1000, 2000, asked("main/npm"))
    with pytest.raises(TooYoung, match="no publication date"):
        RULE.check("x-1.tgz", None, 2000, asked("main/npm"))
    RULE.check("x-1.tgz", 1000, 1000 + 7 * DAY, asked("main/npm"))


def test_a_refusal_names_no_member_of_a_virtual_repository() -> None:
    with pytest.raises(TooYoung) as refused:
        RULE.check("x-1.tgz", 1000, 2000, asked("main/all"))
    assert "main/npm" not in str(refused.value)
    assert "a member of main/all" in str(refused.value)
