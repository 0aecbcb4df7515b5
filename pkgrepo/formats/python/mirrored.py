"""Where an index has what requirements and lock files name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pkgrepo.gateway.mirrored.locks import Wanted, differs
from pkgrepo.gateway.mirrored.places import Listed, LockFile, Mirrored, Place, list_files
from pkgrepo.gateway.services import Services
from pkgrepo.model import Repository

from .locks import PYTHON, read_pipfile, read_poetry, read_pylock, read_requirements, read_uv
from .names import METADATA, normalise, split_companion
from .versions import find_version


async def _places(services: Services, repository: Repository, wanted: Sequence[Wanted]) -> list[Place]:
    key = normalise(wanted[0].name)
    listed = await list_files(services, repository, key)
    return [place for each in wanted for place in _among(each, key, listed)]


def _among(wanted: Wanted, key: str, listed: Sequence[Listed]) -> Iterator[Place]:
    """The files with the name, or those of the version with one of the digests; wheels with their metadata."""
    paths = {each.path for each in listed}
    for each in listed:
        if each.name.endswith(METADATA) or not _is_listed(wanted, each):
            continue
        yield Place(wanted=wanted, key=key, path=each.path)
        if each.path + METADATA in paths:
            yield Place(wanted=wanted, key=key, path=each.path + METADATA, is_companion=True, uncounted=True)


def _is_listed(wanted: Wanted, each: Listed) -> bool:
    return _is_wanted(wanted, each.version, each.path, each.name) and (
        bool(wanted.file) or differs(wanted.digests, each.digests) is not True
    )


def _is_wanted(wanted: Wanted, version: str, _path: str, base: str) -> bool:
    if wanted.file:
        return wanted.file == base
    parsed = find_version(version)
    return wanted.version == version if parsed is None else find_version(wanted.version) == parsed


_OWN: Final = frozenset({PYTHON})
MIRRORED: Final = Mirrored(
    lock_files=(
        LockFile(("uv.lock",), read_uv, _OWN),
        LockFile(("poetry.lock", "pdm.lock"), read_poetry, _OWN),
        LockFile(("pylock*.toml",), read_pylock, _OWN),
        LockFile(("pipfile.lock",), read_pipfile, _OWN),
    ),
    read_list=read_requirements,
    name_sign=re.compile(r"require|constrain|freeze"),
    document_keys=lambda wanted: iter([normalise(wanted.name)]),
    places=_places,
    package_key=lambda wanted: normalise(wanted.name),
    split=split_companion,
    is_wanted=_is_wanted,
)
