"""
``pkgrepo import plan``: the repositories and groups of another server, as a file to read and to apply.

Nothing is changed anywhere: the file is what ``pkgrepo repo apply`` takes, whose ``--dry-run`` shows what it would do.
"""

from __future__ import annotations

import shlex
from base64 import b64encode
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote

import click

from pkgrepo.client.http import Failed, is_plain, parse_address
from pkgrepo.client.printer import Printer
from pkgrepo.client.profiles import Target
from pkgrepo.client.session import Session, checked, run_with
from pkgrepo.client.terminal import ask_secret
from pkgrepo.errors import Invalid
from pkgrepo.importing.plan_rights import plan_artifactory_rights, plan_nexus_rights
from pkgrepo.importing.plans import Plan, plan_artifactory, plan_nexus


@click.command("plan")
@click.argument("kind", type=click.Choice(["nexus", "artifactory"]))
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
    Print the repositories and groups of a Nexus 3 or an Artifactory as JSON, for "pkgrepo repo apply".

    Hosted repositories are made empty, remote ones become proxies, groups of repositories become virtual ones. Roles,
    or groups in permissions, become groups with grants. Standard error has what comes next: imports and accounts as
    commands, the settings by which clients keep their addresses, and what is left to you. Nothing is changed. It needs
    an administrator there.
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
        plan = Plan(storage, visibility)
        await _PLANS[kind](session, url, plan)
        session.printer.json({"repositories": plan.repositories, "groups": plan.groups})
        _show_rest(session.printer, plan, username)

    run_with(target, Printer(as_json=True), work)


async def _plan_nexus(session: Session, url: str, plan: Plan) -> None:
    plan_nexus(url, _listed(await _get(session, "/service/rest/v1/repositorySettings")), plan)
    roles = _listed(await _get(session, "/service/rest/v1/security/roles"))
    plan_nexus_rights(roles, _listed(await _get(session, "/service/rest/v1/security/users?source=default")), plan)


async def _plan_artifactory(session: Session, url: str, plan: Plan) -> None:
    plan_artifactory(url, await _each(session, "/api/repositories", "key"), plan)
    plan_artifactory_rights(await _each(session, "/api/v2/security/permissions", "name"), plan)


_PLANS: Final = {"nexus": _plan_nexus, "artifactory": _plan_artifactory}


async def _each(session: Session, path: str, key: str) -> list[Any]:
    """The objects of a list that has only a key of each."""
    listed = _listed(await _get(session, path))
    keys = [each[key] for each in listed if isinstance(each, dict) and isinstance(each.get(key), str)]
    return [await _get(session, f"{path}/{quote(each, safe='')}") for each in keys]


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
        raise Invalid("the server does not list what it has: is that its address?")
    return found


def _show_rest(printer: Printer, plan: Plan, username: str) -> None:
    """Print what comes after the repositories, for people."""
    who = ["--username", username] if username else []
    printer.note(f"# {len(plan.repositories)} repositories. Apply them, and then take in what is hosted:")
    for take in plan.takes:
        printer.note(shlex.join(["pkgrepo", "import", *take.arguments, "--into", take.into, *who]))
    if plan.commands:
        printer.note("# People, who are also made by their first login with a provider or a directory:")
    for command in plan.commands:
        printer.note(shlex.join(["pkgrepo", *command]))
    for section, found in (("aliases", plan.aliases), ("hosts", plan.hosts)):
        if found:
            printer.note("# In the configuration file, so that clients keep their addresses:")
            printer.note(f"[{section}]")
        for place, repository in found.items():
            printer.note(f'"{place}" = "{repository}"')
    if plan.notes:
        printer.note("# Left to you:")
    for note in dict.fromkeys(plan.notes):
        printer.note(f"# {note}")
