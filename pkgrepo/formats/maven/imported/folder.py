"""
A folder with the layout of a Maven repository, walked one directory at a time, those below first.

Left out are hidden names, and what build tools write into their own local repositories for bookkeeping.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final

from attrs import Factory, define

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.paths import ALGORITHMS, LONGEST_PATH, Checksum, Directory, FilePath, parse_text
from pkgrepo.untrusted.text import quoted

# Maven's and Ivy's local repositories: where a file came from, failed downloads, metadata by repository.
_BOOKKEEPING: Final = re.compile(
    r"_remote\.repositories|_maven\.repositories|resolver-status\.properties|m2e-lastUpdated\.properties"
    r"|maven-metadata-.*\.(xml|properties)|.*\.(lastUpdated|part|lock|tmp)"
)


@define
class SourceDirectory:
    """
    The files of one directory: their places on the disk by what they are, and the checksums that lie beside them.

    ``sums`` are places by path of the file and algorithm. ``problems`` are sentences about what is left out because it
    is wrong, ``skipped`` the number of files that are left out otherwise.
    """

    path: str
    files: list[tuple[FilePath, str]] = Factory(list)
    sums: dict[tuple[str, str], str] = Factory(dict)
    problems: list[str] = Factory(list)
    skipped: int = 0


def walk(
    root: str, path: str = "", *, follow_links: bool, above: tuple[tuple[int, int], ...] = ()
) -> Iterator[SourceDirectory]:
    """
    Iterate over all directories with their files, each after those below it. It blocks: call ``next`` in a thread.

    Symbolic links are problems unless ``follow_links``: then they count as what they lead to, except to directories
    around them: ``above`` has their devices and inodes.
    """
    found = SourceDirectory(path)
    folders: list[str] = []
    try:
        if len(path.encode("utf-8", "surrogateescape")) > LONGEST_PATH:
            raise Invalid("the path is too long")
        at = os.stat(f"{root}/{path}")
        mine = (at.st_dev, at.st_ino)
        if mine in above:
            raise Invalid("a symbolic link leads to a directory around it")
        with os.scandir(f"{root}/{path}") as entries:
            for entry in entries:
                _sort_in(entry, found, folders, follow_links)
    except (OSError, Invalid) as error:
        found.problems.append(_sentence(path, error))
        folders.clear()
    for name in sorted(folders):
        below = f"{path}/{name}" if path else name
        yield from walk(root, below, follow_links=follow_links, above=(*above, mine))
    # Metadata may be there under both names; POMs come first, since they describe what follows.
    found.files.sort(key=lambda each: (not each[0].path.endswith(".pom"), each[0].path, each[1]))
    yield found


def _sort_in(entry: os.DirEntry[str], found: SourceDirectory, folders: list[str], follow_links: bool) -> None:
    path = f"{found.path}/{entry.name}" if found.path else entry.name
    if entry.name.startswith("."):
        found.skipped += 1
        return
    try:
        if entry.is_symlink() and not follow_links:
            raise Invalid("symbolic links are not followed (--follow-links)")
        if entry.is_dir():
            folders.append(entry.name)
        elif entry.is_file():
            _add_file(entry, path, found)
        else:
            raise Invalid("it is neither a file nor a directory")
    except (OSError, Invalid) as error:
        found.problems.append(_sentence(path, error))


def _add_file(entry: os.DirEntry[str], path: str, found: SourceDirectory) -> None:
    stem, _, suffix = entry.name.rpartition(".")
    summed = bool(stem) and suffix in ALGORITHMS
    if _BOOKKEEPING.fullmatch(stem if summed else entry.name):
        found.skipped += 1
        return
    target = parse_text(path)
    if isinstance(target, Checksum):
        found.sums[target.of.path, target.algorithm] = entry.path
    elif not isinstance(target, Directory):
        found.files.append((target, entry.path))


def _sentence(path: str, error: OSError | Invalid) -> str:
    shown = path if path.isprintable() and path.isascii() else quoted(path)
    return f"{shown or 'the folder'}: {error.strerror if isinstance(error, OSError) else error}"
