"""Groups of commands that import a command when it is called: most of them do not need the server's modules."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

from .exits import INTERRUPTED

ROOM = "pkgrepo.commands."


class LazyGroup(click.Group):
    """``lazy`` maps the names of commands to the module below ``pkgrepo.commands`` and the name in it."""

    def __init__(self, *arguments: Any, lazy: Mapping[str, tuple[str, str]], **rest: Any) -> None:
        super().__init__(*arguments, **rest)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click calls it by keyword
        """The names of all commands, in the order of ``lazy``."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of this name, or None."""
        if cmd_name not in self._lazy:
            return None
        module, name = self._lazy[cmd_name]
        command: click.Command = getattr(import_module(ROOM + module), name)
        return command

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
