"""``pkgrepo repo gc``: garbage collection by the server; ``pkgrepo gc`` works on the data folder instead."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.commands.http.failures import Failed
from pkgrepo.commands.remote.printer import Printer
from pkgrepo.commands.remote.session import Session, remote
from pkgrepo.web.rendering.filters import size

POLL_S = 1.0  # seconds between two looks at a job
WAIT_S = 25


@click.command("gc")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and remove nothing.")
@click.option(
    "--grace", "grace_s", type=click.IntRange(min=0), metavar="SECONDS", help="Keep what was used within this."
)
@click.option("--delete-untagged", is_flag=True, help="Also remove manifests without a tag.")
@remote
async def collect_garbage(
    session: Session, path: str, *, dry_run: bool, grace_s: int | None, delete_untagged: bool
) -> None:
    """Let the server remove bytes of a repository that nothing refers to, and wait until it has."""
    body: dict[str, Any] = {"dry_run": dry_run, "delete_untagged": delete_untagged}
    if grace_s is not None:
        body["grace_seconds"] = grace_s
    found = await session.client.change("POST", "repository", path, "gc", body=body, wait=WAIT_S)
    while found["state"] == "running":
        await session.sleep(POLL_S)
        job = await session.client.get("job", found["job_id"])
        found = job["result"] if job["state"] == "done" else job
    if found["state"] == "failed":
        raise Failed("; ".join(found["errors"]) or "the job failed")
    _show(session.printer, found)


def _show(printer: Printer, found: dict[str, Any]) -> None:
    verb = "would remove" if found["dry_run"] else "removed"
    removed, scanned = found["removed"], found["scanned"]
    printer.done(
        f"{verb} {removed['blobs']} of {scanned['blobs']} blobs ({size(found['freed_bytes'])}), "
        f"{removed['manifests']} of {scanned['manifests']} manifests and {removed['uploads']} unfinished uploads",
        found,
    )
    for sentence in dict.fromkeys((*(each["message"] for each in found["kept"]), *found["errors"])):
        printer.note(sentence)
