"""Times as addresses name them, and what is rebuilt of the tags and states of a package."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.repositories.past import read_moment

NOW = datetime(2026, 9, 2, 10, tzinfo=UTC)
NOW_MS = round(NOW.timestamp() * 1000)


@pytest.mark.parametrize(
    ("text", "then", "settled"),
    [
        ("2026-09-01", "2026-09-01T23:59:59.999", True),
        ("2026-09-02", "2026-09-02T23:59:59.999", False),
        ("2026-09-01T12:00Z", "2026-09-01T12:00:00.000", True),
        ("2026-09-01T1200", "2026-09-01T12:00:00.000", True),
        ("2026-09-02T09:59:59.999Z", "2026-09-02T09:59:59.999", False),
        ("0001-01-01", "0001-01-01T23:59:59.999", True),
    ],
)
def test_times(text: str, then: str, settled: bool) -> None:
    found = read_moment(text, NOW_MS)
    assert found.at_ms == round(datetime.fromisoformat(f"{then}+00:00").timestamp() * 1000)
    assert found.settled(NOW_MS) is settled


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-9-1",
        "2026-02-30",
        "2026-09-01T",
        "2026-09-01T25:00Z",
        "2026-09-01T12",
        "2026-09-01Z",
        "\u0662026-09-01",
    ],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(Invalid, match="no date such as"):
        read_moment(text, NOW_MS)


@pytest.mark.parametrize("text", ["2026-09-03", "2026-09-02T10:01Z", "9999-12-31", "9999-12-31T00:00Z"])
def test_the_future_is_not_known(text: str) -> None:
    with pytest.raises(Invalid, match="in the future"):
        read_moment(text, NOW_MS)
