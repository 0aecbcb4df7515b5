"""``pkgrepo group``: groups of users, and what they may do."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.client.generated import add_operations
from pkgrepo.client.printer import time_with_age
from pkgrepo.client.session import Session, remote


@click.group()
def group() -> None:
    """Groups of users: grants and roles of a group are those of its members."""


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


add_operations(group, "group")


def _are(names: tuple[str, ...]) -> str:
    return f"{', '.join(names)} {'is' if len(names) == 1 else 'are'}"
