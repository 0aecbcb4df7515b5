"""
``pkgrepo import people``: the groups, rights and projects of another server, as a file to read and to apply.

Nothing is changed anywhere: the file is what ``pkgrepo repo apply`` takes, whose ``--dry-run`` shows what it would do.
Passwords and tokens are in no API, so accounts are named and not made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import click

from pkgrepo.client.api import Client
from pkgrepo.client.session import Session, remote
from pkgrepo.client.terminal import printable
from pkgrepo.errors import Invalid

OWN = "user"  # of a grant that is not a group's
PERSON = "person"  # kind of an account


@click.command("people")
@click.option(
    "--map",
    "renamed",
    multiple=True,
    metavar="FROM=TO",
    help="Another path of a repository in the file, or another pattern of a grant.",
)
@remote
async def preview_people(session: Session, renamed: Sequence[str]) -> None:
    """
    Print the groups, rights and projects of a server as JSON, for "pkgrepo repo apply".

    Log in to the server that you leave as a user manager (--profile). Nothing is changed. Users have to exist where the
    file is applied: their names are printed on standard error, as commands that make them. Nothing is printed if a
    pattern of a grant, perhaps one that refuses, would hold in a repository with another path and did not before, or
    the other way round.
    """
    paths = dict(each.split("=", 1) for each in renamed if "=" in each)
    client = session.client
    users = [each async for each in client.items("users") if each["active"]]
    people = [await _user(client, each, paths) for each in users if not (each["admin"] or each["owner"])]
    found = {
        "groups": [await _group(client, each, paths) async for each in client.items("groups")],
        "users": [each for each in people if each["grants"] or each["default_actions"]],
        "projects": [await _project(client, each["key"], paths) async for each in client.items("project")],
    }
    session.printer.json(found)
    for each in users:
        service = "" if each["kind"] == PERSON else " --service"
        mail = f" --email {each['email']}" if each["email"] else ""
        session.printer.note(f"pkgrepo user create {each['username']}{mail}{service}")


async def _user(client: Client, user: dict[str, Any], paths: dict[str, str]) -> dict[str, Any]:
    rights = await client.get("users", user["username"], "permissions")
    own = [each for each in rights["repositories"] if each["via"] == OWN]
    return {
        "username": user["username"],
        "grants": _grants(own, paths),
        "default_actions": rights["default_repository_actions"],
    }


async def _group(client: Client, group: dict[str, Any], paths: dict[str, str]) -> dict[str, Any]:
    record = await client.get("groups", group["name"])
    members = [each["username"] async for each in client.items("groups", group["name"], "members")]
    return {
        "name": group["name"],
        "description": group["description"],
        "members": members,
        "grants": _grants(record["repositories"], paths),
    }


async def _project(client: Client, key: str, paths: dict[str, str]) -> dict[str, Any]:
    record = await client.get("project", key)
    return {
        "key": key,
        "name": record["name"],
        "description": record["description"],
        "visibility": record["visibility"],
        "members": [{each["kind"]: each["name"], "role": each["role"]} for each in record["members"] or ()],
        "bindings": [
            {"repository": paths.get(each["repository"], each["repository"]), "pattern": each["pattern"]}
            for each in record["bindings"]
        ],
    }


def _grants(records: Sequence[dict[str, Any]], paths: Mapping[str, str]) -> list[dict[str, Any]]:
    _check_patterns(records, paths)
    return [
        {"repository": paths.get(each["repository"], each["repository"]), "actions": each["actions"]}
        for each in records
    ]


def _check_patterns(records: Sequence[dict[str, Any]], paths: Mapping[str, str]) -> None:
    """
    Check that the patterns among the grants of one user or group match the same repositories under their new paths.

    :raises Invalid: one does not
    """
    named = {each["repository"].lower() for each in records if each["repository_id"] is not None}
    for pattern in (each["repository"] for each in records if each["repository_id"] is None):
        new = paths.get(pattern, pattern)
        for before, after in paths.items():
            if {*"*?["} & {*before} or before.lower() in named:  # a grant by name decides alone
                continue
            if fnmatchcase(before.lower(), pattern) != fnmatchcase(after.lower(), new.lower()):
                raise Invalid(
                    f"the grant for {printable(pattern)} would not hold in the same repositories if {printable(before)}"
                    f" becomes {printable(after)}: give --map {printable(pattern)}=PATTERN, or grants by name there"
                )
