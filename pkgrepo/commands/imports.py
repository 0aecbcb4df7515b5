"""Commands that take in what another server or folder has."""

from __future__ import annotations

from pathlib import Path

import click

from pkgrepo.commands.terminal import make_progress
from pkgrepo.composition.core import Core
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.formats.maven.format import NAME
from pkgrepo.formats.maven.importing import Importer, ImportTarget
from pkgrepo.model import Repository, RepositoryType

from .offline import Unsound, run_on_existing
from .settings import Sources


@click.group("import")
def import_group() -> None:
    """Take packages in from a folder; a server may run at the same time."""


@import_group.command("maven")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--into", required=True, metavar="STORAGE/REPOSITORY", help="The hosted repository to take it into.")
@click.option("--follow-links", is_flag=True, help="Follow symbolic links, also to files outside of the folder.")
@click.pass_obj
def import_maven(sources: Sources, folder: Path, into: str, *, follow_links: bool) -> None:
    """
    Take in a folder that has the layout of a Maven repository.

    Files that are stored already are not replaced, and a run that was interrupted is continued by the next one.
    """

    async def work(core: Core) -> None:
        await core.open_storages()
        repository = _find(core, into)
        target = ImportTarget(
            repository=repository,
            catalog=core.catalog,
            publisher=core.publisher,
            pools=core.pools,
            indexer=core.formats[repository.format].index,
        )
        importer = Importer(
            target,
            str(folder),
            follow_links=follow_links,
            progress=make_progress(),
            tell=lambda sentence: click.echo(sentence, err=True),
        )
        report = await importer.run()
        await core.follower.catch_up()
        click.echo(
            f"took in {report.files} files of {report.size} bytes: {report.versions} versions, "
            f"{report.plain_files} other files, metadata of {report.metadata} directories; {report.present} files were "
            f"there already, {report.skipped} are left out, {report.problems} have problems"
        )
        if report.problems:
            raise Unsound(report.problems)

    run_on_existing(sources.read(), work)


def _find(core: Core, path: str) -> Repository:
    """The repository to take into. :raises NotFound: it does not exist; :raises Invalid: it takes no artifacts"""
    storage, _, name = path.partition("/")
    repository = core.registry.find(storage, name)
    if repository is None:
        raise NotFound("repository", path)
    if repository.format != NAME or repository.type is not RepositoryType.HOSTED:
        raise Invalid(f"{repository.path} is no hosted Maven repository")
    return repository
