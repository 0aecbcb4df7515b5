"""``pkgrepo advisories``: known vulnerabilities of stored packages, and the export that they come from."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.client.generated import add_operations
from pkgrepo.client.printer import Column
from pkgrepo.client.session import Session, remote
from pkgrepo.errors import PkgrepoError
from pkgrepo.model.advisories import SEVERITIES

MOST_NAMED = 3  # versions in a cell


def _versions(record: dict[str, Any]) -> str:
    more = record["affected_versions"] - MOST_NAMED
    return ", ".join(record["versions"][:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


COLUMNS = (
    Column("SEVERITY", lambda each: each["advisory"]["severity"]),
    Column("ADVISORY", lambda each: each["advisory"]["id"]),
    Column("REPOSITORY", "repository"),
    Column("PACKAGE", "package"),
    Column("VERSIONS", _versions),
    Column("FIXED IN", lambda each: ", ".join(each["advisory"]["fixed_versions"]) or "no version"),
    Column("TITLE", lambda each: each["advisory"]["title"]),
)


class Unchecked(PkgrepoError):  # noqa: N818 - named for what is the case
    """What is shown is not all: something is not known."""


@click.group()
def advisories() -> None:
    """Known vulnerabilities of stored packages, and the export that they come from."""


@advisories.command("list")
@click.option("--repository", "-r", default="", metavar="STORAGE/NAME", help="Only those in this repository.")
@click.option("--package", default="", help="With --repository, only those of this package.")
@click.option("--severity", type=click.Choice(SEVERITIES[::-1]), help="Only those of this severity.")
@click.option("--limit", type=click.IntRange(1, 1000), default=100, show_default=True, help="How many to list.")
@remote
async def list_advisories(session: Session, repository: str, package: str, severity: str | None, limit: int) -> None:
    """
    List the vulnerabilities of stored versions, the worst first.

    Exit code 1 if something was not checked, also if nothing was found: its data are missing or old.
    """
    given = {"repository": repository, "package": package, "severity": severity or "", "limit": str(limit)}
    query = {name: value for name, value in given.items() if value}
    found = await session.client.get("advisories", **query)
    if session.printer.as_json:
        session.printer.record(found, [])
    else:
        whole = found["checked"] and not package and not severity
        nothing = "no stored version has a known vulnerability" if whole else "nothing was found"
        session.printer.table(COLUMNS, found["items"], nothing)
    if found["unsupported"]:
        session.printer.note(f"not checked, since no database has their packages: {', '.join(found['unsupported'])}")
    if found["problems"]:
        raise Unchecked("; ".join(f"{name}: {problem}" for name, problem in sorted(found["problems"].items())))


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
