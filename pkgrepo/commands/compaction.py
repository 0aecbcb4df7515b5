"""Writes lists anew that grow with each change."""

from __future__ import annotations

import click

from pkgrepo.composition.core import Core
from pkgrepo.interfaces import ICompactedFormat
from pkgrepo.model import Repository, RepositoryType

from .exits import fail
from .offline import run_on_existing
from .settings import Sources


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
        format_ = _compacted_format(core, repository)
        await core.catalog.write(format_.compact, repository, core.clock.now_ms())
        click.echo(f"wrote the list of {repository.path} anew")

    run_on_existing(sources.read(), work)


def _compacted_format(core: Core, repository: Repository) -> ICompactedFormat:
    format_ = core.formats[repository.format]
    if repository.type is not RepositoryType.HOSTED or not ICompactedFormat.providedBy(format_):
        fail(f"repository {repository.path} has no list that grows", 2)
    return format_
