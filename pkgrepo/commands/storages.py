"""Storages whose folder moved or belonged to another catalog."""

from __future__ import annotations

from pathlib import Path

import click

from pkgrepo.core import Core
from pkgrepo.repositories.upkeep import adopt
from pkgrepo.startup import provisioning

from .offline import run_on_existing
from .settings import Sources


@click.group()
def storage() -> None:
    """Storages whose folder is elsewhere now, or was another catalog's; for while no server works in them."""


@storage.command("adopt")
@click.argument("name")
@click.pass_obj
def adopt_storage(sources: Sources, name: str) -> None:
    """Take a storage over from the catalog that it belongs to."""

    async def take(core: Core) -> None:
        declared = provisioning.declared_storages(core.config).get(name)
        folder = await core.catalog.write(adopt.adopt_storage, core.folders, name, declared)
        click.echo(f"storage {name} at {folder} belongs to this catalog")

    run_on_existing(sources.read(), take)


@storage.command("move")
@click.argument("name")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--empty", is_flag=True, help="Begin an empty storage there: all that it held is lost.")
@click.pass_obj
def move_storage(sources: Sources, name: str, path: Path, *, empty: bool) -> None:
    """Tell where a storage is now; its folder is moved or copied before."""

    async def move(core: Core) -> None:
        await core.catalog.write(
            adopt.move_storage, core.folders, name, path.absolute(), empty=empty, now_ms=core.clock.now_ms()
        )
        click.echo(f"storage {name} is at {path}")

    run_on_existing(sources.read(), move)
