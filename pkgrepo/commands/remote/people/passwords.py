"""Passwords that people type, or that are in a file; never on the command line, where other users see them."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import IO, Any

import click

from pkgrepo.commands.exits import EXIT_CODES, fail
from pkgrepo.errors import Invalid


def asking_password(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the parameter ``password``, from a file or from the person at the terminal, who types it twice."""

    @click.option("--password-file", type=click.File(), help="Read the password from a file (- means standard input).")
    @wraps(command)
    def run(*, password_file: IO[str] | None, **given: Any) -> None:
        command(password=ask_password(password_file, repeated=True), **given)

    return run


def ask_password(file: IO[str] | None, *, repeated: bool) -> str:
    """The password in a file, or that a person types, twice if it is ``repeated``."""
    if file is not None:
        return read_password(file)
    return str(click.prompt("Password", hide_input=True, confirmation_prompt=repeated, err=True))


def read_password(file: IO[str]) -> str:
    """The password in a file; the program ends if there is none."""
    try:
        password = file.read().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file.name} holds no password: {error}", 1)
    if not password:
        fail(f"{file.name} holds no password", EXIT_CODES[Invalid])
    return password
