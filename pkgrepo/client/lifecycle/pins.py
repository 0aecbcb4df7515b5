"""Commands on pins: versions that no rule of retention removes."""

from __future__ import annotations

import click

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


@click.command("pins")
@click.argument("place", metavar="REPOSITORY|project:KEY")
@remote
async def list_pins(session: Session, place: str) -> None:
    """List the pinned versions of a repository, or of the packages that a project owns."""
    kind, _, key = place.partition(":")
    path = ("project", key, "pins") if kind == "project" and key else ("repository", place, "pins")
    session.printer.table(PINS, await session.client.get(*path), "nothing is pinned")
