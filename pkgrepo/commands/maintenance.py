"""Maintenance of a data folder: check settings, migrate, verify, reindex, collect garbage, compact."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Final

import click
from twisted.internet import reactor

from pkgrepo.client.terminal import Unsound, fail, fail_with, make_progress
from pkgrepo.commands.offline import check_catalog, check_owner, check_unused, run_offline, run_on_existing
from pkgrepo.commands.settings import Sources, parse_assignment
from pkgrepo.composition.core import Core
from pkgrepo.composition.databases import copy_catalog
from pkgrepo.config import Config, explain
from pkgrepo.errors import PkgrepoError
from pkgrepo.model import RepositoryType
from pkgrepo.repositories.upkeep import adopt
from pkgrepo.repositories.upkeep.gc import KIND, GcOptions
from pkgrepo.repositories.upkeep.reindex import Reindexer
from pkgrepo.repositories.upkeep.verify import Verifier
from pkgrepo.sentences import sentence_of
from pkgrepo.startup import provisioning
from pkgrepo.startup.checks import start_problems
from pkgrepo.storage.blobs.paths import find_storage_id
from pkgrepo.storage.catalog.engine.connections import CatalogUnusable
from pkgrepo.storage.folders import StoragesFile

NOT_IN_LAYOUT: Final = (
    "blocks, rules for all repositories, decisions on quarantined versions, users, tokens and grants were in the lost "
    "database only: make them again before clients come back"
)


@click.command()
@click.pass_obj
def migrate(sources: Sources) -> None:
    """Migrate the catalog to the schema of this version; the start of a server does the same."""

    async def nothing_more(_core: Core) -> None:
        click.echo("the catalog is up to date")

    run_on_existing(sources.read(), nothing_more)


@click.command()
@click.option("--repair", is_flag=True, help="Repair the readable layout and remove orphaned copies.")
@click.pass_obj
def verify(sources: Sources, *, repair: bool) -> None:
    """Read and check all stored blobs, and compare the readable layout with the catalog."""

    async def work(core: Core) -> None:
        await core.open_storages()
        verifier = Verifier(core.context, progress=make_progress(), repair=repair, mender=core.mender)
        report = await verifier.run()
        for problem in (*report.notes, *report.problems):
            click.echo(problem, err=True)
        click.echo(
            f"{report.blobs} blobs of {report.size} bytes: {report.missing} missing, {report.damaged} damaged; "
            f"{report.unnamed} forgotten copies, {report.layout_changes} differences in the readable layout, "
            f"{report.mended} mended"
        )
        if report.problems:
            raise Unsound(len(report.problems))

    run_on_existing(sources.read(), work)


@click.command()
@click.option(
    "--storage",
    "named",
    multiple=True,
    metavar="NAME=PATH",
    help="Folder of a storage that was moved, or that storages.json in the data folder does not list.",
)
@click.pass_obj
def reindex(sources: Sources, named: tuple[str, ...]) -> None:
    """Rebuild a lost catalog from the readable layout of the storages."""
    folders = {name: Path(path).absolute() for name, path in (parse_assignment(each, "--storage") for each in named)}
    config = sources.read()
    _say_where(config, folders)

    async def work(core: Core) -> None:
        now_ms = core.clock.now_ms()
        await core.catalog.write(adopt.adopt_named, core.folders, folders, now_ms)
        problems = await core.catalog.write(adopt.adopt_listed, core.folders, now_ms)
        await provisioning.ensure_storages(core, config, take_over=True)
        restored = await Reindexer(core.context, progress=make_progress()).run()
        problems += restored.problems
        for sentence in (*restored.notes, *problems):
            click.echo(sentence, err=True)
        click.echo(
            f"took in {restored.repositories} repositories, {restored.versions} versions, {restored.files} files, "
            f"{restored.manifests} images and {restored.tags} tags of images"
        )
        if restored.repositories:
            click.echo(NOT_IN_LAYOUT, err=True)
        if problems:
            raise Unsound(len(problems))

    run_offline(config, work)


@click.command("gc")
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and remove nothing.")
@click.option(
    "--grace",
    "grace_s",
    type=click.IntRange(min=0),
    default=900,
    show_default=True,
    metavar="SECONDS",
    help="Keep what was used within this time; content of unfinished pushes is always kept.",
)
@click.option("--delete-untagged", is_flag=True, help="Also remove manifests without a tag.")
@click.option(
    "--uploads-idle",
    "uploads_idle_s",
    type=click.IntRange(min=0, max=86400),
    default=86400,
    show_default=True,
    metavar="SECONDS",
    help="Also remove unfinished uploads that were not used within this.",
)
@click.pass_obj
def collect_garbage(
    sources: Sources, *, dry_run: bool, grace_s: int, delete_untagged: bool, uploads_idle_s: int
) -> None:
    """Remove stored bytes that nothing refers to; a server may run at the same time."""

    async def work(core: Core) -> None:
        await core.open_storages()
        options = GcOptions(grace_s=grace_s, uploads_idle_s=uploads_idle_s, untagged=delete_untagged, dry_run=dry_run)
        problems: list[str] = []
        await core.registry.refresh()
        for storage in core.registry.storages():
            repositories = [each for each in core.registry.all() if each.storage_id == storage.id]
            data = {**options.to_json(), "on": f"storage {storage.name!r}"}
            uid = await core.jobs.begin(
                KIND, storage.uid, data, partial(core.collector.collect, storage, repositories, options)
            )
            job = await core.jobs.wait(uid)
            problems += job.result["errors"]
            if job.state == "done":
                found, verb = job.result, "would remove" if dry_run else "removed"
                click.echo(
                    f"{storage.name}: {verb} {found['blobs']} of {found['blobs_seen']} blobs ({found['freed']} bytes), "
                    f"{found['manifests']} of {found['manifests_seen']} manifests and {found['uploads']} unfinished "
                    f"uploads; kept {found['young']} for --grace, {found['promised']} for pushes under way and "
                    f"{found['untagged']} manifests without a tag for want of --delete-untagged"
                )
                if found["held"]:
                    click.echo(
                        f"{storage.name}: {found['held']} unused blobs stay until the backup that runs has ended"
                    )
        if not dry_run:
            await core.follower.catch_up()  # otherwise a reindex would restore what was removed
        for problem in problems:
            click.echo(problem, err=True)
        if problems:
            raise Unsound(len(problems))

    run_on_existing(sources.read(), work)


def _say_where(config: Config, named: dict[str, Path]) -> None:
    """Print the folders that a reindex reads; exit if no storage is in them and there is no catalog."""
    check_owner(config.data.dir)
    try:
        known = {each.name: config.data.dir / each.path for each in StoragesFile(config.data.dir).list()}
        places = {**provisioning.declared_storages(config), **known, **named}
        for name, path in sorted(places.items()):
            click.echo(f"looking for storage {name} at {path}", err=True)
        nothing = not any(find_storage_id(path) for path in places.values())
    except OSError as error:
        fail(sentence_of(error), 1)
    if nothing and config.database_path is not None and not config.database_path.exists():
        fail("there is no storage and no catalog; --storage NAME=PATH tells where a storage is", 3)


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


@click.command()
@click.argument("path", metavar="STORAGE/REPOSITORY")
@click.pass_obj
def compact(sources: Sources, path: str) -> None:
    """Write the list of all versions of a Ruby repository anew, without yanked ones; a server may run."""

    async def work(core: Core) -> None:
        await core.registry.refresh()
        repository = core.registry.find(*path.split("/", 1)) if "/" in path else None
        if repository is None:
            fail(f"there is no repository {path}", 3)
        compact = core.formats[repository.format].compact
        if repository.type is not RepositoryType.HOSTED or compact is None:
            fail(f"repository {repository.path} has no list that grows", 2)
        await core.catalog.write(compact, repository, core.clock.now_ms())
        click.echo(f"wrote the list of {repository.path} anew")

    run_on_existing(sources.read(), work)


@click.command("check-config")
@click.option("--explain", "explained", is_flag=True, help="Print every setting with its value and origin.")
@click.pass_obj
def check_config(sources: Sources, *, explained: bool) -> None:
    """Check the settings and the environment of the server, and print all problems."""
    config = sources.read()
    problems = _start_problems(config)
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        sys.exit(2)
    if not explained:
        click.echo("the configuration is valid")
        return
    for each in explain(config):
        click.echo(f"{each.name} = {each.value}".rstrip() + f"  # {each.origin}")


def _start_problems(config: Config) -> list[str]:
    try:
        return list(start_problems(Core(config, reactor), config))
    except CatalogUnusable as error:  # its library is not installed
        return [f"database.url: {error}"]
    except OSError as error:
        return [sentence_of(error)]
