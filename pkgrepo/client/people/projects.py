"""``pkgrepo project``: projects, their members, and the package names that they own."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.client.lifecycle.quotas import parse_limit
from pkgrepo.client.printer import Column, aged, time_with_age
from pkgrepo.client.session import Session, confirmed, remote
from pkgrepo.display import size
from pkgrepo.errors import Invalid

COLUMNS = (
    Column("PROJECT", "key"),
    Column("NAME", "name"),
    Column("VISIBILITY", "visibility"),
    Column("CHANGED", aged("updated_at")),
    Column("DESCRIPTION", "description"),
)
ROLES = click.Choice(["guest", "reporter", "developer", "maintainer", "owner"])
GROUP = click.option("--group", is_flag=True, help="NAME is that of a group.")


@click.group(short_help="Projects, which own names of packages")
def project() -> None:
    """Projects, which own package names, with their members."""


@project.command("list")
@remote
async def list_projects(session: Session) -> None:
    """List the projects that you may see."""
    session.printer.table(COLUMNS, await session.client.all_items("project"), "there are no projects that you may see")


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


@project.command("create")
@click.argument("key")
@click.option("--name", default="", help="The name for people.")
@click.option("--description", default="", help="A text for people.")
@click.option("--visibility", default="private", show_default=True, help="public, private or hidden.")
@remote
async def create_project(session: Session, key: str, name: str, description: str, visibility: str) -> None:
    """Add a project; you become its owner."""
    body = {"key": key, "name": name, "description": description, "visibility": visibility}
    session.printer.done(f"added project {key}", await session.client.change("POST", "project", body=body))


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


@project.command("delete")
@click.argument("key")
@confirmed("Remove project {key}? Its packages stay, without an owner.")
@remote
async def delete_project(session: Session, key: str) -> None:
    """Remove a project; its packages stay, without an owner."""
    await session.client.change("DELETE", "project", key)
    session.printer.done(f"removed project {key}")


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


@project.command("bind")
@click.argument("key")
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.argument("pattern")
@remote
async def bind(session: Session, key: str, repository: str, pattern: str) -> None:
    """Assign package names in a repository to a project, by a pattern."""
    body = {"repository": repository, "pattern": pattern}
    changed = await session.client.change("POST", "project", key, "bindings", body=body)
    session.printer.done(f"{key} owns {pattern} in {repository}", changed)


@project.command("unbind")
@click.argument("key")
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.argument("pattern")
@remote
async def unbind(session: Session, key: str, repository: str, pattern: str) -> None:
    """Take package names from a project, by the pattern exactly as it was assigned."""
    await session.client.change("DELETE", "project", key, "bindings", repository=repository, pattern=pattern)
    session.printer.done(f"{key} does not own {pattern} in {repository} any more")


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
