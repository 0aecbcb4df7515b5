"""``pkgrepo stage``: releases that wait for an approval, their approval and rejection."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.client.generated import add_operations
from pkgrepo.client.printer import Column, aged
from pkgrepo.client.session import Session, remote
from pkgrepo.display import plural, size


def _title(item: Any) -> str:
    """Package and version, as people write them."""
    if item["kind"] == "file":
        return str(item["name"])
    return f"{item['package']}{':' if item['kind'] == 'tag' else '@'}{item['name']}"


def _what(stage: Any) -> str:
    """What a stage has, in a few words."""
    names = ", ".join(map(_title, stage["content"][:3]))
    more = stage["items"] - min(3, len(stage["content"]))
    return f"{names}{f' and {more} more' if more > 0 else ''}"


COLUMNS = (
    Column("ID", "id"),
    Column("REPOSITORY", "repository"),
    Column("STATE", "state"),
    Column("WHAT", _what),
    Column("SIZE", lambda each: size(each["size"]), right=True),
    Column("OPENED", aged("created_at")),
    Column("BY", "by"),
    Column("ENDED BY", "ended_by"),
)
CONTENT = (
    Column("KIND", "kind"),
    Column("PACKAGE", "package"),
    Column("NAME", "name"),
    Column("SIZE", lambda each: size(each["size"]), right=True),
)


@click.group()
def stage() -> None:
    """Stages: releases that wait for an approval before clients get them."""


add_operations(stage, "stage")


@stage.command("list")
@click.argument("repository", metavar="[STORAGE/REPOSITORY]", required=False)
@click.option("--state", type=click.Choice(("open", "approved", "rejected", "expired")), help="Only those.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@remote
async def list_stages(session: Session, repository: str | None, state: str | None, limit: int) -> None:
    """List stages, the newest first."""
    given = {"repository": repository, "state": state}
    found = await session.client.all_items("stages", most=limit, **{k: v for k, v in given.items() if v is not None})
    session.printer.table(COLUMNS, found, "there are no stages that you may see")


@stage.command("show")
@click.argument("id_", metavar="ID")
@remote
async def show_stage(session: Session, id_: str) -> None:
    """Show a stage and what is staged in it."""
    found = await session.client.get("stages", id_)
    if session.printer.as_json:
        session.printer.json(found)
        return
    names = ("id", "repository", "state", "description", "by", "url", "expires_at", "ended_by", "reason")
    session.printer.record(found, [(each.replace("_", " "), found[each]) for each in names if found[each]])
    session.printer.table(CONTENT, found["content"], "nothing is staged in it yet")


@stage.command("approve")
@click.argument("id_", metavar="ID")
@remote
async def approve(session: Session, id_: str) -> None:
    """Publish all that is staged, at once."""
    seen = await session.client.get("stages", id_)
    done = await session.client.change("POST", "stages", id_, "approve", body={"serial": seen["serial"] or None})
    what = plural(done["items"], "item")
    session.printer.done(f"approved: {what} published in {done['repository']}: {_what(done)}", done)
