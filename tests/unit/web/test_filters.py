"""How pages write times, digests and browsers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pkgrepo.web.rendering.filters import brief, browser, latency, moment, size, when

WINDOWS = "Mozilla/5.0 (Windows NT 10.0; Win64; x64)"


@pytest.mark.parametrize(
    ("agent", "shown"),
    [
        (f"{WINDOWS} AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36 Edg/140.0", "Edge on Windows"),
        ("Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Safari/604.1", "Safari on iPhone"),
        ("curl/8", "curl/8"),
        ("x" * 100, "x" * 60),
        ("", ""),
    ],
    ids=["edge", "firefox", "iphone", "program", "long", "none"],
)
def test_a_browser_is_named_for_people(agent: str, shown: str) -> None:
    assert browser(agent) == shown


def test_only_digests_are_shortened() -> None:
    digest = f"sha256:{'ab' * 32}"
    assert (brief(digest), brief("1.0"), brief("sha256:ab")) == ("sha256:abababababab…", "1.0", "sha256:ab")


def test_a_moment_has_the_time_of_day() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert moment(at, at) == (
        '<time datetime="2026-01-02T03:04:05+00:00">2026-01-02 03:04:05 <span class="age">just now</span></time>'
    )


def test_a_time_is_shown_as_its_age_with_the_exact_time_as_title() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    exact = '<time datetime="2026-01-02T03:04:05+00:00" title="2026-01-02 03:04:05 UTC">'
    assert when(at, at + timedelta(days=3)) == f"{exact}3 days ago</time>"
    assert when(None) == "–"


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1023 * 1024, "1023 KiB"),
        (1536 * 1024, "1.5 MiB"),
        (1000 * 2**30, "1000 GiB"),
    ],
)
def test_sizes_have_no_exponent(count: int, shown: str) -> None:
    assert size(count) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (None, "–"),
        (0.0, "0 ms"),
        (0.00042, "0.42 ms"),
        (0.25, "250 ms"),
        (0.9996, "1000 ms"),
        (2.5, "2.5 s"),
        (125, "2 min 5 s"),
    ],
)
def test_latencies_have_the_unit_that_people_use(seconds: float | None, shown: str) -> None:
    assert latency(seconds) == shown
