"""``pkgrepo project``: projects, their members, and the package names that they own."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.client.generated import add_operations
from pkgrepo.client.lifecycle.quotas import parse_limit
from pkgrepo.client.printer import time_with_age
from pkgrepo.client.session import Session, remote
from pkgrepo.display import size
from pkgrepo.errors import Invalid

ROLES = click.Choice(["guest", "reporter", "developer", "maintainer", "owner"])
GROUP = click.option("--group", is_flag=True, help="NAME is that of a group.")


@click.group()
def project() -> None:
    """Projects, which own package names, with their members."""


@project.command("show")
@click.argument("key")
@remote
async def show_project(session: Session, key: str) -> None:
    """Show a project with its members and names."""
    _show(session, await session.client.get("project", key))


@project.command("owner")
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.argument("package")
@remote
async def show_owner(session: Session, repository: str, package: str) -> None:
    """Show the project that owns a package name."""
    _show(session, await session.client.get("project", "by-key", repository, package))


@project.command("edit")
@click.argument("key")
@click.option("--name", help="The name for people.")
@click.option("--description", help="A text for people.")
@click.option("--visibility", help="public, private or hidden.")
@click.option("--quota", metavar="SIZE", help="The most bytes of its packages, such as 5GiB; none removes the limit.")
@remote
async def edit_project(session: Session, /, key: str, quota: str | None, **given: str | None) -> None:
    """Change a project."""
    body: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if quota is not None:
        body["quota"] = parse_limit("bytes", quota)
    if not body:
        raise Invalid("say what to change: see --help")
    session.printer.done(f"changed project {key}", await session.client.change("PATCH", "project", key, body=body))


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


def _show(session: Session, record: Any) -> None:
    members = [f"{each['name']}: {each['role']}" for each in record["members"] or ()]
    names = [f"{each['repository']}: {each['pattern']}" for each in record["bindings"]]
    session.printer.record(
        record,
        [
            ("project", record["key"]),
            ("id", record["id"]),
            ("name", record["name"]),
            ("description", record["description"]),
            ("visibility", record["visibility"]),
            ("created", time_with_age(record["created_at"])),
            ("quota", "" if (most := record["quota"]) is None else f"{size(record['usage_bytes'])} of {size(most)}"),
            ("members", "\n".join(members) if record["members"] is not None else "you may not see them"),
            ("owns", "\n".join(names) or "no names"),
        ],
    )
