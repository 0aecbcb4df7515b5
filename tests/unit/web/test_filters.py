"""How pages write times, digests and browsers."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree as ET

import pytest

from pkgrepo.display import browser, latency, size
from pkgrepo.web.rendering.filters import HEIGHT, WIDTH, bars, brief, foldable, mark, share, time_with_age, when
from pkgrepo.web.rendering.tokens import sentence_of

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
    assert time_with_age(at, at) == (
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


LISTED = [{"repository": "main/py", "actions": ["read", "write"], "packages": []}]


@pytest.mark.parametrize(
    ("access", "repositories", "scopes", "text"),
    [
        ("owner", [], [], "do in every repository what you may do there"),
        ("none", [], [], "do nothing that needs a permission"),
        ("none", [], ["audit"], "read the audit log"),
        ("listed", LISTED, [], "read and publish packages in main/py"),
        (
            "listed",
            [{"repository": "*/*", "actions": ["read"], "packages": ["acme-*"]}],
            ["users", "metrics"],
            "read the packages acme-* in every repository, manage users and read the metrics of the server",
        ),
        (
            "listed",
            [{"repository": "main/*", "actions": ["read", "write", "delete"], "packages": ["*"]}],
            [],
            "read, publish and delete packages in the repositories that are named like main/*",
        ),
    ],
    ids=["owner", "nothing", "scope", "listed", "packages", "pattern"],
)
def test_what_a_token_may_do_is_one_sentence(access: str, repositories: list, scopes: list, text: str) -> None:
    assert sentence_of(access, repositories, scopes) == (
        f"Programs that have this token may {text}, as long as you may do so yourself."
    )


def test_the_end_is_named() -> None:
    assert "py for 1 day, as" in sentence_of("listed", LISTED, [], days=1)
    assert "py until 2027-01-31, as" in sentence_of("listed", LISTED, [], until=datetime(2027, 1, 31, tzinfo=UTC))


def test_bars_are_as_high_as_their_numbers_say() -> None:
    picture = ET.fromstring(bars([("<a>", 10), ("b", 0), ("c", 5), ("d", 1)], 'what "it" shows'))
    assert picture.get("aria-label") == 'what "it" shows'
    drawn = [each for each in picture if len(each)]
    assert [each[0].text for each in drawn] == ["<a>: 10", "c: 5", "d: 1"]
    places = [tuple(map(float, re.findall(r"[\d.]+", each.get("d") or ""))) for each in drawn]
    heights = [base - top for _, top, _, base, _ in places]
    assert heights[0] == HEIGHT - 1
    assert abs(heights[1] - heights[0] / 2) < 1
    assert places[1][0] == WIDTH / 2


def test_nothing_is_drawn_for_zeros_and_little_for_little() -> None:
    assert bars([("a", 0), ("b", 0)], "").count("<title>") == 0
    assert bars([], "").startswith("<svg")
    assert bars([("a", 10**9), ("b", 1)], "").count("<title>") == 2


def test_numbers_are_written_as_the_caller_says_and_compared_with_what_is_full() -> None:
    drawn = bars([("day", 1), ("full", 2)], "x", lambda value: f"{value}!", 4)
    assert "day: 1!" in drawn
    assert f"M0 {(HEIGHT - 1) * 0.75:.3g}h" in drawn


def test_a_share_is_a_part_of_the_whole() -> None:
    assert "h50v8" in share(1, 2)
    assert "h0v8" in share(0, 0)


def test_lines_of_a_command_end_at_slashes_of_paths_only() -> None:
    assert foldable("pip --index-url http://a/b/ <X>") == (
        'pip <span class="pair">--index-url</span> http://a/<wbr>b/<wbr> &lt;X&gt;'
    )
    assert foldable("//a/:_x --version=1.0") == '//a/<wbr>:_x <span class="pair">--version=1.0</span>'


def test_one_letter_is_marked_where_words_begin() -> None:
    assert mark("a banana", "a") == "<mark>a</mark> banana"
    assert mark("<banana>", "an") == "&lt;b<mark>an</mark><mark>an</mark>a&gt;"
