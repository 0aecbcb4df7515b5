"""Yank and delete versions."""

from __future__ import annotations

import click

from pkgrepo.commands.remote.session import Session, confirmed, remote
from pkgrepo.web.rendering.filters import plural


@click.command("yank")
@click.argument("repository")
@click.argument("name")
@click.argument("version")
@click.option("--reason", default="", help="Clients show it.")
@remote
async def yank(session: Session, repository: str, name: str, version: str, reason: str) -> None:
    """Yank a version: clients do not choose it any more, and its files stay."""
    place = ("package", repository, name, "versions", version)
    record = await session.client.change("POST", *place, "yank", body={"reason": reason})
    session.printer.done(f"{record['package']} {record['version']} is {record['state']}", record)


@click.command("unyank")
@click.argument("repository")
@click.argument("name")
@click.argument("version")
@remote
async def unyank(session: Session, repository: str, name: str, version: str) -> None:
    """Undo a yank."""
    record = await session.client.change("POST", "package", repository, name, "versions", version, "unyank")
    session.printer.done(f"{record['package']} {record['version']} is {record['state']}", record)


@click.command("delete")
@click.argument("repository")
@click.argument("name")
@click.argument("version", required=False)
@click.option("--dry-run", is_flag=True, help="Print what would be deleted.")
@confirmed("Delete {name} from {repository}?")
@remote
async def delete(session: Session, repository: str, name: str, version: str | None, *, dry_run: bool) -> None:
    """Delete a package, or one of its versions; of an image a tag, or a manifest by its digest."""
    below = () if version is None else ("versions", version)
    gone = await session.client.change("DELETE", "package", repository, name, *below, dry_run=dry_run)
    printer = session.printer
    what = f"{name}{'' if version is None else ' ' + version} with {plural(len(gone['deleted']), 'file')}"
    if not printer.as_json:
        for each in gone["deleted"]:
            printer.line(f"  {each}")
    printer.done(f"would delete {what}" if dry_run else f"deleted {what}", gone)
