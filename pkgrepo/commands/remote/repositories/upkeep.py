"""
Jobs of the server on a repository, which are waited for: garbage collection, purges, rebuilds, verification.

``pkgrepo gc`` works on the data folder instead.
"""

from __future__ import annotations

from typing import Any

import click

from pkgrepo.commands.http.failures import Failed
from pkgrepo.commands.remote.client import at
from pkgrepo.commands.remote.printer import Printer
from pkgrepo.commands.remote.session import Session, confirmed, remote
from pkgrepo.web.rendering.filters import plural, size

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
    _show(session.printer, await _run(session, body, "repository", path, "gc"))


@click.command("purge")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@click.option("--package", help="Only what is kept of this package.")
@click.option("--pattern", help="Only packages whose names match, such as @team/*.")
@click.option("--older-than", metavar="AGE", help="Only what no upstream has confirmed for so long, such as 30d.")
@click.option("--documents-only", is_flag=True, help="Keep the files.")
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and remove nothing.")
@confirmed("Remove what {path} keeps of its upstreams?")
@remote
async def purge_cache(session: Session, /, path: str, **given: Any) -> None:
    """Let a proxy repository forget what it keeps of its upstreams."""
    body = {key: value for key, value in given.items() if value}
    found = await _run(session, body, "repository", path, "cache", "purge")
    verb = "would remove" if found["dry_run"] else "removed"
    session.printer.done(
        f"{verb} {plural(found['files'], 'file')} of {plural(found['packages'], 'package')} and "
        f"{plural(found['documents'], 'document')} ({size(found['freed_bytes'])})",
        found,
    )


@click.command("rebuild")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@remote
async def rebuild(session: Session, path: str) -> None:
    """Let the server make the documents of all packages of a repository anew."""
    found = await _run(session, {}, "repository", path, "rebuild")
    session.printer.done(f"compared {plural(found['packages'], 'package')} and changed {found['changed']}", found)


@click.command("verify")
@click.argument("path", metavar="STORAGE/REPOSITORY")
@remote
async def verify(session: Session, path: str) -> None:
    """Let the server read every stored file of a repository and compare its digest, and wait until it has."""
    found = await _run(session, {}, "repository", path, "verify")
    session.printer.done(
        f"read {plural(found['blobs'], 'blob')} ({size(found['size_bytes'])}): {found['missing']} missing, "
        f"{found['damaged']} damaged",
        found,
    )
    for sentence in found["errors"]:
        session.printer.note(sentence)
    if found["errors"]:
        raise Failed(f"{plural(len(found['errors']), 'problem')} found")


async def _run(session: Session, body: dict[str, Any], *segments: str) -> Any:
    """The result of a job that this request starts. :raises Failed: it failed, or somebody cancelled it"""
    reply = await session.client.call("POST", at(*segments), value=body, query={"wait": WAIT_S})
    if reply.status != 202:
        return reply.value
    job = reply.value
    while job["state"] in ("queued", "running"):
        await session.sleep(POLL_S)
        job = await session.client.get("job", job["id"])
    if job["state"] != "done":
        raise Failed("; ".join(job["errors"]) or f"the job was {job['state']}")
    return job["result"]


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
