"""Groups of commands that import a command when it is called: most of them do not need the server's modules."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click
from click.shell_completion import CompletionItem

INTERRUPTED = 130  # as shells say of a program that SIGINT ended

_REPO = {
    "list": ("remote.repositories", "list_repositories"),
    "show": ("remote.repositories", "show_repository"),
    "create": ("remote.repositories", "create_repository"),
    "edit": ("remote.repositories", "edit_repository"),
    "delete": ("remote.repositories", "delete_repository"),
    "apply": ("remote.apply", "apply"),
    "gc": ("remote.repositories", "collect_garbage"),
    "uploads": ("remote.uploads", "uploads"),
    "purge": ("remote.repositories", "purge_cache"),
    "replication": ("remote.replication", "replication"),
    "promote-replica": ("remote.replication", "promote_replica"),
    "rebuild": ("remote.repositories", "rebuild"),
    "verify": ("remote.repositories", "verify"),
}
_PACKAGE = {
    "list": ("remote.packages", "list_packages"),
    "show": ("remote.packages", "show_package"),
    "versions": ("remote.packages", "list_versions"),
    "diff": ("remote.packages", "compare_versions"),
    "dependents": ("remote.packages", "list_dependents"),
    "yank": ("remote.packages", "yank"),
    "unyank": ("remote.packages", "unyank"),
    "pin": ("remote.lifecycle.pins", "pin"),
    "unpin": ("remote.lifecycle.pins", "unpin"),
    "pins": ("remote.lifecycle.pins", "list_pins"),
    "promote": ("remote.packages", "promote"),
    "delete": ("remote.packages", "delete"),
    "tag": ("remote.packages", "set_tag"),
    "untag": ("remote.packages", "remove_tag"),
    "history": ("remote.packages", "show_history"),
}
_STORAGE = {
    "list": ("remote.storages", "list_storages"),
    "show": ("remote.storages", "show_storage"),
    "create": ("remote.storages", "create_storage"),
    "edit": ("remote.storages", "edit_storage"),
    "delete": ("remote.storages", "delete_storage"),
    "check": ("remote.storages", "check_storage"),
    # on the machine of the server
    "adopt": ("storages", "adopt_storage"),
    "move": ("storages", "move_storage"),
}
_BUNDLE = {
    "write": ("remote.transfers.bundles", "write"),
    "read": ("imports", "read_bundle"),
}


class LazyGroup(click.Group):
    """``lazy`` maps the names of commands to the module below ``pkgrepo.commands`` and the name in it."""

    def __init__(self, *arguments: Any, lazy: Mapping[str, tuple[str, str]], **rest: Any) -> None:
        super().__init__(*arguments, **rest)
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click calls it by keyword
        """Return the names of all commands, in the order of ``lazy``."""
        return list(self._lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import and return the command of this name."""
        if cmd_name not in self._lazy:
            return None
        module, name = self._lazy[cmd_name]
        command: click.Command = getattr(import_module(f"pkgrepo.commands.{module}"), name)
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


@click.group("repo", cls=LazyGroup, lazy=_REPO)
def repo() -> None:
    """Repositories of a server, by its API."""


@click.group("package", cls=LazyGroup, lazy=_PACKAGE)
def package() -> None:
    """Packages and versions on a server. REPOSITORY is written as STORAGE/REPOSITORY."""


@click.group(cls=LazyGroup, lazy=_STORAGE)
def storage() -> None:
    """
    Storages of a server, by its API.

    "adopt" and "move" work on the data folder, for storages that were moved or belong to another catalog; stop the
    server first.
    """


@click.group("bundle", cls=LazyGroup, lazy=_BUNDLE)
def bundle() -> None:
    """Repositories in one signed file, for a server without a network."""
