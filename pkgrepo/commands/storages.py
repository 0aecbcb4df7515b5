"""Commands for storages that were moved or belong to another catalog; the server is stopped."""

from __future__ import annotations

from pathlib import Path

import click

from pkgrepo.composition.core import Core
from pkgrepo.repositories.upkeep import adopt
from pkgrepo.startup import provisioning

from .offline import run_on_existing
from .settings import Sources


@click.command("adopt")
@click.argument("name")
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.pass_obj
def adopt_storage(sources: Sources, name: str, path: Path | None) -> None:
    """Assign a storage that belongs to another catalog to this one; PATH is its folder if this one does not have it."""

    async def take(core: Core) -> None:
        declared = provisioning.declared_storages(core.config).get(name)
        given = None if path is None else path.absolute()
        folder = await core.catalog.write(adopt.adopt_storage, core.folders, name, declared, given=given)
        click.echo(f"storage {name} at {folder} belongs to this catalog")

    run_on_existing(sources.read(), take)


@click.command("move")
@click.argument("name")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--empty", is_flag=True, help="Start with an empty storage in the folder: all its content is lost.")
@click.pass_obj
def move_storage(sources: Sources, name: str, path: Path, *, empty: bool) -> None:
    """Set the folder of a storage, after it was moved or copied there."""

    async def move(core: Core) -> None:
        await core.catalog.write(
            adopt.move_storage, core.folders, name, path.absolute(), empty=empty, now_ms=core.clock.now_ms()
        )
        click.echo(f"storage {name} is at {path}")

    run_on_existing(sources.read(), move)
