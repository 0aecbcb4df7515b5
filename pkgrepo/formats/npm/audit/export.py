"""An export of the OSV database: advisories are read from the disk, and again when the export has changed."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen
from twisted.logger import Logger

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import Invalid, PkgrepoError
from pkgrepo.formats.npm.audit.advisories import RECORD_SIZE, Advisory, read_record
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.pools import Pools

log = Logger()

CHECK_EVERY_MS: Final = 60_000
_NEVER: Final = -1


@frozen
class AdvisoryIndex:
    """Advisories by package. ``unreadable`` counts the records that were skipped."""

    by_package: Mapping[str, Sequence[Advisory]]
    unreadable: int = 0

    def of(self, package: str) -> Sequence[Advisory]:
        """The advisories on a package."""
        return self.by_package.get(package, ())


EMPTY = AdvisoryIndex({})


def read_export(path: Path) -> AdvisoryIndex:
    """
    The advisories in a folder of JSON files, or in a zip of them, as OSV offers for each ecosystem.

    It reads tens of thousands of files: call it in a thread. Records that cannot be parsed are logged and skipped, so
    that one malformed record does not disable the whole export.

    :raises Invalid: the path is no such export; :raises OSError: it cannot be read
    """
    found: dict[str, list[Advisory]] = {}
    unreadable = 0
    for name, data in _records(path):
        try:
            advisories = read_record(data)
        except Invalid as error:
            unreadable += 1
            log.warn("passed over {name}: {why}", name=name, why=str(error))
            continue
        for advisory in advisories:
            found.setdefault(advisory.package, []).append(advisory)
    return AdvisoryIndex({package: tuple(each) for package, each in found.items()}, unreadable)


def _records(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        for file in sorted(path.rglob("*.json")):
            with file.open("rb") as opened:
                yield file.name, opened.read(RECORD_SIZE + 1)
        return
    try:
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                if info.filename.endswith(".json"):
                    with archive.open(info) as opened:
                        yield info.filename, opened.read(RECORD_SIZE + 1)
    except zipfile.BadZipFile as error:
        raise Invalid(f"{path} is neither a folder nor a zip of OSV records: {error}") from None


class AdvisoriesUnreadable(PkgrepoError):  # noqa: N818 - named for what is the case
    """The server was given advisories and cannot read them, so that it knows nothing of any version."""

    def __str__(self) -> str:
        return "the advisories of this server (npm.advisories) cannot be read; its log says why"


class AdvisoryCache:
    """
    A cache of an export's advisories, loaded at the first use, and again when the export has changed.

    ``path`` is a folder or a zip; None when there is no export. When the export cannot be read, that is logged, and the
    advisories loaded before stay.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._index = EMPTY
        self._changed_ns = _NEVER
        self._check_at_ms = 0
        self._flight: SingleFlight[str, None] = SingleFlight()

    @property
    def has_export(self) -> bool:
        """Whether the server was given an export."""
        return self._path is not None

    async def index(self, pools: Pools, clock: Clock) -> AdvisoryIndex:
        """The advisories, at most a minute old. :raises AdvisoriesUnreadable: the server has not read them yet"""
        path = self._path
        if path is not None and clock.now_ms() >= self._check_at_ms:
            await self._flight.run("reload", lambda: self._reload(path, pools))
            self._check_at_ms = clock.now_ms() + CHECK_EVERY_MS
        if path is not None and self._changed_ns == _NEVER:
            raise AdvisoriesUnreadable
        return self._index

    async def _reload(self, path: Path, pools: Pools) -> None:
        try:
            changed_ns = (await pools.disk(path.stat)).st_mtime_ns
            if changed_ns == self._changed_ns:
                return
            self._index = await pools.cpu(read_export, path)
        except (OSError, Invalid) as error:
            log.warn("the advisories in {path} cannot be read: {error}", path=str(path), error=str(error))
            return
        self._changed_ns = changed_ns
        log.info("advisories on {count} packages were read", count=len(self._index.by_package))
