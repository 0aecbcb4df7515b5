"""``pkgrepo trash``: what was deleted, its restoring, and its deletion for good."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.client.printer import Column, aged
from pkgrepo.client.session import Session, confirmed, remote
from pkgrepo.display import size


def _what(entry: Any) -> str:
    """What an entry is, in a few words."""
    if entry["kind"] == "repository":
        return "the repository"
    names = ", ".join(entry["names"][:3])
    more = entry["items"] - min(3, len(entry["names"]))
    return f"{entry['package']} {names}{f' and {more} more' if more > 0 else ''}"


COLUMNS = (
    Column("ID", "id"),
    Column("REPOSITORY", "repository"),
    Column("KIND", "kind"),
    Column("WHAT", _what),
    Column("SIZE", lambda each: size(each["size"]), right=True),
    Column("DELETED", aged("deleted_at")),
    Column("BY", "by"),
    Column("REASON", "reason"),
)


@click.group()
def trash() -> None:
    """What was deleted and can be restored: versions, packages, tags, repositories."""


@trash.command("list")
@click.argument("repository", metavar="[STORAGE/REPOSITORY]", required=False)
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@remote
async def list_trash(session: Session, repository: str | None, limit: int) -> None:
    """List what is in the trash, the newest first."""
    query = {} if repository is None else {"repository": repository}
    found = await session.client.all_items("trash", most=limit, **query)
    session.printer.table(COLUMNS, found, "the trash has nothing that you may restore")


@trash.command("restore")
@click.argument("id_", metavar="ID")
@remote
async def restore(session: Session, id_: str) -> None:
    """Restore what was deleted, with its files, tags and times."""
    done = await session.client.change("POST", "trash", id_, "restore")
    what = f"{done['package']} in {done['repository']}" if done["package"] else done["repository"]
    session.printer.done(f"restored {what}", done)


@trash.command("purge")
@click.argument("id_", metavar="ID")
@confirmed("Delete entry {id_} of the trash for good?")
@remote
async def purge(session: Session, id_: str) -> None:
    """Delete something in the trash for good."""
    gone = await session.client.change("DELETE", "trash", id_)
    what = f"{gone['package']} in {gone['repository']}" if gone["package"] else gone["repository"]
    session.printer.done(f"deleted {what} for good ({size(gone['size'])})", gone)
