"""
``pkgrepo import plan``: the repositories of another server, as a file to read and to apply.

Nothing is changed anywhere: the file is what ``pkgrepo repo apply`` takes, whose ``--dry-run`` shows what it would do.
"""

from __future__ import annotations

import shlex
from base64 import b64encode
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote

import click

from pkgrepo.commands.http import Failed, is_plain, parse_address
from pkgrepo.commands.remote.printer import Printer
from pkgrepo.commands.remote.profiles import Target
from pkgrepo.commands.remote.session import Session, checked, run_with
from pkgrepo.commands.terminal import ask_secret
from pkgrepo.errors import Invalid
from pkgrepo.importing.plans import Plan, plan_artifactory, plan_nexus

MAKERS: Final[dict[str, Callable[[str, Iterable[Any], Plan], Plan]]] = {
    "nexus": plan_nexus,
    "artifactory": plan_artifactory,
}


@click.command("plan")
@click.argument("kind", type=click.Choice(list(MAKERS)))
@click.argument("address")
@click.option("--username", default="", help="User name there; the password is asked for, or read as below.")
@click.option("--password-file", type=click.File(), help="File with the password, or without --username the token.")
@click.option("--storage", default="main", show_default=True, help="The storage of the repositories here.")
@click.option(
    "--visibility",
    type=click.Choice(["private", "public", "hidden"]),
    default="private",
    show_default=True,
    help="Who may read them.",
)
@click.option("--ca-file", type=click.Path(path_type=Path), help="Certificates of a private authority (PEM).")
def print_plan(
    kind: str,
    address: str,
    username: str,
    password_file: IO[str] | None,
    storage: str,
    visibility: str,
    ca_file: Path | None,
) -> None:
    """
    Print the repositories of a Nexus 3 or an Artifactory as JSON, for "pkgrepo repo apply".

    Hosted repositories are made empty, remote ones become proxies, groups become virtual repositories. Standard error
    has what comes next: the imports as commands, the settings by which clients keep their addresses, and what is left
    to you. Nothing is changed. It needs an administrator there.
    """
    url = checked(lambda: parse_address(address, "a server: https://nexus.corp.example", "the address"))
    secret = ask_secret(password_file, repeated=False) if username or password_file else ""
    if secret and is_plain(url):
        click.echo("warning: the credentials are not encrypted on their way to this address", err=True)
    authorization = f"Bearer {secret}" if secret else ""
    if username:
        authorization = "Basic " + b64encode(f"{username}:{secret}".encode()).decode("ascii")
    target = Target(url, authorization, ca_file.absolute() if ca_file else None)

    async def work(session: Session) -> None:
        plan = MAKERS[kind](url, await _READERS[kind](session), Plan(storage, visibility))
        session.printer.json({"repositories": plan.repositories})
        _show_rest(session.printer, plan, username)

    run_with(target, Printer(as_json=True), work)


async def _read_nexus(session: Session) -> list[Any]:
    return _listed(await _get(session, "/service/rest/v1/repositorySettings"))


async def _read_artifactory(session: Session) -> list[Any]:
    listed = _listed(await _get(session, "/api/repositories"))
    keys = [each["key"] for each in listed if isinstance(each, dict) and isinstance(each.get("key"), str)]
    return [await _get(session, f"/api/repositories/{quote(key, safe='')}") for key in keys]


_READERS: Final = {"nexus": _read_nexus, "artifactory": _read_artifactory}


async def _get(session: Session, path: str) -> Any:
    """The JSON at a path of the other server. :raises Failed: it refused, or was not reached"""
    url = f"{session.client.url}{path}"
    try:
        return (await session.client.call("GET", path)).value
    except Failed as error:
        if error.status in (401, 403):
            raise Failed(f"{url} is for its administrators: HTTP status {error.status}", error.status) from None
        if error.status:
            raise Failed(f"{url} answers with HTTP status {error.status}: is that its address?", error.status) from None
        raise


def _listed(found: Any) -> list[Any]:
    if not isinstance(found, list):
        raise Invalid("the server does not list its repositories: is that its address?")
    return found


def _show_rest(printer: Printer, plan: Plan, username: str) -> None:
    """Print what comes after the repositories, for people."""
    who = ["--username", username] if username else []
    printer.note(f"# {len(plan.repositories)} repositories. Apply them, and then take in what is hosted:")
    for take in plan.takes:
        printer.note(shlex.join(["pkgrepo", "import", *take.arguments, "--into", take.into, *who]))
    for section, found in (("aliases", plan.aliases), ("hosts", plan.hosts)):
        if found:
            printer.note("# In the configuration file, so that clients keep their addresses:")
            printer.note(f"[{section}]")
        for place, repository in found.items():
            printer.note(f'"{place}" = "{repository}"')
    if plan.notes:
        printer.note("# Left to you:")
    for note in plan.notes:
        printer.note(f"# {note}")
