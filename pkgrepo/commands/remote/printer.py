"""
What commands print: tables and sentences for people, or with ``--json`` the records of the API for programs.

Results go to standard output, everything else to standard error. Texts from the server lose their control characters.
Colours appear only on a terminal, and not with ``NO_COLOR``.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import click
import msgspec
from attrs import frozen

from pkgrepo.commands.texts import printable
from pkgrepo.web.rendering.filters import age, size

from .tables import render_fields, render_table

NOTHING: Final = "-"


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


def sized(key: str) -> Callable[[Any], str]:
    """A function of a record: the size in the field ``key``, with a unit."""
    return lambda record: size(record[key]) if record.get(key) is not None else ""


def aged(key: str) -> Callable[[Any], str]:
    """A function of a record: how long ago the time in the field ``key`` was."""
    return lambda record: ago(record.get(key))


def ago(text: object) -> str:
    """How long ago a time of the API was; empty if there is none."""
    at = parse_time(text)
    return "" if at is None else age(at, datetime.now(UTC))


def moment(text: object) -> str | None:
    """A time of the API for people, with its age; None if there is none."""
    at = parse_time(text)
    return None if at is None else f"{at:%Y-%m-%d %H:%M:%S} UTC ({age(at, datetime.now(UTC))})"


def parse_time(text: object) -> datetime | None:
    """A time of the API; None if the value is no time."""
    try:
        return None if not isinstance(text, str) else msgspec.convert(text, datetime).astimezone(UTC)
    except msgspec.ValidationError:
        return None
