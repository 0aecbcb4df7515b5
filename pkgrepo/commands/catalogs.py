"""Copies the catalog to another database."""

from __future__ import annotations

from pathlib import Path

import click

from pkgrepo.composition.databases import copy_catalog
from pkgrepo.config import Config
from pkgrepo.errors import PkgrepoError
from pkgrepo.storage.process_lock import ProcessLock
from pkgrepo.storage.storages_file import StoragesFile

from .exits import fail, fail_with
from .offline import check_catalog
from .settings import Sources


@click.command("migrate-catalog")
@click.argument("url", metavar="URL")
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the password for URL; without it, the one in database.password.",
)
@click.pass_obj
def migrate_catalog(sources: Sources, url: str, password_file: Path | None) -> None:
    """
    Copy the catalog to URL: an empty PostgreSQL database, or a new file (sqlite:///PATH).

    Stop the server first. It uses the copy when database.url is set to URL; the original stays as it is.
    """
    config = sources.read()
    password = {"database__password": password_file.read_text("utf-8").strip()} if password_file else {}
    target = sources.read(database__url=url, **password)
    check_catalog(config)
    _check_unused(config)
    total = 0

    def report(table: str, count: int) -> None:
        nonlocal total
        total += count
        if count:
            click.echo(f"{count:>12,}  {table}")

    try:
        copy_catalog(config, target, report)
    except PkgrepoError as error:
        fail_with(error)
    click.echo(f"{total:>12,}  rows in all; set database.url to {url}")


def _check_unused(config: Config) -> None:
    """Exit if a process uses a storage: what it writes from now on would be missing in the copy."""
    for each in StoragesFile(config.data.dir).list():
        if ProcessLock(config.data.dir / each.path).is_locked():
            fail(f"a server uses storage {each.name}: stop it first", 5)
