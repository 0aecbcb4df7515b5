"""Where a channel has what lock files name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pkgrepo.gateway.mirrored.locks import Wanted
from pkgrepo.gateway.mirrored.places import LockFile, Mirrored, Place, by_name, is_path, list_files
from pkgrepo.gateway.services import Services
from pkgrepo.model import Repository
from pkgrepo.proxy.caching.questions import DocumentRequest

from .locks import NAME, WHEELS, read_conda_lock, read_explicit, read_pixi
from .names import NOARCH, SUBDIRS, check_name, check_subdir, parse_file_name
from .proxied.restoring import repodata_question

PLATFORMS: Final = (NOARCH, "linux-64", "linux-aarch64", "osx-64", "osx-arm64", "win-64")


def _package_key(wanted: Wanted) -> str:
    return parse_file_name(wanted.file.rpartition("/")[2]).name


def _places(wanted: Wanted) -> Iterator[Place]:
    yield Place(wanted=wanted, key=_package_key(wanted), path=wanted.file)


def _document_keys(wanted: Wanted) -> Iterator[str]:
    yield f"{check_subdir(wanted.file.partition('/')[0])}/{_package_key(wanted)}"


def _document_key(name: str) -> str:
    return name if "/" in name else check_name(name)


def _common(wanted: Sequence[Wanted]) -> list[DocumentRequest]:
    """
    The documents of folders.

    Where only packages for every platform are wanted, clients ask for the folders of their own, too.
    """
    subdirs = {each.file.partition("/")[0] for each in wanted} & {*SUBDIRS}
    return [repodata_question(each) for each in sorted(subdirs | {NOARCH} if subdirs - {NOARCH} else {*PLATFORMS})]


async def _choose(services: Services, repository: Repository, name: str, versions: Sequence[str]) -> list[Wanted]:
    """The files of versions: a folder has several of each."""
    found = [each for each in await list_files(services, repository, name) if each.version in versions]
    return [Wanted(format=NAME, name=name, file=each.path) for each in found]


_BOTH: Final = frozenset({NAME, WHEELS})
MIRRORED: Final = Mirrored(
    lock_files=(
        LockFile(("conda-lock*.y*ml", "*.conda-lock.y*ml"), read_conda_lock, _BOTH),
        LockFile(("pixi.lock",), read_pixi, _BOTH),
    ),
    read_list=read_explicit,
    text_sign=re.compile(r"^@EXPLICIT", re.MULTILINE),
    document_keys=_document_keys,
    common=_common,
    places=by_name(_places),
    choose=_choose,
    document_key=_document_key,
    package_key=_package_key,
    is_wanted=is_path,
)
