"""Exports of the OSV database: folders of JSON files and zips of them, read in batches of records."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from attrs import frozen

from pkgrepo.archives.source import Source
from pkgrepo.archives.zip_members import iter_members
from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import Invalid
from pkgrepo.model.advisories import MALWARE
from pkgrepo.repositories.format import Ecosystem

from .records import RECORD_SIZE, Record, read_record

BATCH: Final = 200  # records that are compared and stored together
MOST_RECORDS: Final = 1_000_000
MOST_NOTED: Final = 20  # faults that are told of
ENDING: Final = ".json"


@frozen
class Batch:
    """Some records, and the file names, without ending, of others that cannot be read, with the reasons."""

    records: Sequence[Record]
    unreadable: Mapping[str, str]


def exported_ms(path: Path) -> int:
    """
    The time of an export in ms: that of its file, or of the youngest in a folder.

    :raises OSError: it is not there
    """
    found = path.stat()
    if not stat.S_ISDIR(found.st_mode):
        return found.st_mtime_ns // 1_000_000
    return max((each.stat().st_mtime_ns for each in _files(path)), default=0) // 1_000_000


def validator_of(path: Path) -> str:
    """
    What changes whenever a zip is replaced, also within the resolution of its time; of a folder, whenever a file is
    added to it, removed or replaced, and not when one is written to.

    :raises OSError: it is not there
    """
    found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        return str(max(os.stat(place).st_mtime_ns for place, _, _ in os.walk(path)))
    return f"{found.st_mtime_ns}-{found.st_size}-{found.st_ino}"


def read_batches(
    path: Path, ecosystems: Mapping[str, Ecosystem], *, size: int = BATCH, most: int = MOST_RECORDS
) -> Iterator[Batch]:
    """
    Read an export of at most ``most`` records, one batch for each step, which may be made in different threads.

    Malware comes first, and of that the latest ids, so that it is blocked before hundreds of thousands of others are
    read.

    :raises Invalid: it is no export; :raises OSError: it cannot be read
    """
    gil = GilReleaser()
    records: list[Record] = []
    unreadable: dict[str, str] = {}
    for count, (name, data) in enumerate(_documents(path), 1):
        if count > most:
            raise Invalid(f"{path.name} has more than {most} records")
        try:
            if data is None:
                raise Invalid(f"the OSV record is longer than {RECORD_SIZE} bytes")
            records.append(read_record(data, ecosystems))
        except Invalid as error:
            unreadable[Path(name).name.removesuffix(ENDING)] = str(error)
        gil.release_if_due()
        if len(records) + len(unreadable) >= size:
            yield Batch(records, unreadable)
            records, unreadable = [], {}
    yield Batch(records, unreadable)


def _documents(path: Path) -> Iterator[tuple[str, bytes | None]]:
    """Names and contents; None for one that is too long."""
    if path.is_dir():
        for each in _files(path):
            with each.open("rb") as opened:
                data = opened.read(RECORD_SIZE + 1)
            yield each.name, None if len(data) > RECORD_SIZE else data
        return
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield from iter_members(Source(descriptor, path.name), ENDING, RECORD_SIZE, first=MALWARE)
    finally:
        os.close(descriptor)


def _files(folder: Path) -> Iterator[Path]:
    """The records in a folder and those below it; in each folder those of malware first, the last ids before others."""
    for place, folders, names in os.walk(folder):
        folders.sort()
        found = sorted(name for name in names if name.endswith(ENDING))
        early = [name for name in reversed(found) if name.startswith(MALWARE)]
        yield from (Path(place) / name for name in (*early, *(name for name in found if not name.startswith(MALWARE))))
