"""Reads an export of the OSV database from the disk into memory."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from attrs import frozen
from twisted.logger import Logger

from pkgrepo.errors import Invalid

from .advisories import RECORD_SIZE, Advisory, read_record

log = Logger()


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
