"""The options of commands that name a bucket; its secret is typed or comes from a file, never on the command line."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import IO, Any

import click

from pkgrepo.commands.exits import EXIT_CODES, fail
from pkgrepo.errors import Invalid

from .secrets import ask_secret

_OPTIONS = (
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

    for option in reversed(_OPTIONS):
        run = option(run)
    return run
