"""Finds backups in a place, gets their parts with the digests compared, and reads all blobs to compare theirs."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from attrs import Factory, define

from pkgrepo.concurrency.pools import Pools
from pkgrepo.concurrency.together import together
from pkgrepo.errors import DigestMismatch, Invalid, NotFound, PkgrepoError
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.context import FAILURES, reason_of
from pkgrepo.repositories.integrity import digest_of
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.small_files import private_opener

from .manifests import LOST, Entry, Manifest, Part, decode, id_of, is_manifest, key_name, read_list
from .place import Place, content_id

PARALLEL: Final = 4  # blobs that are read at once
PAGE: Final = 200
GENERATIONS: Final = 16  # copies of the same bytes in a place that are tried
MOST_NAMED: Final = 20  # damaged blobs that a report names


@define
class Reading:
    """What was found: how many blobs were read, their bytes, and sentences about those that are wrong."""

    blobs: int = 0
    size: int = 0
    damaged: int = 0
    problems: list[str] = Factory(list)


async def list_backups(place: Place) -> list[str]:
    """The names of the manifests, the oldest first."""
    return [name for name in await place.names("backups") if is_manifest(name)]


async def read_manifest(place: Place, backup_id: str = "") -> tuple[str, Manifest]:
    """
    The name and the manifest of a backup by its id, or of the newest.

    :raises NotFound: there is none; :raises Invalid: it is damaged
    """
    names = [name for name in await list_backups(place) if backup_id in ("", id_of(name))]
    if not names:
        raise NotFound("backup", backup_id or f"in {place.address}")
    name = names[-1]
    manifest = decode(name, await place.read(name))
    if place.store_id != content_id(manifest.server):
        raise Invalid(f"the file content/format in {place.address} is damaged, or of the backups of another server")
    return name, manifest


async def read_key(place: Place, name: str, manifest: Manifest) -> bytes | None:
    """The file of the key, or None if the backup does not have it. :raises Invalid: it is damaged"""
    if manifest.key_sha256 is None:
        return None
    data = await place.read(key_name(id_of(name)))
    if hashlib.sha256(data).hexdigest() != manifest.key_sha256:
        raise Invalid("the key in the backup is damaged: its bytes do not have the digest in the manifest")
    return data


async def get_part(place: Place, pools: Pools, part: Part, target: Path, what: str) -> None:
    """
    Copy a part of a backup to a new file, which only the owner can read.

    :raises Invalid: its bytes are damaged; :raises PkgrepoError: it is missing, or cannot be read or written
    """
    try:
        descriptor = await place.store.open(part.locator).as_file()
        found = await pools.disk(_copy, descriptor, target)
    except FAILURES as error:
        raise Invalid(f"the {what} of the backup cannot be read: {reason_of(error)}") from error
    if found != part.sha256:
        raise Invalid(f"the {what} of the backup is damaged: its bytes do not have the digest in the manifest")


async def check_blobs(place: Place, pools: Pools, list_path: Path, total: int, progress: Progress) -> Reading:
    """Read every blob in a list, and compare its digest."""
    report = Reading()
    progress.begin("blobs of the backup that are read", total)
    entries = read_list(list_path)
    while some := await pools.disk(_page, entries):
        for start in range(0, len(some), PARALLEL):
            part = some[start : start + PARALLEL]
            await together(_check(place, pools, each, report) for each in part)
            progress.step(len(part))
    progress.end()
    if report.damaged > MOST_NAMED:
        report.problems.append(f"and {report.damaged - MOST_NAMED} more blobs")
    return report


async def sound_locators(place: Place, entry: Entry) -> Sequence[str]:
    """Where the bytes of an entry may be: its own copy, and later ones that a backup made since that was damaged."""
    found = await place.store.scan(f"{entry.sha256[:2]}/{entry.sha256}", GENERATIONS)
    others = [locator for locator, size, _ in found if entry.sha256 in locator and size == entry.size]
    return [entry.locator, *(each for each in others if each != entry.locator)]


def as_blob(entry: Entry, locator: str) -> BlobInfo:
    """The blob of the place's store that has the bytes of an entry."""
    return BlobInfo(entry.sha256, entry.size, locator, {"sha256": entry.sha256})


async def _check(place: Place, pools: Pools, entry: Entry, report: Reading) -> None:
    if entry.locator == LOST:
        return
    report.blobs += 1
    report.size += entry.size
    try:
        actual = await digest_of(pools, place.store, entry.locator)
        if actual != entry.sha256:
            raise DigestMismatch("sha256", entry.sha256, actual)
    except FAILURES as error:
        report.damaged += 1
        if report.damaged <= MOST_NAMED:
            why = "its bytes have changed" if isinstance(error, DigestMismatch) else reason_of(error)
            report.problems.append(f"blob {entry.sha256} of the backup: {why}")


def _page(entries: Iterator[Entry]) -> list[Entry]:
    return list(islice(entries, PAGE))


def _copy(descriptor: int, target: Path) -> str:
    """Copy a file to a new one, which is durable. Returns the sha256 of its bytes."""
    digest = hashlib.sha256()
    with os.fdopen(descriptor, "rb") as source, open(target, "xb", opener=private_opener) as copy:
        while piece := source.read(1024 * 1024):
            digest.update(piece)
            copy.write(piece)
        copy.flush()
        os.fsync(copy.fileno())
    return digest.hexdigest()


def first_problem(problems: Sequence[str]) -> str:
    """A sentence of the first problem, with the number of the others."""
    more = len(problems) - 1
    return problems[0] + (f" (and {more} more problems)" if more > 0 else "")


class BackupProblem(PkgrepoError):  # noqa: N818 - named for what was found
    """A backup is damaged or incomplete; the text says how."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__(first_problem(problems))
        self.problems = list(problems)
