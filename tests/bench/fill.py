"""
Fills a server's catalog while the server is down: ``python -m tests.bench.fill DATA STORAGE/REPOSITORY COUNT [KIND]``.

The kind is that of the releases, by default the format of the repository. Each project gets a wheel, those of the kind
``versions`` are all of one project, and each ten versions a gem or a conda package, through the command in which
uploads end, with its version, index, event and blob row; only the bytes are missing, so that nothing of it can be
downloaded. The readable layout is told that it has seen the events, for it could not link files that are not there.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import react

from pkgrepo.formats.conda.configuration import Policy
from pkgrepo.formats.conda.description import Description
from pkgrepo.formats.conda.index.records import index_package
from pkgrepo.formats.conda.names import parse_file_name as parse_conda
from pkgrepo.formats.conda.upload.publishing import Upload
from pkgrepo.formats.conda.upload.publishing import make_release as make_conda_release
from pkgrepo.formats.python.index.indexing import index_project
from pkgrepo.formats.python.layout import file_path
from pkgrepo.formats.python.names import parse_filename
from pkgrepo.formats.rubygems.changes import apply_change
from pkgrepo.formats.rubygems.gemspec import Dependency, GemSpec, meta_of
from pkgrepo.formats.rubygems.layout import gem_path
from pkgrepo.formats.rubygems.version_order import sort_key
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, BlobInfo, NewFile, Repository
from pkgrepo.repositories.clock import SystemClock
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.repositories.publish.releases import Release, publish_releases
from pkgrepo.storage.catalog.engine.sqlite import SqliteCatalog
from pkgrepo.storage.catalog.packages import events
from pkgrepo.storage.catalog.server import repositories, settings
from pkgrepo.storage.catalog.server.layout_pending import CURSOR

BATCH = 500  # releases to a transaction
VERSIONS = 10  # of each gem
MANY = "many"  # the project of the kind "versions"


def wheel(number: int) -> Release:
    """Return the only release of a project whose name no scenario uses."""
    return _wheel(f"filler_{number}-1.0.0-py3-none-any.whl", {"summary": "A package made to be counted"})


def version(number: int) -> Release:
    """Return one of the releases of a project that has all of them, with a readme of 4 KB."""
    texts = {
        "summary": "A package with many versions",
        "description": f"# Version {number}\n\n" + "All about it. " * 290,
    }
    needs = {"requires_dist": [f"filler-{each}>=1" for each in range(10)], "description_content_type": "text/markdown"}
    return _wheel(f"{MANY}-1.{number}.0-py3-none-any.whl", {**texts, **needs})


def _wheel(filename: str, meta: Mapping[str, Any]) -> Release:
    name = parse_filename(filename)
    sha256 = hashlib.sha256(filename.encode()).hexdigest()
    blob = BlobInfo(sha256=sha256, size=9000, locator=f"{sha256[:2]}/{sha256}.0", digests={"sha256": sha256})
    attrs = {"packagetype": name.kind, "python_version": name.python_version, "requires_python": ">=3.8"}
    return Release(
        package_key=name.project_key,
        package_name=name.project_key,
        version_key=name.version_key,
        version_text=name.version_text,
        sort=name.version_sort,
        files=(NewFile(path=file_path(name.project_key, name.version_text, filename), blob=blob, attrs=attrs),),
        meta=meta,
    )


def gem(number: int) -> Release:
    """Return one of the ten releases of a gem whose name no scenario uses."""
    spec = GemSpec(
        name=f"filler_{number // VERSIONS}",
        number=f"1.{number % VERSIONS}.0",
        platform="ruby",
        original_platform="ruby",
        rubygems_version="3.6.9",
        date=date(2024, 5, 6),
        summary="A gem made to be counted",
        dependencies=(Dependency("rack", "runtime"),),
    )
    sha256 = hashlib.sha256(spec.full_name.encode()).hexdigest()
    blob = BlobInfo(sha256=sha256, size=9000, locator=f"{sha256[:2]}/{sha256}.0", digests={"sha256": sha256})
    return Release(
        package_key=spec.name,
        package_name=spec.name,
        version_key=spec.full_version,
        version_text=spec.full_version,
        sort=sort_key(spec.number, spec.platform),
        files=(NewFile(path=gem_path(spec.full_name), blob=blob),),
        meta=meta_of(spec),
    )


def conda_package(number: int) -> Release:
    """Return one of the ten releases of a conda package whose name no scenario uses."""
    name = parse_conda(f"filler-{number // VERSIONS}-1.{number % VERSIONS}.0-py311h{number % 10**6:06}_0.conda")
    index = {
        "arch": None,
        "build": name.build,
        "build_number": 0,
        "constrains": ["numpy >=1.22"],
        "depends": ["python >=3.11,<3.12.0a0", "python_abi 3.11.* *_cp311", "libstdcxx >=13", f"filler-{number // 20}"],
        "license": "BSD-3-Clause",
        "name": name.name,
        "noarch": "generic",
        "subdir": "noarch",
        "timestamp": 1_700_000_000_000 + number,
        "version": name.version,
    }
    sha256, md5 = (hashlib.new(each, str(name).encode()).hexdigest() for each in ("sha256", "md5"))
    digests = {"sha256": sha256, "md5": md5}
    blob = BlobInfo(sha256=sha256, size=9000, locator=f"{sha256[:2]}/{sha256}.0", digests=digests)
    return make_conda_release(
        Upload(name, None, blob), Description(index, {"summary": "Made to be counted"}, {}), Policy()
    )


FILLERS: Mapping[str, tuple[Callable[[int], Release], Indexer]] = {
    "conda": (conda_package, index_package),
    "python": (wheel, index_project),
    "ruby": (gem, apply_change),
    "versions": (version, index_project),
}


def publish_all(
    tx: Transaction, repository: Repository, releases: Sequence[Release], indexer: Indexer, now_ms: int
) -> None:
    """Publish several releases; a write command."""
    publish_releases(tx, repository, releases, Actor(name="bench"), indexer, now_ms)
    settings.put(tx, CURSOR, str(events.last_seq(tx)))


async def fill(reactor: Any, data: Path, path: str, count: int, kind: str) -> None:
    """Publish C{count} releases; the same ones again change nothing."""
    catalog = SqliteCatalog(data / "pkgrepo.db", reactor=reactor)
    await catalog.start()
    try:
        storage, _, name = path.partition("/")
        repository = catalog.peek(repositories.find_by_path, storage, name)
        assert repository is not None, f"there is no repository {path}"
        make, indexer = FILLERS[kind or repository.format]
        for start in range(0, count, BATCH):
            releases = [make(number) for number in range(start, min(start + BATCH, count))]
            await catalog.write(publish_all, repository, releases, indexer, SystemClock().now_ms())
    finally:
        await catalog.stop()


def main(reactor: Any, data: str, path: str, count: str, kind: str = "") -> Deferred[None]:
    """Fill the catalog as the command line says."""
    return Deferred.fromCoroutine(fill(reactor, Path(data), path, int(count), kind))


if __name__ == "__main__":
    react(main, sys.argv[1:])
