"""``pkgrepo search``: finds packages by name or description in all repositories that one may see."""

from __future__ import annotations

import click

from pkgrepo.commands.remote.printer import Column, aged
from pkgrepo.commands.remote.session import Session, remote

COLUMNS = (
    Column("PACKAGE", "name"),
    Column("REPOSITORY", "repository"),
    Column("FORMAT", "format"),
    Column("LATEST", "latest"),
    Column("VERSIONS", "versions", right=True),
    Column("DOWNLOADS", "downloads", right=True),
    Column("CHANGED", aged("updated_at")),
)


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option("--format", "format_", default="", help="Only packages of this format.")
@click.option("--repository", default="", metavar="STORAGE/REPOSITORY", help="Only in this repository.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="At most so many.")
@remote
async def search(session: Session, words: tuple[str, ...], format_: str, repository: str, limit: int) -> None:
    """Find packages by name or description, in all repositories that you may see."""
    found = await session.client.get(
        "search", "packages", q=" ".join(words), format=format_, repository=repository, limit=limit
    )
    if session.printer.as_json:
        session.printer.json(found)
        return
    session.printer.table(COLUMNS, found["items"], "no package has such a name")
    if found["truncated"]:
        session.printer.note("there are more: use --limit, or more words")
