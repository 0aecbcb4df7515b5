"""``pkgrepo project``: projects, their members, and the package names that they own."""

from __future__ import annotations

import click

from pkgrepo.client.generated import add_operations
from pkgrepo.client.session import Session, remote

ROLES = click.Choice(["guest", "reporter", "developer", "maintainer", "owner"])
GROUP = click.option("--group", is_flag=True, help="NAME is that of a group.")


@click.group()
def project() -> None:
    """Projects, which own package names, with their members."""


@project.command("member")
@click.argument("key")
@click.argument("name")
@click.option("--role", type=ROLES, default="developer", show_default=True)
@GROUP
@remote
async def set_member(session: Session, key: str, name: str, role: str, *, group: bool) -> None:
    """Set the role of a user in a project."""
    body = {"group" if group else "user": name, "role": role}
    changed = await session.client.change("POST", "project", key, "members", body=body)
    session.printer.done(f"{name} is {role} in {key}", changed)


@project.command("remove-member")
@click.argument("key")
@click.argument("name")
@GROUP
@remote
async def remove_member(session: Session, key: str, name: str, *, group: bool) -> None:
    """Remove a member from a project."""
    await session.client.change("DELETE", "project", key, "members", **{"group" if group else "user": name})
    session.printer.done(f"{name} is no member of {key} any more")


add_operations(project, "project")
