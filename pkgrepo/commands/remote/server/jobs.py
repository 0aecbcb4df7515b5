"""``pkgrepo jobs``: what the server does in the background."""

from __future__ import annotations

import click

from pkgrepo.commands.http.failures import Failed
from pkgrepo.commands.remote.printer import moment
from pkgrepo.commands.remote.session import Session, remote

POLL_S = 1.0  # seconds between two looks at a job that is waited for


@click.group()
def jobs() -> None:
    """Background jobs of a server, such as garbage collections."""


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
            ("state", job["state"]),
            ("began", moment(job["created_at"])),
            ("ended", moment(job["finished_at"])),
            ("errors", "\n".join(job["errors"])),
            ("result", job["result"]),
        ],
    )
    if wait and job["state"] != "done":
        raise Failed(f"the job has {job['state']}")
