"""Commands on pins: versions that no rule of retention removes."""

from __future__ import annotations

import click

from pkgrepo.client.named_versions import named_version
from pkgrepo.client.printer import Column, aged
from pkgrepo.client.session import Session, remote

PINS = (
    Column("REPOSITORY", "repository"),
    Column("PACKAGE", "package"),
    Column("VERSION", "version"),
    Column("BY", "by"),
    Column("PINNED", aged("pinned_at")),
    Column("REASON", "reason"),
)


@click.command("pin")
@click.argument("repository")
@click.argument("name", metavar="NAME==VERSION")
@click.argument("version", required=False)
@click.option("--reason", default="", help="Why it is to stay.")
@remote
async def pin(session: Session, repository: str, name: str, version: str | None, reason: str) -> None:
    """Pin a version, which retention then keeps. VERSION is a tag or a digest of an image."""
    package, chosen = named_version(name, version)
    place = ("package", repository, package, "versions", chosen, "pin")
    record = await session.client.change("PUT", *place, body={"reason": reason})
    session.printer.done(f"{record['package']} {record['version']} is pinned", record)


@click.command("unpin")
@click.argument("repository")
@click.argument("name", metavar="NAME==VERSION")
@click.argument("version", required=False)
@remote
async def unpin(session: Session, repository: str, name: str, version: str | None) -> None:
    """Unpin a version: rules of retention decide about it again."""
    package, chosen = named_version(name, version)
    await session.client.change("DELETE", "package", repository, package, "versions", chosen, "pin")
    session.printer.done(f"{package} {chosen} is not pinned any more", None)


@click.command("pins")
@click.argument("place", metavar="REPOSITORY|project:KEY")
@remote
async def list_pins(session: Session, place: str) -> None:
    """List the pinned versions of a repository, or of the packages that a project owns."""
    kind, _, key = place.partition(":")
    path = ("project", key, "pins") if kind == "project" and key else ("repository", place, "pins")
    session.printer.table(PINS, await session.client.get(*path), "nothing is pinned")
