"""``pkgrepo export`` and ``pkgrepo twin verify``."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import click
import msgspec

from pkgrepo.client.api import at
from pkgrepo.client.generated import add_operations
from pkgrepo.client.http import Failed
from pkgrepo.client.printer import Printer
from pkgrepo.client.session import Session, remote
from pkgrepo.client.terminal import Unsound, run_alone
from pkgrepo.errors import Invalid
from pkgrepo.s3.bucket import BucketFailed
from pkgrepo.s3.places import S3, Destination
from pkgrepo.untrusted.signed_lists import Manifest

from .bucket import BucketTwin, verify_bucket
from .contents import Export, export_repository
from .folder import FolderTwin
from .folder import verify as verify_folder
from .lists import Twin

P = ParamSpec("P")
T = TypeVar("T")

MOST_ROUNDS: Final = 5  # in which a repository that changes meanwhile is read again
PASSING: Final = (0, 429, 500, 502, 503, 504)  # statuses after which watching goes on; 0: no response


def bucket_options(command: Callable[P, T]) -> Callable[P, T]:
    """Add the options about a bucket."""
    for decorate in (
        click.option(
            "--endpoint",
            default="",
            envvar="AWS_ENDPOINT_URL",
            metavar="URL",
            help="s3: the address of the bucket's server; also AWS_ENDPOINT_URL.",
        ),
        click.option(
            "--region", default="us-east-1", envvar="AWS_REGION", show_default=True, help="s3: region; also AWS_REGION."
        ),
        click.option("--host-style", is_flag=True, help="s3: the bucket is a part of the host name."),
        click.option("--bucket-ca-file", default="", help="s3: certificates of a private authority (PEM)."),
    ):
        command = decorate(command)
    return command


@click.command("export")
@click.argument("repository", metavar="STORAGE/REPOSITORY")
@click.argument("target")
@click.option("--base-url", default="", metavar="URL", help="The address at which it is served; npm needs it.")
@click.option("--watch", is_flag=True, help="Go on, and bring it up to date when the repository changes.")
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1),
    default=5.0,
    show_default=True,
    help="With --watch: seconds between two looks whether it has changed.",
)
@click.option(
    "--addresses/--no-addresses",
    default=True,
    help="s3: store indexes also as objects at the addresses of their folders, as the bucket itself serves them.",
)
@click.option("--renew", is_flag=True, help="Fetch all files again, and replace those that were damaged.")
@bucket_options
@remote
async def export(
    session: Session,
    /,
    repository: str,
    target: str,
    *,
    base_url: str,
    watch: bool,
    interval: float,
    addresses: bool,
    renew: bool,
    **bucket: Any,
) -> None:
    """
    Write a repository as plain files that a web server or a bucket serves to unmodified clients: a static twin.

    TARGET is a folder, or a bucket as s3://bucket/prefix, whose credentials are in the environment (AWS_ACCESS_KEY_ID,
    AWS_SECRET_ACCESS_KEY). It is new, or has this twin: then only what has changed is written, and what is gone is
    removed. It has what you may read, as the server shows it to you, of proxies as far as their packages are listed. A
    list of all files with their digests is signed by the server if you have the action admin there.
    """
    record = await session.client.get("repository", repository)
    name = record["storage_name"] + "/" + record["name"]
    twin: Twin
    if target.startswith(S3):
        destination = _destination(target, **bucket)
        twin = await _reached(BucketTwin.open(session.reactor, destination, name, has_addresses=addresses, renew=renew))
    else:
        twin = FolderTwin(Path(target), name, renew=renew)
    try:
        await _export(session, record, twin, base_url, interval if watch else None)
    finally:
        await twin.close()


async def _export(session: Session, record: Any, twin: Twin, base_url: str, interval: float | None) -> None:
    """Bring a twin up to date, and with an ``interval`` again after each change."""
    while True:
        try:
            seq = await _reached(_bring_up_to_date(session, record, twin, base_url))
            if interval is None:
                return
            while await _last_event(session, record) == seq:
                await session.sleep(interval)
        except Failed as error:
            if interval is None or error.status not in PASSING:
                raise
            click.echo(str(error), err=True)
            await session.sleep(interval)


async def _reached(work: Awaitable[T]) -> T:
    """The result of work on a bucket. :raises Failed: it refuses, or does not answer"""
    try:
        return await work
    except BucketFailed as error:
        raise Failed(f"the bucket fails: {error.reason}", 503) from None


def _destination(target: str, endpoint: str, region: str, *, host_style: bool, bucket_ca_file: str) -> Destination:
    return Destination(
        address=target,
        endpoint=endpoint.rstrip("/"),
        region=region,
        path_style=not host_style,
        ca_file=bucket_ca_file,
    )


async def _bring_up_to_date(session: Session, record: Any, twin: Twin, base_url: str) -> int:
    """Write the twin until the repository has not changed meanwhile. Returns the number of the last event."""
    seq = await _last_event(session, record)
    for _ in range(MOST_ROUNDS):
        before, seq = seq, await _export_once(session, record, twin, base_url, seq)
        if seq == before:
            return seq
    raise Failed("the repository has changed while it was read, again and again; run this again", 503)


async def _export_once(session: Session, record: Any, twin: Twin, base_url: str, seq: int) -> int:
    """Write the twin as it is now. Returns the number of the last event, which is ``seq`` if nothing has changed."""
    path = f"{record['storage_name']}/{record['name']}"
    work = Export(session.client, path, str(record["url"]).rstrip("/"), base_url, twin)
    written = twin.written
    try:
        await export_repository(work)
    except Failed as error:
        latest = await _last_event(session, record) if error.status == 404 else seq
        if latest == seq:
            raise
        return latest  # what was listed is gone
    if record["type"] == "Virtual" and not work.listed:
        raise Invalid(f"{path} is virtual, and lists no packages: export its members")
    latest = await _last_event(session, record)
    if latest != seq:
        return latest  # a document may name a file that came after the files were read
    digest = await twin.finish(work.files)
    signed: dict[str, Any] = {}
    if not await twin.is_published(digest):
        try:
            signed = await session.client.change(
                "POST", "repository", path, "twin", body={"list_sha256": digest, "files": len(work.files)}
            )
        except Failed as error:
            if error.status not in (401, 403, 404):
                raise
        removed = await twin.publish(work.files, digest, signed)
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
            "left_out": work.left_out,
            "signed": bool(signed),
        },
    )
    for each in work.left_out:
        session.printer.note(f"left out: {each}")
    return latest


async def _last_event(session: Session, record: Any) -> int:
    """The number of the last event that may have changed a repository, of those that the caller may see."""
    query: dict[str, object] = {"limit": 1, "type": "package.*,tag.*,repository.*"}
    if record["type"] == "Hosted":
        query["repository"] = record["id"]
    reply = await session.client.call("GET", at("events"), query=query)
    lines = reply.body.splitlines()
    return int(msgspec.json.decode(lines[-1])["seq"]) if lines else 0


@click.group()
def twin() -> None:
    """Static twins of repositories, see export."""


add_operations(twin, "twin")


@twin.command("run")
@click.argument("name")
@remote
async def run_twin(session: Session, name: str) -> None:
    """Let the server bring a twin of its settings up to date now."""
    found = await session.run_job({}, "system", "twins", name)
    session.printer.done(
        f"{name}: {found['files']} files, of which {found['written']} were written and {found['removed']} removed",
        found,
    )


@twin.command("verify")
@click.argument("target")
@click.option(
    "--key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The server's public key (PEM), from GET /api/system/twin-key.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@bucket_options
def verify(target: str, key: Path | None, *, as_json: bool, **bucket: Any) -> None:
    """
    Compare every file of a twin with the list, and the list with the signature of the server.

    TARGET is as for export. Without --key the key is the one in the twin, whose digest is printed: compare it with that
    of the server.
    """
    pem = None if key is None else key.read_bytes()
    if target.startswith(S3):
        destination = _destination(target, **bucket)
        run_alone(lambda reactor: _tell(_reached(verify_bucket(reactor, destination, pem)), pem, as_json=as_json))
    else:
        run_alone(lambda _: _tell(_verify_folder(Path(target), pem), pem, as_json=as_json))


async def _verify_folder(root: Path, key: bytes | None) -> tuple[Manifest, list[str]]:
    return verify_folder(root, key)


async def _tell(work: Awaitable[tuple[Manifest, list[str]]], key: bytes | None, *, as_json: bool) -> None:
    manifest, problems = await work
    for problem in problems:
        click.echo(problem, err=True)
    printer = Printer(as_json=as_json)
    used = (manifest.key if key is None else key.decode()).strip()
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
        raise Unsound(len(problems))
    printer.done(
        f"{manifest.repository}: {manifest.files} files are sound; signed by the key {fingerprint[:32]}", value
    )
