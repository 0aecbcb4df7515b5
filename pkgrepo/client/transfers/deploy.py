"""
``pkgrepo deploy``: send a staging folder as one bundle, and wait until it is published.

==========================================  ========================================================
credentials from                            sent as
==========================================  ========================================================
``--token-file``                            a bearer token
``PKGREPO_DEPLOY_TOKEN``                    a bearer token
``PKGREPO_DEPLOY_USER``, ``.._PASSWORD``    Basic; the password may be a token, too
==========================================  ========================================================

Sending is repeated when the connection breaks: the same files again change nothing, so a bundle that had arrived
already does no harm. Once the server has answered with the id of the deployment, only its state is asked.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click
from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.task import deferLater, react

from pkgrepo.client.api import Client, Response
from pkgrepo.client.http import (
    Failed,
    IteratorBody,
    Unreachable,
    check_token,
    exit_code,
    is_plain,
    parse_address,
    read_token,
)
from pkgrepo.client.profiles import Target as Server
from pkgrepo.client.terminal import EXIT_CODES, fail, make_progress, printable
from pkgrepo.client.transfers.staging import Staging, read_staging, zip_pieces
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.sentences import sentence_of

SHOWN = 20  # files that are left out, and errors

ATTEMPTS: Final = 4
FIRST_PAUSE_S: Final = 1.0  # before the second attempt; doubled before each further one
POLL_S: Final = 0.2  # before the state is asked again; grows to ``MOST_POLL_S``
MOST_POLL_S: Final = 5.0
TIMEOUT_S: Final = 3600.0
RUNNING: Final = ("PENDING", "VALIDATING", "PUBLISHING")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--to", "url", required=True, metavar="URL", help="The address of the Maven repository.")
@click.option("--name", default="", help="What people see as the name of the deployment.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Read the access token from a file.")
@click.option("--hold", is_flag=True, help="Let the server check everything, and publish later, by a second request.")
@click.option("--timeout", "minutes", default=TIMEOUT_S / 60, show_default=True, help="Give up after so many minutes.")
def deploy(folder: Path, url: str, name: str, token_file: Path | None, *, hold: bool, minutes: float) -> None:
    """
    Publish all artifacts of FOLDER at once, or none.

    FOLDER has the layout of a Maven repository, as "mvn deploy -DaltDeploymentRepository=x::default::file:FOLDER" fills
    it. The server computes checksums and metadata; checksums in the folder are compared. Credentials come from the
    variables PKGREPO_DEPLOY_TOKEN, or PKGREPO_DEPLOY_USER and PKGREPO_DEPLOY_PASSWORD, or from a file.

    It can be repeated after any failure: files that are published already change nothing.
    """
    address = _check_url(url)
    try:
        authorization = read_authorization(os.environ, token_file)
        staging = read_staging(folder)
    except Invalid as error:
        fail(str(error), EXIT_CODES[Invalid])
    except OSError as error:
        fail(sentence_of(error), 1)
    for path in staging.left_out[:SHOWN]:
        click.echo(f"left out, because it is no file of an artifact: {printable(path)}", err=True)
    if len(staging.left_out) > SHOWN:
        click.echo(f"and {len(staging.left_out) - SHOWN} more", err=True)
    if not staging.files:
        fail(f"there are no artifacts in {folder}", EXIT_CODES[NotFound])
    target = Target(url=address, authorization=authorization, name=name, automatic=not hold)
    react(partial(_main, target=target, staging=staging, timeout_s=minutes * 60))


def _main(reactor: Any, *, target: Target, staging: Staging, timeout_s: float) -> Deferred[None]:
    return Deferred.fromCoroutine(_run(reactor, target, staging, timeout_s))


async def _run(reactor: Any, target: Target, staging: Staging, timeout_s: float) -> None:
    work = Deferred.fromCoroutine(
        DeployClient(reactor, target, timeout_s).deploy(partial(_pieces, staging), _tell_state)
    )
    work.addTimeout(timeout_s, reactor)
    try:
        found = await work
    except Failed as error:
        fail(printable(str(error)), exit_code(error.status))
    except DeferredTimeout:
        fail(f"it took longer than {timeout_s / 60:g} minutes; the server may publish it nevertheless", 1)
    _finish(found)


def _pieces(staging: Staging) -> Iterator[bytes]:
    progress = make_progress()
    progress.begin("files sent", len(staging.files))
    yield from zip_pieces(staging.files, progress.step)
    progress.end()


def _finish(found: dict[str, Any]) -> None:
    uid, state = printable(str(found.get("deployment_id"))), found.get("state")
    if state == "PUBLISHED":
        for each in found.get("components", ()):
            coordinates = (str(each.get(key)) for key in ("group_id", "artifact_id", "version"))
            click.echo(f"published {printable(':'.join(coordinates))}")
        count = found.get("component_count", 0)
        click.echo(f"{count} components with {found.get('file_count', 0)} files are published (deployment {uid})")
        return
    if state == "VALIDATED":
        click.echo(f"deployment {uid} is valid, and waits to be published")
        return
    sentences = [(path, text) for path, texts in found.get("errors", {}).items() for text in texts]
    for path, text in sentences[:SHOWN]:
        click.echo(printable(f"{path}: {text}" if path else text), err=True)
    if len(sentences) > SHOWN:
        click.echo(f"and {len(sentences) - SHOWN} more", err=True)
    fail(f"nothing is published (deployment {uid})", exit_code(found.get("status", 0)))


def _tell_state(state: str) -> None:
    click.echo(f"state: {printable(state)}", err=True)


def _check_url(url: str) -> str:
    """The address without a slash at its end; exits if the text is no address, or has credentials."""
    try:
        address = parse_address(url, "a repository: https://host/repositories/storage/name", "--to")
    except Invalid as error:
        fail(str(error), EXIT_CODES[Invalid])
    if is_plain(address):
        click.echo("warning: the credentials are not encrypted on their way to this address", err=True)
    return address


def read_authorization(environ: Mapping[str, str], token_file: Path | None) -> str:
    """
    The value of the Authorization header field.

    :raises Invalid: there are no credentials, or they cannot be sent; :raises OSError: the file cannot be read
    """
    token = environ.get("PKGREPO_DEPLOY_TOKEN", "")
    if token_file is not None:
        return f"Bearer {read_token(token_file)}"
    if token:
        return f"Bearer {check_token(token, 'PKGREPO_DEPLOY_TOKEN')}"
    user, password = environ.get("PKGREPO_DEPLOY_USER", ""), environ.get("PKGREPO_DEPLOY_PASSWORD", "")
    if not user or not password:
        raise Invalid(
            "there are no credentials: set PKGREPO_DEPLOY_TOKEN, or PKGREPO_DEPLOY_USER and PKGREPO_DEPLOY_PASSWORD, "
            "or name a file with --token-file"
        )
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode("ascii")


@frozen
class Target:
    """Where and how artifacts are deployed; ``url`` is that of the repository, without a slash at its end."""

    url: str
    authorization: str
    name: str = ""
    automatic: bool = True


class DeployClient:
    """
    Deploys bundles to one repository; no request takes longer than ``timeout_s`` seconds.

    The second attempt comes after ``pause_s`` seconds; the state is asked for again after ``poll_s``.
    """

    def __init__(
        self,
        reactor: Any,
        target: Target,
        timeout_s: float = TIMEOUT_S,
        *,
        pause_s: float = FIRST_PAUSE_S,
        poll_s: float = POLL_S,
    ) -> None:
        self._reactor = reactor
        self._pause_s = pause_s
        self._poll_s = poll_s
        self._target = target
        server = Server(target.url, target.authorization)
        self._client = Client(reactor, server, call_s=timeout_s, idle_s=timeout_s)

    async def deploy(self, pieces: Callable[[], Iterator[bytes]], on_state: Callable[[str], None]) -> dict[str, Any]:
        """
        Send a bundle, whose bytes a new iterator brings for each attempt, and wait. Returns the last status.

        ``on_state`` is called with each state.

        :raises Failed: the server refused it, or was not reached
        """
        try:
            begun = await self._repeat(lambda: self._send(pieces))
            uid = begun.get("deployment_id")
            if not isinstance(uid, str):
                raise Failed(
                    "the server's answer has no id of a deployment; is this the address of a Maven repository?"
                )
            return await self._wait(uid, on_state)
        finally:
            await self._client.close()

    async def _send(self, pieces: Callable[[], Iterator[bytes]]) -> Response:
        body = IteratorBody(pieces(), self._reactor)
        query = {
            "publishing_type": "AUTOMATIC" if self._target.automatic else "USER_MANAGED",
            "name": self._target.name,
        }
        fields = {"Accept": "application/json", "Content-Type": "application/zip"}
        try:
            return await self._client.send("POST", "/deploy", body, fields, query=query)
        except Exception:
            if body.error is not None:  # a file could not be read
                raise Failed(str(body.error)) from None
            raise

    async def _wait(self, uid: str, on_state: Callable[[str], None]) -> dict[str, Any]:
        pause, told = self._poll_s, ""
        while True:
            found = await self._repeat(lambda: self._client.call("GET", f"/deploy/{quote(uid, safe='')}"))
            state = str(found.get("state"))
            if state != told:
                on_state(state)
                told = state
            if state not in RUNNING and not (state == "VALIDATED" and self._target.automatic):
                return found
            await deferLater(self._reactor, pause)
            pause = min(pause * 1.5, MOST_POLL_S)

    async def _repeat(self, attempt: Callable[[], Awaitable[Response]]) -> dict[str, Any]:
        """The JSON of the response, of an attempt that is repeated after broken connections and by a busy server."""
        pause = self._pause_s
        for left in reversed(range(ATTEMPTS)):
            try:
                value = (await attempt()).value
            except Unreachable as error:
                if not left or not error.again:
                    raise
            except Failed as error:
                if error.status != 503 or not left:
                    raise Failed(f"{error.status or ''} {error}".strip(), error.status) from None
            else:
                return value if isinstance(value, dict) else {}
            await deferLater(self._reactor, pause)
            pause *= 2
        raise AssertionError("the last attempt returns or raises")
