"""``pkgrepo advisories``: known vulnerabilities of stored packages, and the export that they come from."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from pkgrepo.client.generated import add_operations
from pkgrepo.client.session import Session, remote
from pkgrepo.errors import Invalid


@click.group()
def advisories() -> None:
    """Known vulnerabilities of stored packages, and the export that they come from."""


add_operations(advisories, "advisories")


@advisories.command("add")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@remote
async def add(session: Session, file: Path) -> None:
    """
    Store the OSV record in FILE (- for standard input), ahead of the next export.

    What a record with an id MAL- names is refused at once.
    """
    try:
        value = json.loads(sys.stdin.read() if str(file) == "-" else file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise Invalid(f"{file}: {error}") from None
    found = await session.client.change("POST", "advisories", "records", body=value)
    named = ", ".join(found["packages"]) or "no package of a format that is here"
    blocked = ", which is refused now" if found["blocked"] else ""
    session.printer.done(f"{found['id']} is stored: it names {named}{blocked}", found)


@advisories.command("refresh")
@remote
async def refresh(session: Session) -> None:
    """Read the export again now, and wait until what has changed is stored."""
    found = await session.client.change("POST", "advisories", "refresh", wait="true")
    if "changed" not in found:
        session.printer.done(f"The refresh goes on as job {found['job_id']}.", found)
        return
    session.printer.record(
        found,
        [
            ("changed", str(found["changed"])),
            ("removed", str(found["removed"])),
            ("unreadable", str(found["unreadable"])),
            ("records", ", ".join(f"{name} {count}" for name, count in sorted(found["records"].items()))),
        ],
    )
