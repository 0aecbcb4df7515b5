"""What a server does and did: the audit log, statistics, and background jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import click
import msgspec

from pkgrepo.client.generated import add_operations
from pkgrepo.client.http import Failed
from pkgrepo.client.named_objects import whole_id
from pkgrepo.client.printer import Column, parse_time, time_with_age
from pkgrepo.client.session import Session, remote

MOST_AT_ONCE: Final = 1000  # new rows that are printed at one look; the server's log has the others


def _time(each: Any) -> str:
    at = parse_time(each["time"])
    return "" if at is None else f"{at:%Y-%m-%d %H:%M:%S}"


COLUMNS = (
    Column("TIME", _time),
    Column("ACTOR", "actor"),
    Column("ADDRESS", "address"),
    Column("ACTION", "action"),
    Column("OBJECT", "object"),
    Column("OUTCOME", "outcome"),
    Column("DETAIL", lambda each: _detail(each["detail"])),
)


@click.command()
@click.option("--actor", default="", help="Only what this user did.")
@click.option("--object", "object_", default="", help="Only what was done to this.")
@click.option("--action", default="", help='Only this action; "user." with a dot at its end is a prefix.')
@click.option("--outcome", default="", help="Only ok, refused or failed.")
@click.option("--from", "from_", default="", metavar="TIME", help="From this time on, such as 2026-01-31T12:00:00Z.")
@click.option("--to", default="", metavar="TIME", help="Before this time.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many rows.")
@click.option("--follow", "-f", is_flag=True, help="Print new rows as they come, until you press Ctrl-C.")
@click.option(
    "--interval", type=click.FloatRange(min=0.2), default=2.0, show_default=True, help="Seconds between looks."
)
@remote
async def audit(
    session: Session,
    actor: str,
    object_: str,
    action: str,
    outcome: str,
    from_: str,
    to: str,
    limit: int,
    *,
    follow: bool,
    interval: float,
) -> None:
    """Read the audit log; the newest row is the last."""
    query = {"actor": actor, "object": object_, "action": action, "outcome": outcome, "from": from_, "to": to}
    found = await session.client.all_items("audit", most=limit, **query)
    found.reverse()
    if not follow:
        session.printer.table(COLUMNS, found, "there are no such rows")
        return
    last = 0
    while True:
        for each in found:
            _print_row(session, each)
        last = max([last, *(each["id"] for each in found)])
        await session.sleep(interval)
        found = await _after(session, last, query)


async def _after(session: Session, last: int, query: Mapping[str, str]) -> list[Any]:
    """The rows after the one with the number ``last``, the oldest first."""
    found: list[Any] = []
    async for each in session.client.items("audit", most=MOST_AT_ONCE, **query):
        if each["id"] <= last:
            break
        found.append(each)
    found.reverse()
    return found


def _print_row(session: Session, row: Any) -> None:
    """Print a row on one line, because the width of what follows is not known."""
    if session.printer.as_json:
        click.echo(msgspec.json.encode(row))
    else:
        session.printer.line("  ".join(column.text(row) for column in COLUMNS))


def _detail(detail: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value if isinstance(value, str) else _json(value)}" for key, value in detail.items())


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


@click.group()
def jobs() -> None:
    """Background jobs of a server, such as garbage collections."""


add_operations(jobs, "jobs")


@jobs.command("show")
@click.argument("id_", metavar="ID")
@click.option("--wait", is_flag=True, help="Wait until it has ended; a job that failed gives the exit code 1.")
@remote
async def show_job(session: Session, id_: str, *, wait: bool) -> None:
    """Show a job."""
    job = await session.client.get("job", await whole_id(session.client, ["job"], id_, paged=True))
    if wait:
        job = await session.ended(job)
    session.printer.record(
        job,
        [
            ("job", job["id"]),
            ("kind", job["kind"]),
            ("on", job["on"]),
            ("repository", job["repository"]),
            ("by", job["started_by"]),
            ("state", job["state"]),
            ("began", time_with_age(job["created_at"])),
            ("ended", time_with_age(job["finished_at"])),
            ("errors", "\n".join(job["errors"])),
            ("result", job["result"]),
        ],
    )
    if wait and job["state"] != "done":
        raise Failed(f"the job has {job['state']}")
