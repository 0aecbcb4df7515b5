"""Finds the reader of a lock file, by its name and by the format of the repository."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase

from pkgrepo.errors import Invalid
from pkgrepo.gateway.mirrored.locks import Lock, Wanted
from pkgrepo.gateway.mirrored.places import LockFile, Mirrored

Formats = Mapping[str, Mirrored]  # by name


def find_formats(name: str, text: str, formats: Formats) -> frozenset[str]:
    """The formats of the repositories that a lock file may be for."""
    base = _base(name)
    known = _find(base, formats)
    if known is not None:
        return known.formats
    for format_name, each in formats.items():
        if each.text_sign is not None and each.text_sign.search(text):
            return frozenset({format_name})
    for format_name, each in formats.items():
        if each.name_sign is not None and each.name_sign.search(base):
            return frozenset({format_name})
    return frozenset(name for name, each in formats.items() if each.name_sign is not None)


def read_lock(name: str, text: str, format_name: str, formats: Formats) -> Lock:
    """
    What a lock file with a name has for repositories of a format, each file once.

    :raises Invalid: it cannot be read, or has nothing for such a repository
    """
    known = _find(_base(name), formats)
    read = formats[format_name].read_list if known is None else known.read
    try:
        lock = read(text.removeprefix("\ufeff"))
    except Invalid as error:
        raise Invalid(f"{name[:200]}: {error.message}") from None
    mine = list(dict.fromkeys(each for each in lock.wanted if each.format == format_name))
    if not mine and not (lock.left_out or not lock.wanted):
        raise Invalid(f"{name[:200]} has nothing for a repository of the format {format_name}")
    return Lock(_merged(mine), list(dict.fromkeys(lock.left_out)))


def _base(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2].casefold()


def _find(base: str, formats: Formats) -> LockFile | None:
    every = (file for each in formats.values() for file in each.lock_files)
    return next((each for each in every if any(fnmatchcase(base, pattern) for pattern in each.names)), None)


def _merged(wanted: list[Wanted]) -> list[Wanted]:
    """Each file once, from an entry with digests if there is one."""
    found: dict[tuple[object, ...], Wanted] = {}
    for each in wanted:
        key = (each.name, each.version, each.file, each.platforms)
        known = found.get(key)
        if known is None or (each.digests and not known.digests):
            found[key] = each
    return list(found.values())
