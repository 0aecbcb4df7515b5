"""Pictures of figures."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from pkgrepo.web.rendering.filters import HEIGHT, WIDTH, bars, share


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
