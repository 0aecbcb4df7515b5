"""Groups of commands that import a command when it is called: most of them do not need the server's modules."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import msgspec
from click.shell_completion import CompletionItem

INTERRUPTED = 130  # as shells say of a program that SIGINT ended
SHORTEST = 20  # characters of what help says of a command; a part that is shorter says too little


@cache
def operations() -> Mapping[str, Any]:
    """The operations of the API that commands are made of, by the words of their commands."""
    found: dict[str, Any] = msgspec.json.decode(Path(__file__).with_name("operations.json").read_bytes())
    return found


class LazyGroup(click.Group):
    """
    ``lazy`` maps the names of commands to the name below ``pkgrepo`` and what the help of the group says of it, or to
    None if they are made of an operation of the API. A group without a name has such commands only.

    ``sections`` maps the first command of each part of the help to the title of the part.
    """

    def __init__(
        self,
        *arguments: Any,
        lazy: Mapping[str, tuple[str, str] | None],
        sections: Mapping[str, str] | None = None,
        **rest: Any,
    ) -> None:
        super().__init__(*arguments, **rest)
        self._lazy = lazy
        self._sections = sections or {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click calls it by keyword
        """Return the names of all commands, in the order of ``lazy``."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of this name."""
        if cmd_name not in self._lazy:
            return None
        place = self._lazy[cmd_name] or ("", "")
        if not place[0]:
            made: click.Command = import_module("pkgrepo.client.generated").made_of(
                self._words(ctx, cmd_name), place[1]
            )
            return made
        module, _, name = place[0].rpartition(".")
        command: click.Command = getattr(import_module(f"pkgrepo.{module}"), name)
        command.short_help = place[1]
        return command

    def _words(self, ctx: click.Context, name: str) -> str:
        return name if ctx.parent is None else f"{self.name} {name}"

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the arguments; one that is not known fails with the names that look like it."""
        name = args[0]
        if name not in self._lazy and not name.startswith("-"):
            near = [each for each in self._lazy if each.startswith(name) or name.startswith(each)]
            near = (near or get_close_matches(name, self._lazy))[:3]
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the names of the commands, in sections, each with the beginning of its help."""
        indent = max(map(len, self._lazy), default=0)
        limit = formatter.width - indent - 6
        title, rows = self._sections.get(next(iter(self._lazy), ""), "Commands"), list[tuple[str, str]]()
        for name in self._lazy:
            if rows and name in self._sections:
                _write_section(formatter, title, rows, indent)
                title, rows = self._sections[name], []
            place = self._lazy[name]
            text = operations()[self._words(ctx, name)][0]["help"].partition(".\n")[0] if place is None else place[1]
            rows.append((name, brief(text.rstrip("."), limit)))
        _write_section(formatter, title, rows, indent)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; Ctrl-C ends it without a word, also while it is imported."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands and options that begin so, without importing the commands."""
        names = [CompletionItem(name) for name in self._lazy if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)


def brief(text: str, limit: int) -> str:
    """A sentence of at most ``limit`` characters: a longer one ends before its last clause that does not fit."""
    if len(text) <= limit:
        return text
    ends = [found.start() for found in re.finditer(r"[,:;] | \(", text[:limit])]
    if ends and ends[-1] >= SHORTEST:
        return text[: ends[-1]]
    return text[: limit - 3].rpartition(" ")[0] + "..."


def _write_section(formatter: click.HelpFormatter, title: str, rows: list[tuple[str, str]], indent: int) -> None:
    if rows:
        with formatter.section(title):
            formatter.write_dl([(name.ljust(indent), text) for name, text in rows])
