"""``pkgrepo stage``: releases that wait for an approval, their approval and rejection."""

from __future__ import annotations

import click

from pkgrepo.client.forms import staged
from pkgrepo.client.generated import add_operations
from pkgrepo.client.named_objects import whole_id
from pkgrepo.client.session import Session, remote
from pkgrepo.display import plural


@click.group()
def stage() -> None:
    """Stages: releases that wait for an approval before clients get them."""


add_operations(stage, "stage")


@stage.command("approve")
@click.argument("id_", metavar="ID")
@remote
async def approve(session: Session, id_: str) -> None:
    """Publish all that is staged, at once."""
    id_ = await whole_id(session.client, ["stages"], id_, paged=True)
    seen = await session.client.get("stages", id_)
    done = await session.client.change("POST", "stages", id_, "approve", body={"serial": seen["serial"] or None})
    what = plural(done["items"], "item")
    session.printer.done(f"approved: {what} published in {done['repository']}: {staged(done)}", done)
