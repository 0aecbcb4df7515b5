"""The command itself: arguments, output, exit code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import click
from twisted.internet.defer import Deferred
from twisted.internet.defer import TimeoutError as DeferredTimeout
from twisted.internet.task import react

from pkgrepo.commands.exits import EXIT_CODES, fail
from pkgrepo.commands.http.addresses import is_plain, parse_address
from pkgrepo.commands.http.failures import Failed, exit_code
from pkgrepo.commands.progress import make_progress
from pkgrepo.commands.texts import printable
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.startup.announcements import sentence_of

from .client import DeployClient, Target
from .credentials import read_authorization
from .staging import Staging, read_staging
from .zip_stream import zip_pieces

SHOWN = 20  # files that are left out, and errors


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--to", "url", required=True, metavar="URL", help="The address of the Maven repository.")
@click.option("--name", default="", help="What people see as the name of the deployment.")
@click.option("--token-file", type=click.Path(path_type=Path), help="Read the access token from a file.")
@click.option("--hold", is_flag=True, help="Let the server check everything, and publish later, by a second request.")
@click.option("--timeout", "minutes", default=60.0, show_default=True, help="Give up after so many minutes.")
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
    work = Deferred.fromCoroutine(DeployClient(reactor, target).deploy(partial(_pieces, staging), _tell_state))
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
