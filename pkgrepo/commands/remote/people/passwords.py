"""Passwords that people type, or that are in a file; never on the command line, where other users see them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import IO, Any

import click

from pkgrepo.commands.secrets import ask_secret, read_secret


def asking_password(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the parameter ``password``, from a file or from the person at the terminal, who types it twice."""

    @click.option("--password-file", type=click.File(), help="Read the password from a file (- means standard input).")
    @wraps(command)
    def run(*, password_file: IO[str] | None, **given: Any) -> None:
        command(password=ask_password(password_file, repeated=True), **given)

    return run


def ask_password(file: IO[str] | None, *, repeated: bool) -> str:
    """The password in a file, or that a person types, twice if it is ``repeated``."""
    return ask_secret(file, what="password", repeated=repeated)


def read_password(file: IO[str]) -> str:
    """The password in a file; the program ends if there is none."""
    return read_secret(file, what="password")
