"""Tables are aligned by the columns that texts take on a terminal, and cut to its width."""

import pytest

from pkgrepo.client.printer import cut, render_fields, render_table, width_of
from pkgrepo.client.terminal import printable


def test_columns_are_aligned_and_lines_have_no_spaces_at_their_end():
    lines = render_table(("NAME", "SIZE", "STATE"), [("a", "1", "on"), ("longer", "100", "")], right=frozenset({1}))
    assert lines == ["NAME    SIZE  STATE", "a          1  on", "longer   100"]


def test_wide_and_combining_characters_are_counted_as_terminals_show_them():
    lines = render_table(("NAME", "X"), [("日本", "1"), ("e\u0301e", "2"), ("abcd", "3")])
    assert lines == ["NAME  X", "日本  1", "e\u0301e    2", "abcd  3"]
    assert width_of("日本e\u0301") == 5


def test_the_widest_columns_are_cut_to_the_width_of_the_terminal():
    rows = [("short", "x" * 60, "y" * 30)]
    for width in (40, 60, 79):
        lines = render_table(("A", "B", "C"), rows, width=width)
        assert max(map(width_of, lines)) == width
        assert lines[1].startswith("short  xxx")
        assert lines[1].count("…") == (2 if width < 70 else 1)
    assert max(map(width_of, render_table(("A", "B", "C"), rows, width=500))) == 99


def test_names_and_figures_are_cut_last():
    row = [("a-long-name-of-a-package", "1234567890", "something longer than that")]
    lines = render_table(("NAME", "SIZE", "TEXT"), row, width=50, right=frozenset({1}))
    assert lines[1] == "a-long-name-of-a-package  1234567890  something l…"
    assert render_table(("NAME", "SIZE", "TEXT"), row, width=36, right=frozenset({1}))[1].startswith(
        "a-long-name-of-a-package  "
    )


def test_a_narrow_terminal_does_not_make_columns_vanish():
    lines = render_table(("A", "B"), [("x" * 40, "y" * 40)], width=3)
    assert lines[1] == "xxx…  yyy…"


def test_a_cut_never_halves_a_wide_character():
    assert cut("日本語", 5) == "日本…"
    assert cut("日本語", 4) == "日…"
    assert cut("日本", 4) == "日本"


def test_fields_are_aligned_and_further_lines_are_indented():
    assert render_fields([("a", "1"), ("files", "x\ny")]) == ["a      1", "files  x", "       y"]
    assert render_fields([]) == []


@pytest.mark.parametrize(
    "hostile",
    ["\x1b[2J", "a\rb", "a\nb", "\x9b31m", "\u202egnp.exe", "\u2066x", "\ud800", "\x00"],
    ids=["escape", "return", "newline", "csi", "override", "isolate", "surrogate", "nul"],
)
def test_texts_from_outside_cannot_change_the_terminal(hostile):
    shown = printable(hostile)
    assert "?" in shown
    assert shown.isprintable()
    assert printable("plain é 日本") == "plain é 日本"
