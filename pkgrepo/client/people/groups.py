"""``pkgrepo group``: groups of users, and what they may do."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.client.people.grants import add_grant_commands
from pkgrepo.client.printer import Column, time_with_age
from pkgrepo.client.session import Session, confirmed, remote
from pkgrepo.errors import Invalid

COLUMNS = (Column("GROUP", "name"), Column("DESCRIPTION", "description"))
GRANTS = (
    Column("REPOSITORY", "repository"),
    Column("ACTIONS", lambda each: each["actions"] or "none"),
)


@click.group(short_help="Groups of users")
def group() -> None:
    """Groups of users: grants and roles of a group are those of its members."""


@group.command("list")
@click.option("-q", "--query", default="", help="Only groups whose name or description contains this text.")
@remote
async def list_groups(session: Session, query: str) -> None:
    """List groups."""
    session.printer.table(COLUMNS, await session.client.all_items("groups", q=query), "there are no such groups")


@group.command("show")
@click.argument("name")
@remote
async def show_group(session: Session, name: str) -> None:
    """Show a group with its members, grants, roles and service accounts."""
    record = await session.client.get("groups", name)
    members = await session.client.all_items("groups", name, "members")
    grants = [f"{each['repository']}: {', '.join(each['actions']) or 'none'}" for each in record["repositories"]]
    session.printer.record(
        {**record, "members": members},
        [
            ("group", record["name"]),
            ("id", record["id"]),
            ("description", record["description"]),
            ("created", time_with_age(record["created_at"])),
            ("members", ", ".join(each["username"] for each in members) or "none"),
            ("grants", "\n".join(grants)),
            ("projects", "\n".join(f"{each['project']}: {each['role']}" for each in record["projects"])),
            ("owns", ", ".join(record["services"])),
        ],
    )


@group.command("create")
@click.argument("name")
@click.option("--description", default="", help="A text for people.")
@remote
async def create_group(session: Session, name: str, description: str) -> None:
    """Add a group, without members."""
    body = {"name": name, "description": description}
    session.printer.done(f"added group {name}", await session.client.change("POST", "groups", body=body))


@group.command("edit")
@click.argument("name")
@click.option("--rename", "new_name", help="The new name.")
@click.option("--description", help="A text for people.")
@remote
async def edit_group(session: Session, name: str, new_name: str | None, description: str | None) -> None:
    """Change a group."""
    given = {"name": new_name, "description": description}
    body = {key: value for key, value in given.items() if value is not None}
    if not body:
        raise Invalid("say what to change: see --help")
    record = await session.client.change("PATCH", "groups", name, body=body)
    session.printer.done(f"changed group {record['name']}", record)


@group.command("delete")
@click.argument("name")
@confirmed("Remove group {name} with its grants and roles? Its members stay.")
@remote
async def delete_group(session: Session, name: str) -> None:
    """Remove a group; its members stay."""
    await session.client.change("DELETE", "groups", name)
    session.printer.done(f"removed group {name}")


@group.command("add")
@click.argument("name")
@click.argument("usernames", nargs=-1, required=True, metavar="USER...")
@remote
async def add_members(session: Session, name: str, usernames: tuple[str, ...]) -> None:
    """Add users to a group."""
    record: Any = None
    for each in usernames:
        record = await session.client.change("POST", "groups", name, "members", body={"user": each})
    session.printer.done(f"{_are(usernames)} in {name}", record)


@group.command("remove")
@click.argument("name")
@click.argument("usernames", nargs=-1, required=True, metavar="USER...")
@remote
async def remove_members(session: Session, name: str, usernames: tuple[str, ...]) -> None:
    """Remove users from a group."""
    for each in usernames:
        await session.client.change("DELETE", "groups", name, "members", body={"user": each})
    session.printer.done(f"{_are(usernames)} not in {name} any more")


add_grant_commands(
    group,
    ("groups", "NAME"),
    GRANTS,
    """
    Set what the members of a group may do in a repository.

    ACTIONS are read, write, overwrite, delete, edit, admin; "none" denies everything. The actions of several groups add
    up, and a grant of the user comes before them.
    """,
    "Remove a group's grant in a repository.",
)


def _are(names: tuple[str, ...]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
