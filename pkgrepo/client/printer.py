"""
What commands print: tables and sentences for people, or with ``--json`` the records of the API for programs.

Results go to standard output, everything else to standard error. Texts from the server lose their control characters.
Colours appear only on a terminal, and not with ``NO_COLOR``.
"""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import click
import msgspec
from attrs import frozen

from pkgrepo.client.terminal import printable
from pkgrepo.display import age

GAP: Final = "  "
LEAST: Final = 4  # columns of the terminal to which a column is cut
CUT: Final = "…"

NOTHING: Final = "-"


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


@frozen
class Column:
    """A column of a table: its title, and what is in it, as a key of the record or a function of it."""

    title: str
    value: str | Callable[[Any], object]
    right: bool = False

    def text(self, record: Any) -> str:
        """The cell of a record, on one line."""
        found = record.get(self.value) if isinstance(self.value, str) else self.value(record)
        return printable(text_of(found)) or NOTHING


class Printer:
    """Prints results in the form that the caller wants."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self.coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def table(self, columns: Sequence[Column], records: Sequence[Any], nothing: str = "nothing was found") -> None:
        """Print a list of records; ``nothing`` is the sentence for an empty one, on standard error."""
        if self.as_json:
            self.json(records)
            return
        if not records:
            self.note(nothing)
            return
        rows = [[column.text(each) for column in columns] for each in records]
        right = frozenset(number for number, column in enumerate(columns) if column.right)
        head, *lines = render_table([each.title for each in columns], rows, width=self.width, right=right)
        click.echo(self.bold(head))
        for line in lines:
            click.echo(line)

    def record(self, value: Any, fields: Iterable[tuple[str, object]]) -> None:
        """Print one record: ``fields`` are names and values for people; those with None are left out."""
        if self.as_json:
            self.json(value)
            return
        shown = [(name, text_of(each)) for name, each in fields if each is not None and each != ""]
        lines = [(name, "\n".join(map(printable, text.split("\n")))) for name, text in shown]
        for line in render_fields(lines):
            click.echo(line)

    def done(self, sentence: str, value: Any = None) -> None:
        """Print what was done, or the record that the server returned."""
        if self.as_json:
            self.json({} if value is None else value)
        else:
            self.line(sentence)

    def line(self, text: str) -> None:
        """Print a line for people."""
        click.echo(printable(text))

    def heading(self, text: str) -> None:
        """Print a line for people that what follows is about."""
        click.echo(self.bold(printable(text)))

    def warnings(self, record: Any) -> None:
        """Print the warnings of a record on standard error."""
        for each in record.get("warnings") or () if isinstance(record, dict) else ():
            self.note(f"warning: {each}")

    def note(self, sentence: str) -> None:
        """Print something that is not the result."""
        click.echo(printable(sentence), err=True)

    def json(self, value: Any) -> None:
        """Print a value as JSON with indentation."""
        click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2))

    def bold(self, text: str) -> str:
        """The text, bold on a terminal."""
        return click.style(text, bold=True) if self.coloured else text

    @property
    def width(self) -> int | None:
        """The width of the terminal, None if the output goes elsewhere."""
        return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def text_of(value: object) -> str:
    """A value in a cell: lists with commas, yes and no, objects as JSON."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    if isinstance(value, Mapping | list):
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return str(value)


def aged(key: str) -> Callable[[Any], str]:
    """A function of a record: how long ago the time in the field ``key`` was."""
    return lambda record: ago(record.get(key))


def ago(text: object) -> str:
    """How long ago a time of the API was; empty if there is none."""
    at = parse_time(text)
    return "" if at is None else age(at, datetime.now(UTC))


def time_with_age(text: object) -> str | None:
    """A time of the API for people, with its age; None if there is none."""
    at = parse_time(text)
    return None if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC ({age(at, datetime.now(UTC))})"


def parse_time(text: object) -> datetime | None:
    """A time of the API; None if the value is no time."""
    try:
        return None if not isinstance(text, str) else msgspec.convert(text, datetime).astimezone(UTC)
    except msgspec.ValidationError:
        return None
