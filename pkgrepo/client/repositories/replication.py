"""``pkgrepo repo replication``: how far a repository has followed the one of another server."""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.client.repositories.commands import run_job
from pkgrepo.client.session import Session, remote
from pkgrepo.display import plural


@click.command("replication")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@click.option("--compare", is_flag=True, help="Compare everything anew, and try what failed.")
@remote
async def replication(session: Session, path: str, *, compare: bool) -> None:
    """Print how far a repository has followed the one of another server."""
    segments = ("repository", path, "replication")
    if compare:
        found = await session.client.change("POST", *segments, "compare", body={})
    else:
        found = await session.client.get(*segments)
    session.printer.done(_sentence(path, found), found)
    if found["error"]:
        session.printer.note(found["error"])


@click.command("promote-replica")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@click.option("--confirm", is_flag=True, help="Do it; without this only what is missing is printed.")
@remote
async def promote_replica(session: Session, path: str, *, confirm: bool) -> None:
    """
    Make a hosted repository of one that follows another server, which is not coming back.

    It keeps all that it has, and takes uploads. What is missing is named before.
    """
    segments = ("repository", path, "replication", "promote")
    given = {"confirm": path} if confirm else {"dry_run": "true"}
    found = await run_job(session, {}, *segments, **given)
    for each in found["first"]:
        session.printer.note(f"missing: {each}")
    if found["missing"] > len(found["first"]):
        session.printer.note(f"... and {found['missing'] - len(found['first'])} more")
    missing = f"; {plural(found['missing'], 'file or version', 'files or versions')} of its upstream missing"
    done = f"{path} is a hosted repository now" if confirm else f"{path} can become a hosted repository: add --confirm"
    session.printer.done(done + (missing if found["missing"] else "; nothing of its upstream missing"), found)


def _sentence(path: str, found: dict[str, Any]) -> str:
    lag_s = found["lag_seconds"]
    left = "has nothing left to do" if not found["lag_events"] else f"has {plural(found['lag_events'], 'thing')} to do"
    behind = "" if not lag_s else f", {round(lag_s)} s behind"
    failed = f", of which {plural(found['failed_tasks'], 'task')} failed" if found["failed_tasks"] else ""
    return f"{path} is {found['state']}: {found['source']}; it {left}{failed}{behind}"
