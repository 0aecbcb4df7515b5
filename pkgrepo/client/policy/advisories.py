"""``pkgrepo advisories``: known vulnerabilities of stored packages, and the export that they come from."""

from __future__ import annotations

import click

from pkgrepo.client.generated import add_operations
from pkgrepo.client.session import Session, remote


@click.group()
def advisories() -> None:
    """Known vulnerabilities of stored packages, and the export that they come from."""


add_operations(advisories, "advisories")


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
