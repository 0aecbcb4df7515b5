"""Secrets that people type, or that are in a file; never on the command line, where other users see them."""

from __future__ import annotations

from typing import IO

import click

from pkgrepo.commands.exits import EXIT_CODES, fail
from pkgrepo.errors import Invalid


def ask_secret(file: IO[str] | None, *, what: str, repeated: bool) -> str:
    """The secret in a file, or that a person types, twice if it is ``repeated``; ``what`` names it."""
    if file is not None:
        return read_secret(file, what=what)
    return str(click.prompt(what.capitalize(), hide_input=True, confirmation_prompt=repeated, err=True))


def read_secret(file: IO[str], *, what: str) -> str:
    """The secret in a file; the program ends if there is none."""
    try:
        secret = file.read().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file.name} holds no {what}: {error}", 1)
    if not secret:
        fail(f"{file.name} holds no {what}", EXIT_CODES[Invalid])
    return secret
