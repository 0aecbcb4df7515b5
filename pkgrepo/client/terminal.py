"""What commands share at a terminal: exit codes, secrets that are typed, texts from outside, progress."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Awaitable, Callable
from typing import IO, Any, NoReturn

import click
from twisted.internet.defer import Deferred
from twisted.internet.task import react

from pkgrepo.errors import AlreadyExists, Conflict, Forbidden, Invalid, NotFound, PkgrepoError
from pkgrepo.sentences import sentence_of

EXIT_CODES: dict[type[PkgrepoError], int] = {Invalid: 2, NotFound: 3, Forbidden: 4, AlreadyExists: 5, Conflict: 5}

# Control characters, and those that change the direction of what follows: both could make a terminal show what is not.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
LINE_EVERY_S = 10.0  # seconds between two lines about one part


class Unsound(PkgrepoError):  # noqa: N818 - named for what was found
    """The work is done and found problems, which were printed."""

    def __init__(self, count: int) -> None:
        super().__init__("1 problem was found" if count == 1 else f"{count} problems were found")


def fail(sentence: str, code: int) -> NoReturn:
    """Print the sentence on standard error and exit with the code."""
    click.echo(f"pkgrepo: {sentence}", err=True)
    sys.exit(code)


def fail_with(error: PkgrepoError) -> NoReturn:
    """Print an error and exit with its code."""
    fail(str(error), next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1))


def run_alone(work: Callable[[Any], Awaitable[None]]) -> NoReturn:
    """Run ``work`` with a reactor and end the program; errors are printed and decide the exit code."""

    async def run(reactor: Any) -> None:
        try:
            await work(reactor)
        except PkgrepoError as error:
            fail_with(error)
        except OSError as error:
            fail(sentence_of(error), 1)

    react(lambda reactor: Deferred.fromCoroutine(run(reactor)))
    raise AssertionError("react ends the program")


def ask_secret(file: IO[str] | None, *, what: str = "password", repeated: bool) -> str:
    """
    Return the secret in a file, or ask a person for it, twice if it is ``repeated``.

    Secrets are never arguments of a command, because other users can see those.
    """
    if file is not None:
        return read_secret(file, what=what)
    return str(click.prompt(what.capitalize(), hide_input=True, confirmation_prompt=repeated, err=True))


def read_secret(file: IO[str], *, what: str = "password") -> str:
    """Return the secret in a file; exit if it is empty or unreadable."""
    try:
        secret = file.read().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{file.name} holds no {what}: {error}", 1)
    if not secret:
        fail(f"{file.name} holds no {what}", EXIT_CODES[Invalid])
    return secret


def printable(text: str) -> str:
    """A text from outside without control characters, which could change the terminal."""
    return _CONTROL.sub("?", text)


class Bar:
    """A progress bar on a terminal."""

    def __init__(self) -> None:
        self._bar: Any = None

    def begin(self, label: str, total: int) -> None:
        """Start a part with ``total`` steps (0: unknown)."""
        # Without a length it needs an iterable, whose length is not known either.
        steps = None if total else iter(int, 1)
        self._bar = click.progressbar(steps, total or None, label, show_pos=not total, file=sys.stderr)
        self._bar.__enter__()

    def step(self, count: int = 1) -> None:
        """Add ``count`` finished steps."""
        self._bar.update(count)

    def end(self) -> None:
        """End the part."""
        self._bar.__exit__(None, None, None)
        self._bar = None


class Lines:
    """A line every ``LINE_EVERY_S`` seconds, for logs."""

    def __init__(self) -> None:
        self._label = ""
        self._total = self._done = 0
        self._told_at = 0.0

    def begin(self, label: str, total: int) -> None:
        """Start a part with ``total`` steps (0: unknown)."""
        self._label, self._total, self._done = label, total, 0
        self._told_at = time.monotonic()

    def step(self, count: int = 1) -> None:
        """Add ``count`` finished steps."""
        self._done += count
        if time.monotonic() - self._told_at >= LINE_EVERY_S:
            self._told_at = time.monotonic()
            self._tell()

    def end(self) -> None:
        """End the part."""
        self._tell()

    def _tell(self) -> None:
        of = f" of {self._total}" if self._total else ""
        click.echo(f"{self._label}: {self._done}{of}", err=True)


def make_progress() -> Bar | Lines:
    """A bar if standard error is a terminal, otherwise lines."""
    return Bar() if sys.stderr.isatty() else Lines()
