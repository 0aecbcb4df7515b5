"""
What imports take, and where a repository has what lock files name.

Charts are taken from a chart repository by its address, and from folders, with their provenance.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from attrs import evolve

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import Invalid
from pkgrepo.gateway.imported.items import Item, SourcePackage, Taking
from pkgrepo.gateway.imported.kinds import Imported, take_files
from pkgrepo.gateway.imported.sources import FolderIndex, IndexSource, PathFolder, PathSite
from pkgrepo.gateway.mirrored.locks import Lock, Wanted, table_of, tables_of, text_of
from pkgrepo.gateway.mirrored.places import LockFile, Mirrored, Place, by_name, is_version
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.untrusted.yaml_text import read_yaml

from .chart import read_chart
from .facts import NAME
from .index import index_request
from .names import ARCHIVE, INDEX, PROVENANCE, chart_path, check_name, file_place, possible_names, split_ending
from .publish import make_release, provenance_beside


async def take(_source_package: SourcePackage, item: Item, staged: Staged, blob: BlobInfo, pools: Pools) -> Release:
    """The release of an archive, or of provenance alone; see L{pkgrepo.gateway.imported.items.Take}."""
    if item.path.endswith(PROVENANCE):
        return provenance_beside(item.path.removesuffix(PROVENANCE), blob, _source_package.key, item.version)
    fields = await staged.inspect(pools.cpu, blob, partial(read_chart, filename=item.name))
    release = make_release(fields, blob)
    if release.files[0].path != item.path:
        raise Invalid(f"it says of itself that it is {fields['name']} {fields['version']}")
    return release


def chart_of(path: str) -> tuple[str, str]:
    """The chart and the version of an archive or provenance, by its name. :raises Invalid: it is neither"""
    if path.rpartition("/")[2] == INDEX:
        raise Invalid("")
    stem, name = split_ending(path.rpartition("/")[2]), next(possible_names(path), None)
    if stem is None or name is None:
        raise Invalid("its name is not <name>-<version>.tgz")
    return name, stem[len(name) + 1 :]


def read_lock(text: str) -> Lock:
    """``Chart.lock``, or ``requirements.lock`` of old charts. :raises Invalid: it is another file"""
    document, lock = table_of(read_yaml(text)), Lock()
    if "dependencies" not in document:
        raise Invalid("it has no dependencies: is it a Chart.lock?")
    for each in tables_of(document["dependencies"]):
        name, version, place = (text_of(each.get(key)) for key in ("name", "version", "repository"))
        if not place.startswith(("http://", "https://", "@", "alias:")):
            lock.leave_out(f"{name} {version}", "it does not come from a repository of charts")
        else:
            lock.want(Wanted(format=NAME, name=name, version=version))
    return lock


def _places(wanted: Wanted) -> Iterator[Place]:
    yield Place(wanted=wanted, key=wanted.name, path=chart_path(check_name(wanted.name), wanted.version))


def _split(name: str) -> tuple[str, str]:
    return (name.removesuffix(PROVENANCE), PROVENANCE) if name.endswith(ARCHIVE + PROVENANCE) else (name, "")


IMPORTED: Final = Imported(
    kind=NAME,
    about="Helm charts: a chart repository, by its address or its folder.",
    # an index does not tell whether there is provenance
    address=lambda site, _: IndexSource(site, index_request(), lambda path: not path.endswith(PROVENANCE)),
    folder=lambda folder, _: PathFolder(folder, chart_of, path_of=file_place, documents=FolderIndex(index_request())),
    assets=lambda site, paths: PathSite(site, paths, chart_of, path_of=file_place),
    taker=take_files(
        Taking(
            take=take,
            join=lambda some: evolve(some[0], files=tuple(file for each in some for file in each.files)),
            needed=lambda item: not item.path.endswith(PROVENANCE),
        )
    ),
)
MIRRORED: Final = Mirrored(
    lock_files=(LockFile(("chart*.lock", "requirements*.lock"), read_lock, frozenset({NAME})),),
    read_list=read_lock,
    text_sign=re.compile(r"^dependencies:\s*\n- name:", re.MULTILINE),
    document_keys=lambda wanted: iter([check_name(wanted.name)]),
    common=lambda _wanted: [index_request()],
    places=by_name(_places),
    split=_split,
    is_wanted=is_version,
)
