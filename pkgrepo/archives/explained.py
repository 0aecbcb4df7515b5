"""
The files of a package that an archive of its source does not explain, and which of them are news: pure.

A file is explained if a file with the same bytes is anywhere in the archive; an empty one always is. What is not
explained is told so that two versions can be compared:

==========  ============================================================================================================
``built``   a folder all of whose files with one ending are unexplained, with those below it, such as ``dist/*.js``
``paths``   each other file that is unexplained
==========  ============================================================================================================

More than can be told is ``MANY`` in place of folders.

Of a version new is what the version before did not have unexplained at the same path, and what is in none of its built
folders. So that which was built before is no news, and a changed file beside others that come from the source is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from .inside import LONGEST_NAME, MOST, MOST_BZ2, spellings
from .listing import walk_archive
from .source import Source

LARGEST: Final = 32 * 1024 * 1024  # bytes of a file, which is held in memory; a larger one is not explained
MOST_PLACES: Final = 500  # paths and built folders of a file
MOST_FOLDERS: Final = 1_000_000  # in the paths of all files together, which takes a second
DEEPEST: Final = 256  # folders in one path
MANY: Final = "*"  # in place of folders: more than can be told
_UNLIKE_ANY: Final = b""


class Explained(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    What of a file the archive of a ``tag`` of its source does not explain.

    Without a tag there is none, or no archive of that source: until then (ms) if one may come. ``asked`` is the address
    at which archives of the source were asked for, with places for the tag.
    """

    tag: str = ""
    paths: tuple[str, ...] = ()
    built: tuple[str, ...] = ()
    until_ms: int | None = None
    asked: str = ""

    def holds(self, asked: str, now_ms: int) -> bool:
        """Whether this is still known, if archives are asked for at an address."""
        return self.asked == asked and (self.until_ms is None or now_ms < self.until_ms)


NO_SOURCE: Final = Explained()


def digests_of_files(
    content: int | bytes, filename: str, top: re.Pattern[str] | None = None, left_out: re.Pattern[str] | None = None
) -> dict[str, bytes]:
    """
    The sha256 of each file in an archive, by its path without what is like ``top``. Blocks.

    Paths like ``left_out`` are those of files that builders write. What is empty is left out, too. A file with the path
    of another one, or that is too large, has a digest like no other.

    :raises Invalid: the archive cannot be read to its end
    """
    source, found = Source(content, filename), dict[str, bytes]()
    for each in walk_archive(source, MOST, MOST_BZ2):
        if each is None:
            raise source.refuse(f"unpacks to more than {MOST} bytes")
        if each.entry.kind != "file" or not each.entry.size:
            continue
        name = spellings(each.entry.name)[-1]
        name = name if top is None else top.sub("", name, count=1)
        if left_out is not None and left_out.search(name):
            continue
        small = each.entry.size <= LARGEST
        digest = hashlib.sha256(each.read(LARGEST)).digest() if small else _UNLIKE_ANY
        found[name] = digest if found.setdefault(name, digest) == digest else _UNLIKE_ANY
    return found


def explain_files(files: Mapping[str, bytes], archive: AbstractSet[bytes], tag: str, asked: str = "") -> Explained:
    """
    What of some files (digests by path) an archive, given by the digests of its files, does not explain.

    What is too much to be told is ``MANY``, so that nobody who makes it so stays without a difference.
    """
    unexplained = {path for path, digest in files.items() if digest not in archive}
    depths = [path.count("/") for path in files]
    if max(depths, default=0) > DEEPEST or sum(depths) > MOST_FOLDERS:
        return Explained(tag, built=(MANY,), asked=asked)
    wanted = {place for path in unexplained for place in _places(path)}
    explained = {place for path in files.keys() - unexplained for place in _places(path) if place in wanted}
    built = wanted - explained
    outer = {place for place in built if not any(each in built for each in _above(place))}
    paths = {path for path in unexplained if not any(place in outer for place in _places(path))}
    if len(outer) + len(paths) > MOST_PLACES or any(len(each) > LONGEST_NAME for each in (*outer, *paths)):
        return Explained(tag, built=(MANY,), asked=asked)
    return Explained(tag, tuple(sorted(paths)), tuple(sorted(outer)), asked=asked)


def new_places(before: Explained, after: Explained) -> Sequence[str]:
    """What of a file is unexplained, and was not of one of a version before."""
    paths, built = {*before.paths}, {*before.built}
    new = [each for each in after.paths if each not in paths and not any(place in built for place in _places(each))]
    folders = [each for each in after.built if each not in built and not any(place in built for place in _above(each))]
    return sorted((*new, *folders))


def _places(path: str) -> Iterator[str]:
    """The folders that a file is in, the outermost first, with its ending."""
    folder, _, name = path.rpartition("/")
    return _folders(folder, _ending(name))


def _above(place: str) -> Iterator[str]:
    folder, _, glob = place.rpartition("/")
    return _folders(folder.rpartition("/")[0], glob[1:])


def _folders(folder: str, ending: str) -> Iterator[str]:
    parts = folder.split("/") if folder else []
    return (f"{'/'.join(parts[: count + 1])}/*{ending}" for count in range(len(parts)))


def _ending(name: str) -> str:
    stem, dot, ending = name.rpartition(".")
    return f".{ending.lower()}" if dot and stem else ""


def names_of_tags(version: str, names: Iterable[str]) -> Sequence[str]:
    """The tags that may be those of a version of a package with these names, the likeliest first."""
    of_names = [f"{name}{mark}{version}" for name in names for mark in ("@", "-", "-v")]
    return [f"v{version}", version, *of_names]
