"""Exit codes of commands that fail, by error."""

from __future__ import annotations

import sys
from typing import NoReturn

import click

from pkgrepo.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound, PkgrepoError

EXIT_CODES: dict[type[PkgrepoError], int] = {Invalid: 2, NotFound: 3, Forbidden: 4, AlreadyExists: 5, Conflict: 5}

INTERRUPTED = 130  # as shells say of a program that SIGINT ended


def fail(sentence: str, code: int) -> NoReturn:
    """Print the sentence on standard error and exit with the code."""
    click.echo(f"pkgrepo: {sentence}", err=True)
    sys.exit(code)


def fail_with(error: PkgrepoError) -> NoReturn:
    """Print an error and exit with its code."""
    fail(str(error), next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1))
