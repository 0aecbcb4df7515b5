"""Aligned tables of texts, cut to the width of a terminal (pure)."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Final

GAP: Final = "  "
LEAST: Final = 4  # columns of the terminal to which a column is cut
CUT: Final = "…"


def render_table(
    titles: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    width: int | None = None,
    right: frozenset[int] = frozenset(),
) -> list[str]:
    """
    The lines of a table: the titles, then the rows.

    ``right`` are the columns, by number, that are aligned to the right. With ``width`` columns are cut until the lines
    fit, but not below ``LEAST``.
    """
    widths = [max(map(width_of, column)) for column in zip(titles, *rows, strict=True)]
    if width is not None:
        room = width - len(GAP) * (len(widths) - 1)
        numbers = range(len(widths))
        # names, which are in the first column, and figures are cut only if nothing else helps
        _narrow(widths, room, [number for number in numbers if number and number not in right])
        _narrow(widths, room, sorted(right))
        _narrow(widths, room, [0])
    return [_line(cells, widths, right) for cells in (titles, *rows)]


def render_fields(fields: Sequence[tuple[str, str]]) -> list[str]:
    """Lines with a name and a value each; further lines of a value are indented."""
    indent = max((width_of(name) for name, _ in fields), default=0) + len(GAP)
    lines = []
    for name, value in fields:
        first, *rest = value.split("\n")
        lines.append((_pad(name, indent) + first).rstrip())
        lines += [" " * indent + line for line in rest]
    return lines


def width_of(text: str) -> int:
    """How many columns of a terminal a text takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(_width_of_character(each) for each in text)


def cut(text: str, width: int) -> str:
    """The text, cut to so many columns, with an ellipsis if something is missing."""
    if width_of(text) <= width:
        return text
    kept, used = "", 0
    for each in text:
        used += _width_of_character(each)
        if used > width - 1:
            break
        kept += each
    return kept + CUT


def _width_of_character(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in ("Me", "Mn", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("F", "W") else 1


def _narrow(widths: list[int], room: int, columns: Sequence[int]) -> None:
    """Make the widest of some columns narrower until all columns fit, or all of these are at ``LEAST``."""
    while sum(widths) > room and columns:
        widest = max(columns, key=lambda number: widths[number])
        if widths[widest] <= LEAST:
            return
        widths[widest] -= 1


def _line(cells: Sequence[str], widths: Sequence[int], right: frozenset[int]) -> str:
    padded = []
    for number, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        text = cut(cell, width)
        padded.append(" " * (width - width_of(text)) + text if number in right else _pad(text, width))
    return GAP.join(padded).rstrip()


def _pad(text: str, width: int) -> str:
    return text + " " * (width - width_of(text))
