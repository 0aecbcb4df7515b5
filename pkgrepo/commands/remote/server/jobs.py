"""``pkgrepo jobs``: what the server does in the background."""

from __future__ import annotations

import click

from pkgrepo.commands.http.failures import Failed
from pkgrepo.commands.remote.printer import Column, aged, moment
from pkgrepo.commands.remote.session import Session, remote

POLL_S = 1.0  # seconds between two looks at a job that is waited for


COLUMNS = (
    Column("JOB", "id"),
    Column("KIND", "kind"),
    Column("STATE", "state"),
    Column("ON", "on"),
    Column("BY", "started_by"),
    Column("BEGAN", aged("created_at")),
    Column("ERRORS", lambda each: "; ".join(each["errors"])),
)


@click.group()
def jobs() -> None:
    """Background jobs of a server, such as garbage collections."""


@jobs.command("list")
@click.option("--kind", default="", help="Only jobs of this kind, such as gc.")
@click.option("--state", default="", help="Only running, done, failed or cancelled ones.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@remote
async def list_jobs(session: Session, kind: str, state: str, limit: int) -> None:
    """List the jobs of the last seven days, the newest first."""
    found = await session.client.all_items("job", most=limit, kind=kind, state=state)
    session.printer.table(COLUMNS, found, "there are no such jobs that you may see")


@jobs.command("cancel")
@click.argument("id_", metavar="ID")
@remote
async def cancel_job(session: Session, id_: str) -> None:
    """Ask a job to end; what it has done so far stays."""
    job = await session.client.change("POST", "job", id_, "cancel")
    session.printer.done(f"job {job['id']} is to end ({job['state']})", job)


@jobs.command("show")
@click.argument("id_", metavar="ID")
@click.option("--wait", is_flag=True, help="Wait until it has ended; a job that failed gives the exit code 1.")
@remote
async def show_job(session: Session, id_: str, *, wait: bool) -> None:
    """Show a job."""
    job = await session.client.get("job", id_)
    while wait and job["state"] in ("queued", "running"):
        await session.sleep(POLL_S)
        job = await session.client.get("job", id_)
    session.printer.record(
        job,
        [
            ("job", job["id"]),
            ("kind", job["kind"]),
            ("on", job["on"]),
            ("repository", job["repository"]),
            ("by", job["started_by"]),
            ("state", job["state"]),
            ("began", moment(job["created_at"])),
            ("ended", moment(job["finished_at"])),
            ("errors", "\n".join(job["errors"])),
            ("result", job["result"]),
        ],
    )
    if wait and job["state"] != "done":
        raise Failed(f"the job has {job['state']}")
