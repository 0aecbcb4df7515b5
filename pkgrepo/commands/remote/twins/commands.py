"""``pkgrepo export`` and ``pkgrepo twin verify``."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from pkgrepo.commands.http import Failed
from pkgrepo.commands.offline import Unsound
from pkgrepo.commands.remote.client import at
from pkgrepo.commands.remote.printer import Printer
from pkgrepo.commands.remote.session import Session, checked, remote
from pkgrepo.commands.terminal import fail_with
from pkgrepo.errors import Invalid

from .contents import FORMATS, Export
from .folder import TwinFolder
from .folder import verify as verify_folder

MOST_ROUNDS: Final = 5  # in which a repository that changes meanwhile is read again
PASSING: Final = (0, 429, 500, 502, 503, 504)  # statuses after which watching goes on; 0: no response


@click.command("export")
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--base-url", default="", metavar="URL", help="The address at which the folder is served; npm needs it.")
@click.option("--watch", is_flag=True, help="Go on, and bring it up to date when the repository changes.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="With --watch: seconds between two looks whether it has changed.",
)
@remote
async def export(
    session: Session, repository: str, folder: Path, *, base_url: str, watch: bool, interval: float
) -> None:
    """
    Write a repository into FOLDER as plain files that a web server serves to unmodified clients: a static twin.

    The folder is new, or has this twin: then only what has changed is written, and what is gone is removed. It has what
    you may read, as the server shows it to you, also of proxies and virtual repositories as far as their packages are
    listed. A list of all files with their digests is signed by the server if you have the action admin there.
    """
    record = await session.client.get("repository", repository)
    twin = checked(lambda: TwinFolder(folder, record["storage_name"] + "/" + record["name"]))
    while True:
        try:
            seq = await _bring_up_to_date(session, record, twin, base_url)
            if not watch:
                return
            while await _last_event(session) == seq:
                await session.sleep(interval)
        except Failed as error:
            if not watch or error.status not in PASSING:
                raise
            click.echo(str(error), err=True)
            await session.sleep(interval)


async def _bring_up_to_date(session: Session, record: Any, twin: TwinFolder, base_url: str) -> int:
    """Write the twin until the repository has not changed meanwhile. Returns the number of the last event."""
    seq = await _last_event(session)
    for _ in range(MOST_ROUNDS):
        before, seq = seq, await _export_once(session, record, twin, base_url, seq)
        if seq == before:
            return seq
    raise Failed("the repository has changed while it was read, again and again; run this again", 503)


async def _export_once(session: Session, record: Any, twin: TwinFolder, base_url: str, seq: int) -> int:
    """Write the twin as it is now. Returns the number of the last event, which is ``seq`` if nothing has changed."""
    path = f"{record['storage_name']}/{record['name']}"
    work = Export(session.client, path, str(record["url"]).rstrip("/"), base_url, twin)
    make = FORMATS.get(record["format"])
    if make is None:
        raise Invalid(f"repositories of the format {record['format']} have no twin")
    written = twin.written
    try:
        await make(work)
    except Failed as error:
        latest = await _last_event(session) if error.status == 404 else seq
        if latest == seq:
            raise
        return latest  # what was listed is gone
    latest = await _last_event(session)
    if latest != seq:
        return latest  # a document may name a file that came after the files were read
    digest, _ = twin.finish(work.files)
    signed: dict[str, Any] = {}
    if not twin.is_published(digest):
        try:
            signed = await session.client.change(
                "POST", "repository", path, "twin", body={"list_sha256": digest, "files": len(work.files)}
            )
        except Failed as error:
            if error.status not in (401, 403, 404):
                raise
        removed = twin.publish(work.files, digest, signed)
    else:
        removed, signed = 0, {"signature": "before"}
    session.printer.done(
        f"{path}: {len(work.files)} files, of which {twin.written - written} were written and {removed} removed"
        + (f"; {work.withheld} are withheld from you" if work.withheld else "")
        + ("" if signed else "; the list is not signed, which needs the action admin"),
        {
            "repository": path,
            "files": len(work.files),
            "written": twin.written - written,
            "removed": removed,
            "withheld": work.withheld,
            "signed": bool(signed),
        },
    )
    return latest


async def _last_event(session: Session) -> int:
    """The number of the last event that the caller may see."""
    reply = await session.client.call("GET", at("events"), query={"limit": 1, "type": "package.*,tag.*,repository.*"})
    lines = reply.body.splitlines()
    return int(msgspec.json.decode(lines[-1])["seq"]) if lines else 0


@click.group()
def twin() -> None:
    """Static twins of repositories, see export."""


@twin.command("verify")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The server's public key (PEM), from GET /api/system/twin-key.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def verify(folder: Path, key: Path | None, *, as_json: bool) -> None:
    """
    Compare every file of a twin with the list, and the list with the signature of the server.

    Without --key the key is the one in the folder, whose digest is printed: compare it with that of the server.
    """
    manifest, problems = checked(lambda: verify_folder(folder, None if key is None else key.read_bytes()))
    for problem in problems:
        click.echo(problem, err=True)
    printer = Printer(as_json=as_json)
    used = (key.read_text() if key is not None else manifest.key).strip()
    fingerprint = hashlib.sha256(used.encode()).hexdigest() if used else ""
    value = {
        "repository": manifest.repository,
        "files": manifest.files,
        "problems": problems,
        "key_sha256": fingerprint,
    }
    if problems:
        if as_json:
            printer.json(value)
        fail_with(Unsound(len(problems)))
    printer.done(
        f"{manifest.repository}: {manifest.files} files are sound; signed by the key {fingerprint[:32]}", value
    )
