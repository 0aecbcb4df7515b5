"""Copies the catalog to another database."""

from __future__ import annotations

from pathlib import Path

import click

from pkgrepo.composition.databases import copy_catalog
from pkgrepo.errors import PkgrepoError

from .exits import fail_with
from .offline import check_catalog, check_unused
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
    check_unused(config)
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
