"""Commands for storages that move to a bucket or another folder, or belong to another catalog."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from attrs import frozen

from pkgrepo.client.server.storages import bucket_options
from pkgrepo.client.terminal import Unsound, make_progress
from pkgrepo.commands.offline import check_unused, run_on_existing
from pkgrepo.commands.settings import Sources
from pkgrepo.composition.core import Core
from pkgrepo.errors import Conflict, Invalid, existing
from pkgrepo.management.api.schema import parse_fields
from pkgrepo.management.storages.places import is_at, make_bucket, place_of
from pkgrepo.management.storages.schema import StorageSettings
from pkgrepo.model import Storage
from pkgrepo.repositories.upkeep import adopt
from pkgrepo.repositories.upkeep.storage_move import MoveReport, StorageMove
from pkgrepo.s3.places import BucketPlace
from pkgrepo.startup import provisioning
from pkgrepo.storage.buckets import KIND, address_of
from pkgrepo.storage.catalog.server import storages


@frozen
class Target:
    """Where a storage is moved to: a folder or a bucket, or neither to go on with a move."""

    folder: Path | None
    bucket: Mapping[str, Any]

    def __bool__(self) -> bool:
        return self.folder is not None or bool(self.bucket)


@click.command("migrate-storage")
@click.argument("name")
@click.option("--to-folder", "folder", type=click.Path(path_type=Path), help="The folder to which a bucket is moved.")
@bucket_options
@click.option("--dry-run", is_flag=True, help="Print what would be moved, and move nothing.")
@click.option("--stopped", is_flag=True, help="No server runs, on any machine: end at once when all is moved.")
@click.pass_obj
def migrate_storage(
    sources: Sources, name: str, folder: Path | None, bucket: Mapping[str, Any], *, dry_run: bool, stopped: bool
) -> None:
    """
    Move the content of storage NAME to a bucket (--endpoint, --bucket), or from one to --to-folder.

    Servers may run meanwhile: they read from both places, and store what is new in the new one. Run it again, without a
    place, to go on after an interruption; and to end the move when the uploads have ended that began before it. The old
    place keeps its files, and can be removed then.
    """
    config = sources.read()
    target = Target(folder, bucket)
    if stopped:
        check_unused(config)

    async def move(core: Core) -> None:
        await core.registry.refresh()
        storage: Storage = existing(await core.catalog.look(storages.find_storage, name), "storage", name)
        if storage.before is None and not target:
            raise Invalid(f"storage {name} is not being moved: say where to, by --bucket and --endpoint or --to-folder")
        mover = StorageMove(core.context, progress=make_progress())
        if dry_run:
            count, size = await mover.left(storage)
            click.echo(f"would move {count} blobs of {size} bytes")
            return
        if target:
            storage = await _begin(core, storage, target)
        report = await mover.run(storage, stopped=stopped)
        _print(name, report)
        if report.ended and not storage.is_local:
            await core.pools.disk(core.folders.remove_from_list, storage.uid)
        if report.problems:
            raise Unsound(len(report.problems))

    run_on_existing(config, move)


async def _begin(core: Core, storage: Storage, target: Target) -> Storage:
    """Give the storage its new place; one that is being moved there already is returned as it is."""
    if target.folder is not None and target.bucket:
        raise Invalid("say either --to-folder or a bucket")
    if target.folder is not None:
        return await _begin_folder(core, storage, target.folder.absolute())
    place: BucketPlace = place_of(_settings(target.bucket))
    if storage.before is not None and is_at(storage, place):
        return storage
    _check_free(storage, local=True)
    await (await make_bucket(core.buckets, storage.name, place, storage.uid)).stop()
    now_ms = core.clock.now_ms()
    return await core.catalog.write(
        storages.begin_move, storage, kind=KIND, settings=core.buckets.settings(place), now_ms=now_ms
    )


def _settings(bucket: Mapping[str, Any]) -> StorageSettings:
    """The options as settings. :raises Invalid: one is malformed, which the message names"""
    try:
        settings: StorageSettings = parse_fields(bucket, StorageSettings)
    except Invalid as error:
        option = (error.pointer or "").strip("/").replace("_", "-")
        raise Invalid(f"--{option}: {error.message}") from None
    return settings


async def _begin_folder(core: Core, storage: Storage, folder: Path) -> Storage:
    if storage.before is not None and storage.is_local and core.folders.folder(storage) == folder:
        return storage
    _check_free(storage, local=False)
    await core.pools.disk(core.folders.check_free, folder, core.registry.storages())
    await core.pools.disk(core.folders.make, storage.name, folder, storage.uid)
    settings = {"path": await core.pools.disk(core.folders.spell, folder)}
    now_ms = core.clock.now_ms()
    return await core.catalog.write(storages.begin_move, storage, kind="Local", settings=settings, now_ms=now_ms)


def _check_free(storage: Storage, *, local: bool) -> None:
    """:raises Conflict: the storage is being moved, or is not of the kind from which it can be moved"""
    if storage.before is not None:
        raise Conflict(f"storage {storage.name!r} is being moved to another place already; run it without a place")
    if storage.is_local is not local:
        where = storage.settings["path"] if storage.is_local else address_of(storage.settings)
        raise Conflict(f"storage {storage.name!r} is at {where}; it can be moved from a folder to a bucket, or back")


def _print(name: str, report: MoveReport) -> None:
    for problem in report.problems:
        click.echo(problem, err=True)
    click.echo(f"{name}: moved {report.moved} blobs of {report.moved_size} bytes")
    if report.lost:
        click.echo(f"{name}: {report.lost} blobs are missing or damaged, as before")
    if report.uploads:
        click.echo(f"{name}: {report.uploads} uploads began before the move; run this again when they have ended")
    if report.ends_at is not None:
        click.echo(
            f"{name}: uploads may still end in the old place; run this again after {report.ends_at:%F %H:%M} UTC"
        )
    if report.ended:
        click.echo(f"{name}: the new place has all {report.blobs} blobs of {report.size} bytes; the old one is unused")


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
