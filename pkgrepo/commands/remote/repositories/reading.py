"""List and show repositories."""

from __future__ import annotations

import click

from pkgrepo.commands.http.failures import Failed
from pkgrepo.commands.remote.printer import Column, aged, moment, sized
from pkgrepo.commands.remote.session import Session, remote
from pkgrepo.web.rendering.filters import size


def path_of(record: dict[str, str]) -> str:
    """The path of a repository, from its record."""
    return f"{record['storage_name']}/{record['name']}"


COLUMNS = (
    Column("REPOSITORY", path_of),
    Column("FORMAT", "format"),
    Column("TYPE", "type"),
    Column("VISIBILITY", "visibility"),
    Column("PACKAGES", "package_count", right=True),
    Column("SIZE", sized("usage_bytes"), right=True),
    Column("CHANGED", aged("updated_at")),
    Column("STATE", lambda each: "active" if each["active"] else "off"),
)


@click.command("list")
@click.option("--format", "format_", default="", help="Only repositories of this format.")
@click.option("--type", "type_", default="", help="Only Hosted, Proxy or Virtual ones.")
@click.option("--storage", default="", help="Only repositories in this storage.")
@click.option("--visibility", default="", help="Only public, private or hidden ones.")
@click.option("-q", "--query", default="", help="Only those whose path or description contains this text.")
@remote
async def list_repositories(
    session: Session, format_: str, type_: str, storage: str, visibility: str, query: str
) -> None:
    """List the repositories that you may see."""
    found = await session.client.all_items(
        "repository",
        include_usage=True,
        format=format_,
        type=type_,
        storage=storage,
        visibility=visibility,
        q=query,
    )
    session.printer.table(COLUMNS, found, "there are no such repositories that you may see")


@click.command("show")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@remote
async def show_repository(session: Session, path: str) -> None:
    """Show a repository, and its configuration if you may change it."""
    record = await session.client.get("repository", path)
    try:
        config = await session.client.get("repository", path, "config")
    except Failed as error:
        if error.status not in (401, 403):
            raise
        config = None
    session.printer.warnings(record)
    session.printer.record(
        {**record, "config": config},
        [
            ("repository", path_of(record)),
            ("id", record["id"]),
            ("address", record["url"]),
            ("format", record["format"]),
            ("type", record["type"]),
            ("visibility", record["visibility"]),
            ("active", record["active"]),
            ("description", record["description"]),
            ("packages", record["package_count"]),
            ("size", size(record["usage_bytes"])),
            ("created", moment(record["created_at"])),
            ("changed", moment(record["updated_at"])),
            ("configuration", config),
        ],
    )
