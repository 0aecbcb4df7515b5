"""Finds the reader of a lock file, by its name and by the format of the repository."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from pkgrepo.errors import Invalid

from . import npm, others, python
from .wanted import Lock, Wanted

Read = Callable[[str], Lock]

NAMES: Final[Mapping[str, Read]] = {
    "package-lock*.json": npm.read_package_lock,
    "npm-shrinkwrap.json": npm.read_package_lock,
    "yarn*.lock": npm.read_yarn,
    "pnpm-lock*.yaml": npm.read_pnpm,
    "bun.lock": npm.read_bun,
    "uv.lock": python.read_uv,
    "poetry.lock": python.read_poetry,
    "pdm.lock": python.read_poetry,
    "pylock*.toml": python.read_pylock,
    "pipfile.lock": python.read_pipfile,
    "*.gemfile.lock": others.read_gemfile,
    "gemfile*.lock": others.read_gemfile,
    "gems.locked": others.read_gemfile,
    "conda-lock*.y*ml": others.read_conda_lock,
    "*.conda-lock.y*ml": others.read_conda_lock,
    "pixi.lock": others.read_pixi,
    "gradle.lockfile": others.read_maven,
    "pom.xml": others.read_maven,
}
OTHERS: Final[Mapping[str, Read]] = {  # by the format, for a file with any other name
    "npm": npm.read_package_lock,
    "python": python.read_requirements,
    "ruby": others.read_gemfile,
    "conda": others.read_explicit,
    "maven": others.read_maven,
    "docker": others.read_images,
}


FOLDER_LIST: Final = "list of a local Maven repository"  # the name of the list that a command makes of a folder
_OF_READERS: Final[Mapping[Read, frozenset[str]]] = {
    others.read_conda_lock: frozenset({"conda", "python"}),
    others.read_pixi: frozenset({"conda", "python"}),
    others.read_gemfile: frozenset({"ruby"}),
    others.read_maven: frozenset({"maven"}),
    **dict.fromkeys((npm.read_package_lock, npm.read_yarn, npm.read_pnpm, npm.read_bun), frozenset({"npm"})),
    **dict.fromkeys(
        (python.read_uv, python.read_poetry, python.read_pylock, python.read_pipfile), frozenset({"python"})
    ),
}
_SIGNS: Final = (  # of the text of a file with any other name, and of its name
    (re.compile(r"^@EXPLICIT", re.MULTILINE), re.compile(r"(?!)"), "conda"),
    (re.compile(r"\s*\{"), re.compile(r"(?!)"), "npm"),
    (re.compile(r"^(GEM|CHECKSUMS)$", re.MULTILINE), re.compile(r"(?!)"), "ruby"),
    (re.compile(r"(?!)"), re.compile(r"require|constrain|freeze"), "python"),
    (re.compile(r"(?!)"), re.compile(r"image"), "docker"),
    (re.compile(r"<project[\s>]|\[INFO\]"), re.compile(re.escape(FOLDER_LIST.casefold())), "maven"),
)


def find_formats(name: str, text: str) -> frozenset[str]:
    """The formats of the repositories that a lock file may be for."""
    base = _base(name)
    read = next((read for pattern, read in NAMES.items() if fnmatchcase(base, pattern)), None)
    if read is not None:
        return _OF_READERS[read]
    for in_text, in_name, format_name in _SIGNS:
        if in_text.search(text) or in_name.search(base):
            return frozenset({format_name})
    return frozenset({"python", "maven", "docker"})


def _base(name: str) -> str:
    return name.replace("\\", "/").rpartition("/")[2].casefold()


def read_lock(name: str, text: str, format_name: str) -> Lock:
    """
    What a lock file with a name has for repositories of a format, each file once.

    :raises Invalid: it cannot be read, or has nothing for such a repository
    """
    base = _base(name)
    read = next((read for pattern, read in NAMES.items() if fnmatchcase(base, pattern)), OTHERS[format_name])
    try:
        lock = read(text.removeprefix("\ufeff"))
    except Invalid as error:
        raise Invalid(f"{name[:200]}: {error.message}") from None
    mine = list(dict.fromkeys(each for each in lock.wanted if each.format == format_name))
    if not mine and not (lock.left_out or not lock.wanted):
        raise Invalid(f"{name[:200]} has nothing for a repository of the format {format_name}")
    return Lock(_merged(mine), list(dict.fromkeys(lock.left_out)))


def _merged(wanted: list[Wanted]) -> list[Wanted]:
    """Those of one file once, with the digests that any of them has."""
    found: dict[tuple[object, ...], Wanted] = {}
    for each in wanted:
        key = (each.name, each.version, each.file, each.platforms)
        known = found.get(key)
        if known is None or (each.digests and not known.digests):
            found[key] = each
    return list(found.values())
