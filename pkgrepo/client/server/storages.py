"""The storages of a server, by its API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import IO, Any

import click

from pkgrepo.client.http import Failed
from pkgrepo.client.session import Session, remote
from pkgrepo.client.terminal import EXIT_CODES, ask_secret, fail
from pkgrepo.errors import Invalid

LAYOUT = click.option(
    "--readable-layout/--no-readable-layout", "readable", default=None, help="Keep the files under their names, too."
)

_BUCKET_OPTIONS = (
    click.option("--endpoint", metavar="URL", help="Address of a server that speaks the S3 protocol."),
    click.option("--bucket", metavar="NAME", help="The bucket there."),
    click.option("--prefix", help="How the keys of the storage begin in the bucket."),
    click.option("--region", help="Its region; without it us-east-1."),
    click.option("--path-style/--virtual-host", default=None, help="Name the bucket in the path or in the host name."),
    click.option("--redirect-from", metavar="SIZE", help="Clients get larger files from the bucket itself, as 64MiB."),
    click.option(
        "--bucket-ca-file", metavar="PATH", help="File of certificates on the server, trusted beside the system's."
    ),
    click.option(
        "--access-key-id",
        metavar="ID",
        help="The access key, whose secret is asked for; without it, credentials are found where the server runs.",
    ),
    click.option(
        "--secret-file", type=click.File(), help="Read the secret of the key from a file (- means standard input)."
    ),
)


def bucket_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the parameter ``bucket``: the given settings of a storage of type S3, as the API has them."""

    @wraps(command)
    def run(*, access_key_id: str | None, secret_file: IO[str] | None, bucket_ca_file: str | None, **given: Any) -> Any:
        names = ("endpoint", "bucket", "prefix", "region", "path_style", "redirect_from")
        bucket = {name: value for name in names if (value := given.pop(name)) is not None}
        if bucket_ca_file is not None:
            bucket["ca_file"] = bucket_ca_file
        if secret_file is not None and access_key_id is None:
            fail("--secret-file is that of --access-key-id, which is missing", EXIT_CODES[Invalid])
        if access_key_id is not None:
            secret = ask_secret(secret_file, what="secret access key", repeated=False)
            bucket |= {"access_key_id": access_key_id, "secret_access_key": secret}
        return command(bucket=bucket, **given)

    for option in reversed(_BUCKET_OPTIONS):
        run = option(run)
    return run


@click.command("create")
@click.argument("name")
@click.option("--type", "kind", type=click.Choice(["Local", "S3"], case_sensitive=False), help="Without it Local.")
@click.option("--path", help="The folder, on the machine of the server.")
@LAYOUT
@bucket_options
@remote
async def create_storage(
    session: Session, name: str, kind: str | None, path: str | None, bucket: Mapping[str, Any], *, readable: bool | None
) -> None:
    """
    Add a storage to a server: an empty or new folder, or an empty bucket or prefix.

    One of type S3 needs --endpoint and --bucket.
    """
    if bucket and kind != "S3":
        raise Invalid("a bucket is of a storage with --type S3")
    given = {"path": path, "readable_layout": readable}
    settings: dict[str, Any] = {key: value for key, value in given.items() if value is not None} | dict(bucket)
    body = {"name": name, "type": kind or "Local", "settings": settings}
    record = await session.client.change("POST", "storage", body=body)
    session.printer.warnings(record)
    session.printer.done(f"storage {record['name']} is at {record['settings']['path']}", record)


@click.command("edit")
@click.argument("name")
@click.option("--rename", help="The new name.")
@click.option("--active/--inactive", default=None, help="Whether the repositories in it are served.")
@LAYOUT
@bucket_options
@remote
async def edit_storage(
    session: Session,
    name: str,
    rename: str | None,
    bucket: Mapping[str, Any],
    *,
    active: bool | None,
    readable: bool | None,
) -> None:
    """Change a storage of a server; another endpoint of a bucket needs the access key again."""
    given: dict[str, Any] = {"name": rename, "active": active}
    body = {key: value for key, value in given.items() if value is not None}
    settings: dict[str, Any] = {} if readable is None else {"readable_layout": readable}
    if settings or bucket:
        body["settings"] = settings | dict(bucket)
    if not body:
        raise Invalid("say what to change: see --help")
    record = await session.client.change("PATCH", "storage", name, body=body)
    session.printer.warnings(record)
    session.printer.done(f"changed storage {record['name']}", record)


@click.command("check")
@click.argument("name")
@remote
async def check_storage(session: Session, name: str) -> None:
    """Write, read and remove a small file in a storage."""
    found = await session.client.change("POST", "storage", name, "check")
    if not found["ok"] and not session.printer.as_json:
        raise Failed(found["error"] or "the storage does not work")
    took = f"written in {found['write_ms']:.1f} ms, read in {found['read_ms']:.1f} ms"
    session.printer.done(f"{name} works: {found['bytes']} bytes were {took}", found)
