"""``pkgrepo snapshot``: what was changed in a repository since a date."""

from __future__ import annotations

from typing import Any, Final

import click

from pkgrepo.client.printer import Column, parse_time
from pkgrepo.client.session import Session, remote
from pkgrepo.display import plural

FEW: Final = 5  # versions in a cell


def _versions(kind: str) -> Any:
    def text(each: dict[str, Any]) -> str:
        shown, count = each[kind][-FEW:], each[f"{kind}_count"]
        return ", ".join([*shown, *([f"{count - len(shown)} more"] if count > len(shown) else [])])

    return text


def _tags(each: dict[str, Any]) -> str:
    return ", ".join(f"{tag['tag']}: {tag['then'] or 'none'} -> {tag['now'] or 'none'}" for tag in each["tags"])


def _states(each: dict[str, Any]) -> str:
    return ", ".join(f"{state['version']}: {state['then']} -> {state['now']}" for state in each["states"])


COLUMNS = (
    Column("PACKAGE", "package"),
    Column("REPOSITORY", "repository"),
    Column("CAME", _versions("added")),
    Column("WENT", lambda each: "the package: " * each["gone"] + _versions("removed")(each)),
    Column("TAGS", _tags),
    Column("STATES", _states),
)


@click.command()
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.option("--at", "at", required=True, metavar="DATE", help="Such as 2026-09-01, or 2026-09-01T12:00Z.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many packages.")
@remote
async def snapshot(session: Session, repository: str, at: str, limit: int | None) -> None:
    """
    Show what was changed in a repository since a date, and where clients find it as it was.

    Clients install from the address with the date as from any repository.
    """
    items: list[Any] = []
    found = await session.client.get("repository", repository, "snapshot", at=at)
    while True:
        items += found["items"]
        if found["next"] is None or (limit is not None and len(items) >= limit):
            break
        found = await session.client.get("repository", repository, "snapshot", at=at, cursor=found["next"])
    found["items"] = items[:limit]
    printer = session.printer
    if printer.as_json:
        printer.json(found)
        return
    printer.table(COLUMNS, found["items"], "nothing was changed since")
    changed = plural(len(found["items"]), "package")
    printer.note(
        f"{changed} changed; {found['url']} is the repository as of {parse_time(found['at']):%Y-%m-%d %H:%M:%S} UTC"
    )
    for each in found["limits"]:
        printer.note(each)
