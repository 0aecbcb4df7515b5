"""When cron texts are due."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.repositories.cron import parse_cron

START = datetime(2026, 1, 30, 12, 7, 30, tzinfo=UTC)  # a Friday


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("* * * * *", "2026-01-30 12:08"),
        ("15 3 * * *", "2026-01-31 03:15"),
        ("*/20 12 * * *", "2026-01-30 12:20"),
        ("5/30 * * * *", "2026-01-30 12:35"),
        ("0 0 1,15 * *", "2026-02-01 00:00"),
        ("0 6 * * mon-wed", "2026-02-02 06:00"),
        ("0 6 * * 7", "2026-02-01 06:00"),
        ("0 0 13 * fri", "2026-02-06 00:00"),  # one of both days
        ("0 0 */10 * 0", "2026-02-01 00:00"),
        ("0 0 29 feb *", "2028-02-29 00:00"),
        ("59 23 31 12 *", "2026-12-31 23:59"),
        ("@daily", "2026-01-31 00:00"),
        ("@Monthly", "2026-02-01 00:00"),
    ],
)
def test_the_next_minute_that_a_text_names(text: str, due: str) -> None:
    assert f"{parse_cron(text).next_after(START):%Y-%m-%d %H:%M}" == due


def test_the_minute_itself_is_over() -> None:
    at = datetime(2026, 1, 30, 3, 15, tzinfo=UTC)
    assert parse_cron("15 3 * * *").next_after(at) == datetime(2026, 1, 31, 3, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "* * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 8",
        "5-1 * * * *",
        "*/0 * * * *",
        "a * * * *",
        "1, * * * *",
        "* * 31 2 *",
        "@often",
        "-1 * * * *",
        "1.5 * * * *",
        "٣ * * * *",
        "* * * * * *",
    ],
)
def test_what_is_no_schedule_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        parse_cron(text)
