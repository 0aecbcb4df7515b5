"""``pkgrepo repo uploads``: uploads of layers that have not ended."""

from __future__ import annotations

import click

from pkgrepo.client.printer import Column, aged
from pkgrepo.client.session import Session, confirmed, remote
from pkgrepo.display import size

COLUMNS = (
    Column("UPLOAD", "id"),
    Column("IMAGE", "package"),
    Column("USER", lambda each: each["user"] or "anonymous"),
    Column("RECEIVED", lambda each: size(each["received"]), right=True),
    Column("LAST USE", aged("used_at")),
    Column("STATE", lambda each: "running" if each["running"] else "idle"),
)


@click.group()
def uploads() -> None:
    """Unfinished uploads of a repository of images."""


@uploads.command("list")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@remote
async def list_uploads(session: Session, path: str) -> None:
    """List the uploads that have not ended; they expire a day after their last request."""
    found = await session.client.all_items("repository", path, "uploads")
    session.printer.table(COLUMNS, found, "there are no unfinished uploads")


@uploads.command("cancel")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@click.argument("upload")
@confirmed("Cancel the upload {upload}?")
@remote
async def cancel_upload(session: Session, path: str, upload: str) -> None:
    """Cancel an upload, and remove its bytes; one that a request is writing to is not cancelled."""
    await session.client.change("DELETE", "repository", path, "uploads", upload)
    session.printer.done(f"cancelled upload {upload}")
