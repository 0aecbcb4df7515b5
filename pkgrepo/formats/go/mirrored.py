"""Lock files of Go, go.sum and go.mod, and where a repository has what they name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pkgrepo.archives.module_zip import LARGEST_FILE, h1_of_mod, read_mod
from pkgrepo.archives.source import Source
from pkgrepo.errors import Invalid
from pkgrepo.gateway.mirrored.locks import Lock, Wanted
from pkgrepo.gateway.mirrored.places import LockFile, Mirrored, Place, by_name, is_version
from pkgrepo.untrusted.text import quoted

from .archive import read_module
from .facts import NAME
from .names import KINDS, escape, file_path

_OWN: Final = frozenset({NAME})
_SUM: Final = re.compile(r"(\S+)[ @](v[^\s/]+)(/go\.mod)?(?: (h1:\S+))?")


def read_sum(text: str) -> Lock:
    """``go.sum``, or a list of ``module@version``. :raises Invalid: it is another file"""
    lock = Lock()
    for line in filter(None, map(str.strip, text.splitlines())):
        found = _SUM.fullmatch(line)
        if found is None:
            raise Invalid(f"it has a line that is no module with a version: {quoted(line)}")
        only = f"{escape(found[2])}.mod" if found[3] else ""
        digests = frozenset({("h1", found[4])} if found[4] else ())
        lock.want(Wanted(format=NAME, name=found[1], version=found[2], file=only, digests=digests))
    return lock


def read_requires(text: str) -> Lock:
    """``go.mod``: what it requires, also indirectly. :raises Invalid: it is another file"""
    lock, said = Lock(), read_mod(text.encode())
    for name, version in (said.requires | said.indirect).items():
        lock.want(Wanted(format=NAME, name=name, version=version))
    return lock


def _places(wanted: Wanted) -> Iterator[Place]:
    for number, kind in enumerate(("mod",) if wanted.file else KINDS):
        path = file_path(wanted.name, wanted.version, kind)
        yield Place(wanted=wanted, key=wanted.name, path=path, is_companion=number > 0, uncounted=number > 0)


def _h1(content: int | bytes, path: str) -> str:
    """The hash in go.sum of a kept zip or ``.mod``. :raises Invalid: it is no module zip"""
    source = Source(content, path)
    if not path.endswith(".zip") and source.size > LARGEST_FILE:
        raise source.refuse(f"has more than {LARGEST_FILE} bytes")
    return read_module(content).h1 if path.endswith(".zip") else h1_of_mod(source.read(0, source.size))


MIRRORED: Final = Mirrored(
    lock_files=(LockFile(("*go*.sum",), read_sum, _OWN), LockFile(("*go*.mod",), read_requires, _OWN)),
    read_list=read_sum,
    text_sign=re.compile(r" h1:|^\S+@v[0-9]", re.MULTILINE),
    places=by_name(_places),
    is_wanted=is_version,
    hashes={"h1": _h1},
)
