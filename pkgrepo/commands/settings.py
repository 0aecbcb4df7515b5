"""The settings of one call of the command line."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pkgrepo.config import Config


class Sources:
    """The configuration file and the ``--set`` options of this call; they are read when a command needs them."""

    def __init__(self, file: Path | None, assignments: tuple[str, ...]) -> None:
        self.file = file
        self.assignments = assignments

    def read(self, **more: str) -> Config:
        """
        The configuration; ``more`` has further settings, ``a__b`` for the key ``a.b``.

        If it has problems, prints every one and exits with code 2.
        """
        # Commands that talk to a server by its API need no settings, whose meanings take 50 ms to import.
        from pkgrepo.config import ConfigError, read_config  # noqa: PLC0415

        try:
            overrides = dict(parse_assignment(each) for each in self.assignments)
            overrides |= {name.replace("__", "."): value for name, value in more.items()}
            return read_config(self.file, environ=os.environ, overrides=overrides)
        except ConfigError as error:
            for problem in error.problems:
                click.echo(problem, err=True)
            sys.exit(2)


def parse_assignment(text: str, option: str = "--set") -> tuple[str, str]:
    """Name and value of ``NAME=VALUE``. :raises click.UsageError: there is no ``=``"""
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"{option} takes {'NAME=PATH' if option == '--storage' else 'KEY=VALUE'}, not {text!r}")
    return name.strip(), value
