"""
Compares the pinned dependencies with an export of the OSV database: bin/check --audit EXPORT.

The export is a folder or a zip, as ``advisories.source`` takes it, and is read and compared as a server does. The exit
status is 1 if a dependency has a known vulnerability, and also if that cannot be said: the export has no record of the
ecosystem, is too old, or has records that cannot be read. What wheels contain beside Python (SQLite, OpenSSL) is found
as far as records name the Python package.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

import click

from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config
from pkgrepo.errors import Invalid
from pkgrepo.model.advisories import Advisory, distinct
from pkgrepo.packaging.tree import REQUIREMENTS, Locked, locked
from pkgrepo.repositories.advisories.exports import exported_ms, read_batches
from pkgrepo.repositories.advisories.known import judge
from pkgrepo.repositories.clock import SystemClock
from pkgrepo.repositories.format import Ecosystem
from pkgrepo.storage.catalog.advisories import AdvisoryLoad

# Ids of advisories that do not concern this program, each with the reason.
ACCEPTED: Final[Mapping[str, str]] = {}
MOST_SHOWN: Final = 10  # records that cannot be read


@click.command()
@click.argument("export", type=click.Path(path_type=Path, exists=True))
def main(export: Path) -> None:
    """Compare the pinned dependencies with the EXPORT."""
    try:
        problems = list(audit(export, REQUIREMENTS.read_text("ascii"), SystemClock().now_ms()))
    except (Invalid, OSError) as error:
        sys.exit(f"audit: {export} cannot be read: {error}")
    for each in problems:
        click.echo(each)
    if problems:
        sys.exit("audit: failed")


def audit(export: Path, requirements: str, now_ms: int, accepted: Mapping[str, str] = ACCEPTED) -> Iterator[str]:
    """
    Sentences about what is wrong with the ``requirements``, or with the export. Blocks.

    :raises Invalid: it is no export, or a requirement has no version; :raises OSError: it cannot be read
    """
    config = Config()
    ecosystem = make_formats(config)["python"].ecosystem
    assert ecosystem is not None
    pinned = {ecosystem.package_key(each.name): each for each in locked(requirements)}
    if not pinned:
        raise Invalid("no dependency is pinned")
    found: dict[str, list[Advisory]] = {each: [] for each in pinned}
    count, unreadable = 0, dict[str, str]()
    for batch in read_batches(export, {ecosystem.name: ecosystem}):
        unreadable |= batch.unreadable
        for each in (each for record in batch.records for each in record.advisories):
            count += 1
            if each.package in found:
                found[each.package].append(each)
    for name, why in list(unreadable.items())[:MOST_SHOWN]:
        yield f"{name} cannot be read: {why}"
    if len(unreadable) > MOST_SHOWN:
        yield f"{len(unreadable) - MOST_SHOWN} more records cannot be read"
    records = {ecosystem.name: count} if count else {}
    load = AdvisoryLoad(
        source=str(export),
        records=records,
        unreadable=len(unreadable),
        exported_ms=exported_ms(export),
        loaded_ms=now_ms,
    )
    known = judge(load, load.source, config.advisories.max_age_s, now_ms, ecosystem.name)
    if not known.loaded:
        yield f"{export} has no record of {ecosystem.name}, so that nothing was compared"
    elif not known.complete:
        yield f"{export} is of {known.exported_at:%Y-%m-%d}, and too old to say that a dependency has no vulnerability"
    for key, dependency in pinned.items():
        yield from _known(dependency, found[key], ecosystem, accepted)
    click.echo(
        f"{len(pinned)} dependencies were compared with {count} records of {known.exported_at:%Y-%m-%d}", err=True
    )


def _known(
    pinned: Locked, advisories: Iterable[Advisory], ecosystem: Ecosystem, accepted: Mapping[str, str]
) -> Iterator[str]:
    sort = ecosystem.sort(pinned.version)
    for each in distinct(each for each in advisories if each.affects(sort)):
        if each.id in accepted:
            continue
        fixed = ", ".join(each.fixed_versions) or "no version"
        yield f"{pinned.name} {pinned.version}: {each.id} ({each.severity}), fixed in {fixed}: {each.title}"


if __name__ == "__main__":
    main()
