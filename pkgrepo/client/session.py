"""
Runs commands that talk to a server.

``remote`` makes a command of a coroutine: it adds the options about the server, and ends the program with the exit code
for what happened.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Final, NoReturn, ParamSpec, TypeVar

import click
from attrs import frozen
from click.shell_completion import CompletionItem
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import deferLater, react

from pkgrepo.client.groups import INTERRUPTED
from pkgrepo.client.http import Failed, exit_code
from pkgrepo.client.profiles import Options, Target, find_target
from pkgrepo.client.terminal import EXIT_CODES, fail, make_progress, printable
from pkgrepo.errors import Invalid, PkgrepoError
from pkgrepo.sentences import sentence_of

from .api import Client, at
from .printer import Printer
from .profiles import find_profiles_file, read_profiles

POLL_S: Final = 1.0  # seconds between two looks at a job
WAIT_S: Final = 25  # that a request waits for the job that it starts
P = ParamSpec("P")
T = TypeVar("T")


@frozen
class Session:
    """What a command works with: the client of its server, and the printer of its results."""

    client: Client
    printer: Printer
    reactor: Any

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await deferLater(self.reactor, seconds)

    async def wait_for(self, job: Any) -> Any:
        """Wait until a job has ended, and show its progress. Its result. :raises Failed: it has not been done"""
        progress = make_progress()
        progress.begin("files", 0)
        done = 0

        def step(job: Any) -> None:
            nonlocal done
            now = sum(each["done"] for each in job["parts"])
            progress.step(now - done)
            done = now

        job = await self.ended(job, step)
        progress.end()
        return _result(job)

    async def run_job(self, body: dict[str, Any], *segments: str, **query: str) -> Any:
        """The result of a job that this request starts. :raises Failed: it failed, or was cancelled"""
        reply = await self.client.call("POST", at(*segments), value=body, query={"wait": WAIT_S, **query})
        return reply.value if reply.status != 202 else _result(await self.ended(reply.value))

    async def ended(self, job: Any, look: Callable[[Any], None] = lambda _job: None) -> Any:
        """Wait until a job has ended, and return it; ``look`` gets it whenever it was asked for."""
        while job["state"] in ("queued", "running"):
            await self.sleep(POLL_S)
            job = await self.client.get("job", job["id"])
            look(job)
        return job


def _result(job: Any) -> Any:
    if job["state"] != "done":
        raise Failed("; ".join(job["errors"]) or f"the job was {job['state']}")
    return job["result"]


def remote(command: Callable[Concatenate[Session, P], Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Make a command of a coroutine that gets a session before its own parameters."""

    @click.option("--profile", default="", help="The profile to use.", shell_complete=complete_profiles)
    @click.option("--url", default="", metavar="URL", help="The address of the server, instead of a profile's.")
    @click.option("--token-file", type=click.Path(path_type=Path), help="Read the access token from a file.")
    @click.option("--ca-file", type=click.Path(path_type=Path), help="Certificates of a private authority (PEM).")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
    @wraps(command)
    def run(profile: str, url: str, token_file: Path | None, ca_file: Path | None, as_json: bool, **given: Any) -> None:
        options = Options(profile=profile, url=url, token_file=token_file, ca_file=ca_file)
        target = checked(lambda: find_target(options, os.environ))
        run_with(target, Printer(as_json=as_json), lambda session: command(session, **given))  # type: ignore[call-arg]

    return run  # type: ignore[return-value]


def confirmed(question: str | Callable[..., str]) -> Callable[[Callable[P, None]], Callable[P, None]]:
    """
    Make a command ask before it does something, unless it has ``--yes`` or ``--dry-run``.

    ``question`` may have the names of parameters in braces, or is made of the parameters.
    """

    def decorate(command: Callable[P, None]) -> Callable[P, None]:
        @click.option("--yes", is_flag=True, help="Do not ask.")
        @wraps(command)
        def run(*, yes: bool, **given: Any) -> None:
            if not yes and not given.get("dry_run"):
                asked = question.format(**given) if isinstance(question, str) else question(**given)
                click.confirm(printable(asked), abort=True, err=True)
            command(**given)  # type: ignore[call-arg]

        return run  # type: ignore[return-value]

    return decorate


def run_with(target: Target, printer: Printer, work: Callable[[Session], Coroutine[Any, Any, None]]) -> None:
    """Run ``work`` with a session, and end the program; errors are printed and decide the exit code."""

    def main(reactor: Any) -> Deferred[None]:
        running = Deferred.fromCoroutine(_run(reactor, target, printer, work))
        reactor.addSystemEventTrigger("before", "shutdown", running.cancel)  # so that SIGINT removes what is unfinished
        return running

    react(main)


async def _run(reactor: Any, target: Target, printer: Printer, work: Callable[[Session], Awaitable[None]]) -> None:
    try:
        client = Client(reactor, target)
        try:
            await work(Session(client, printer, reactor))
        finally:
            await client.close()
    except CancelledError:
        sys.exit(INTERRUPTED)
    except click.Abort:  # a question was answered with no, or not at all
        click.echo("Aborted!", err=True)
        sys.exit(1)
    except BrokenPipeError:
        # the reader of the output has ended; nothing more is written to it, also not at the end of the program
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (PkgrepoError, OSError) as error:
        _fail(error)


def checked(read: Callable[[], T]) -> T:
    """What ``read`` returns; its errors end the program."""
    try:
        return read()
    except (PkgrepoError, OSError) as error:
        _fail(error)


def complete_profiles(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The names of the profiles that begin so."""
    try:
        names = read_profiles(find_profiles_file(os.environ)).profiles
    except (Invalid, OSError):
        return []
    return [CompletionItem(name) for name in sorted(names) if name.startswith(incomplete)]


def sentence_and_code(error: PkgrepoError | OSError) -> tuple[str, int]:
    """What is printed of an error, and the exit code of the program that it ends."""
    if isinstance(error, OSError):
        return printable(sentence_of(error)), 1
    code = next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1)
    if isinstance(error, Failed):
        code = exit_code(error.status)
    sentence = str(error)
    if isinstance(error, Failed) and error.status == 401:
        sentence += '; "pkgrepo login" gets a token'
    if isinstance(error, Failed) and error.page:
        sentence += f" (see {error.page} there)"
    return printable(sentence), code


def _fail(error: PkgrepoError | OSError) -> NoReturn:
    """Print an error, and end the program with its exit code."""
    fail(*sentence_and_code(error))
