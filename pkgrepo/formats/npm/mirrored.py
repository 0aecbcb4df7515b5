"""Where a repository has what lock files of npm, yarn, pnpm and bun name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.gateway.mirrored.locks import Wanted
from pkgrepo.gateway.mirrored.places import LockFile, Mirrored, Place, by_name, is_version

from .locks import NPM, read_bun, read_package_lock, read_pnpm, read_yarn
from .names import is_readable
from .paths import tarball_path


def _places(wanted: Wanted) -> Iterator[Place]:
    yield Place(wanted=wanted, key=wanted.name, path=tarball_path(wanted.name, wanted.version))


def _document_keys(wanted: Wanted) -> Iterator[str]:
    if not is_readable(wanted.name):
        raise Invalid(f"no package can be called {wanted.name[:200]!r}")
    yield wanted.name


_OWN: Final = frozenset({NPM})
MIRRORED: Final = Mirrored(
    lock_files=(
        LockFile(("package-lock*.json", "npm-shrinkwrap.json"), read_package_lock, _OWN),
        LockFile(("yarn*.lock",), read_yarn, _OWN),
        LockFile(("pnpm-lock*.yaml",), read_pnpm, _OWN),
        LockFile(("bun.lock",), read_bun, _OWN),
    ),
    read_list=read_package_lock,
    text_sign=re.compile(r"\A\s*\{"),
    document_keys=_document_keys,
    places=by_name(_places),
    is_wanted=is_version,
)
