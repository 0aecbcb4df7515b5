"""Lists of files with digests, as ``sha256sum`` prints them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.formats.raw.configuration import patterns_of
from pkgrepo.formats.raw.paths import check_path, package_of
from pkgrepo.gateway.mirrored.locks import Lock, Wanted, parse_sum
from pkgrepo.gateway.mirrored.places import LockFile, Mirrored, Place, is_path, list_files
from pkgrepo.gateway.services import Services
from pkgrepo.model import Repository

NAME: Final = "raw"


def read_list(text: str) -> Lock:
    """Lines of a digest and a path. :raises Invalid: it has none"""
    lock = Lock()
    for line in text.splitlines():
        if (found := parse_sum(line.strip())) is not None:
            path = found[1].lstrip("/")
            lock.want(Wanted(format=NAME, name=package_of(path, ()), file=path, digests=found[0]))
        elif line.strip() and not line.startswith("#"):
            lock.leave_out(line, "this is no digest with a path after it")
    if not lock.wanted:
        raise Invalid("it has no lines with a digest and a path, as sha256sum prints them")
    return lock


async def _places(_services: Services, repository: Repository, wanted: Sequence[Wanted], /) -> list[Place]:
    """The places of files, whose packages are those of the repository."""
    found, patterns = [], patterns_of(repository)
    for each in wanted:
        with suppress(Invalid):  # no file can be called so
            path = check_path(each.file)
            found.append(Place(wanted=each, key=package_of(path, patterns), path=path))
    return found


async def _choose(services: Services, repository: Repository, name: str, versions: Sequence[str]) -> list[Wanted]:
    found = [each for each in await list_files(services, repository, name) if each.version in versions]
    return [Wanted(format=NAME, name=name, file=each.path) for each in found]


MIRRORED: Final = Mirrored(
    lock_files=(LockFile(("*sha256sum*", "*sha512sum*", "*.sha256", "*.sha512"), read_list, frozenset({NAME})),),
    read_list=read_list,
    text_sign=re.compile(r"^[0-9a-f]{64}([0-9a-f]{64})? [ *]\S", re.MULTILINE),
    document_keys=lambda _wanted: iter(()),
    places=_places,
    choose=_choose,
    is_wanted=is_path,
)
