"""``pkgrepo repo replication``: how far a repository has followed the one of another server."""

from __future__ import annotations

import click

from pkgrepo.client.session import Session, remote
from pkgrepo.display import plural


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
    found = await session.run_job({}, *segments, **given)
    for each in found["first"]:
        session.printer.note(f"missing: {each}")
    if found["missing"] > len(found["first"]):
        session.printer.note(f"... and {found['missing'] - len(found['first'])} more")
    missing = f"; {plural(found['missing'], 'file or version', 'files or versions')} of its upstream missing"
    done = f"{path} is a hosted repository now" if confirm else f"{path} can become a hosted repository: add --confirm"
    session.printer.done(done + (missing if found["missing"] else "; nothing of its upstream missing"), found)
