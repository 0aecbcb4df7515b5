"""Back a server up, restore a backup, and check that it can be restored."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import attrs
import click

from pkgrepo.client.terminal import Unsound, fail, make_progress, run_alone
from pkgrepo.commands.offline import run_on_existing
from pkgrepo.commands.settings import Sources
from pkgrepo.composition.backup_place import destination_of
from pkgrepo.composition.backups import make_writer
from pkgrepo.composition.core import Core
from pkgrepo.config import Config
from pkgrepo.errors import PkgrepoError
from pkgrepo.repositories.backup.runs import BackupPlan, begin_backup
from pkgrepo.repositories.backup.writing import BackupOptions
from pkgrepo.s3.places import Destination

from .proving import prove
from .restoring import Restored, Wish, restore


@click.command()
@click.argument("destination", required=False)
@click.option("--keep", type=click.IntRange(min=1), help="Keep so many backups there; backup.keep by default.")
@click.option("--with-key", is_flag=True, help="Put the key that decrypts stored credentials into the backup, too.")
@click.option("--renew", is_flag=True, help="Read the copies that are there, and copy damaged ones again.")
@click.pass_obj
def backup(sources: Sources, destination: str | None, *, keep: int | None, with_key: bool, renew: bool) -> None:
    """
    Back up the catalog and all stored bytes to DESTINATION: a folder, or a bucket as s3://bucket/prefix.

    Without it, to backup.destination. A server may run. What is there already is not copied again, and a run that was
    interrupted is continued by the next one. Settings of a bucket are backup.endpoint and others; its credentials are
    in the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY).
    """
    config = sources.read()
    found = _destination(config, destination)

    async def work(core: Core) -> None:
        await core.registry.refresh()
        options = BackupOptions(
            destination=found,
            keep=keep or config.backup.keep,
            with_key=with_key or config.backup.key,
            renew=renew,
        )
        plan = BackupPlan(options=options, schedule=config.backup.schedule, check=None)
        uid = await begin_backup(core.jobs, core.catalog, core.clock, make_writer(core), plan, "command line")
        job = await core.jobs.wait(uid)
        if job.state != "done":
            raise PkgrepoError("; ".join(job.result["errors"]))
        done = job.result
        click.echo(
            f"backup {done['id']} in {found.address}: {done['blobs']} blobs of {done['bytes']} bytes, of which "
            f"{done['copied']} of {done['copied_bytes']} bytes were copied now; {done['backups']} backups are kept, "
            f"{done['removed']} copies of older ones removed"
        )
        for problem in done["errors"]:
            click.echo(problem, err=True)
        if done["errors"]:
            raise Unsound(len(done["errors"]))

    run_on_existing(config, work)


@click.command("restore")
@click.argument("source")
@click.option("--into", "data", type=click.Path(path_type=Path), help="The new data folder.")
@click.option("--backup", "backup_id", default="", metavar="ID", help="This backup instead of the newest.")
@click.option(
    "--key-file",
    "key",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The copy of the server's credentials.key, if it is not in the backup.",
)
@click.option("--check", is_flag=True, help="Check the backup, and restore nothing unless there is --into, too.")
@click.option(
    "--sample",
    type=click.IntRange(0, 1000),
    default=3,
    show_default=True,
    help="With --check: versions of each format.",
)
@click.option("--scratch", type=click.Path(file_okay=False, path_type=Path), help="Folder for what the check needs.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object.")
@click.pass_obj
def restore_backup(
    sources: Sources,
    source: str,
    *,
    data: Path | None,
    backup_id: str,
    key: Path | None,
    check: bool,
    sample: int,
    scratch: Path | None,
    as_json: bool,
) -> None:
    """
    Restore a backup in SOURCE, a folder or s3://bucket/prefix, into a new data folder; every digest is compared.

    The catalog becomes a file in that folder, or goes to the empty PostgreSQL database that database.url names.
    Storages in buckets or elsewhere become folders in it.

    With --check every byte of the backup is read, a server is started with it in a temporary folder, and some packages
    of each format are fetched as their clients do. It makes no other connection.
    """
    config = sources.read()
    place = _destination(config, source)
    if data is None and not check:
        raise click.UsageError("say where to restore to by --into, or --check")

    async def work(reactor: Any) -> None:
        found: dict[str, Any] = {}
        if check:
            found = await _check(reactor, place, backup_id, key, sample, scratch, as_json=as_json)
        if data is not None:
            target = config if config.database_path is None else None
            wish = Wish(destination=place, backup_id=backup_id, data=data.absolute(), key=key, target=target)
            report = await restore(reactor, wish, make_progress())
            found |= attrs.asdict(report)
            _tell_restored(report, wish.data, as_json=as_json)
        if as_json:
            click.echo(json.dumps(found))
        if found["problems"]:
            raise Unsound(len(found["problems"]))

    run_alone(work)


async def _check(
    reactor: Any,
    place: Destination,
    backup_id: str,
    key: Path | None,
    sample: int,
    scratch: Path | None,
    *,
    as_json: bool,
) -> dict[str, Any]:
    """Check a backup in a temporary folder, and print the result; a damaged one ends the command."""
    if scratch is not None:
        scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="restore-check-", dir=scratch))
    try:
        wish = Wish(destination=place, backup_id=backup_id, data=folder, key=key)
        proof = await prove(reactor, wish, sample, make_progress())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if proof.problems and as_json:
        click.echo(json.dumps(attrs.asdict(proof)))
    elif not as_json:
        for problem in proof.problems:
            click.echo(problem, err=True)
        formats = f" ({', '.join(proof.formats)})" if proof.formats else ""
        click.echo(
            f"backup {proof.id} of {proof.made_at}: read {proof.blobs} blobs of {proof.size} bytes, fetched "
            f"{proof.fetched} versions{formats} from a server that was started with it"
            + ("" if proof.problems else "; everything is sound")
        )
    if proof.problems:
        raise Unsound(len(proof.problems))
    return attrs.asdict(proof)


def _tell_restored(report: Restored, data: Path, *, as_json: bool) -> None:
    for sentence in (*report.problems, *report.notes):
        click.echo(sentence, err=True)
    if not as_json and not report.problems:
        click.echo(
            f"restored backup {report.id} of {report.made_at} into {data}: {report.storages} storages, {report.blobs} "
            f"blobs of {report.size} bytes"
        )


def _destination(config: Config, address: str | None) -> Destination:
    found = destination_of(config, address)
    if not found.address:
        fail("name a destination, or set backup.destination", 2)
    return found
