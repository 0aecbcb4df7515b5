"""Where a repository has the gems that lock files name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pkgrepo.gateway.mirrored.locks import Wanted
from pkgrepo.gateway.mirrored.places import LockFile, Mirrored, Place, by_name, is_version

from .locks import NAME, read_gemfile
from .names import check_name, full_name
from .paths import gem_path
from .proxied.upstream import versions_question


def _places(wanted: Wanted) -> Iterator[Place]:
    yield Place(wanted=wanted, key=wanted.name, path=gem_path(full_name(wanted.name, wanted.version)))


MIRRORED: Final = Mirrored(
    lock_files=(LockFile(("*.gemfile.lock", "gemfile*.lock", "gems.locked"), read_gemfile, frozenset({NAME})),),
    read_list=read_gemfile,
    text_sign=re.compile(r"^(GEM|CHECKSUMS)$", re.MULTILINE),
    document_keys=lambda wanted: iter([check_name(wanted.name)]),
    common=lambda _wanted: [versions_question()],  # the list of all gems
    places=by_name(_places),
    is_wanted=is_version,
)
