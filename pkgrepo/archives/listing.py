"""
Lists what is inside an archive of any kind that packages come in, and reads one small file of it, for people who look.

The kind is told by the ending of the file's name:

=====================================  ===========================================================================
.whl .egg .zip .jar .war .ear .aar     the directory of the zip archive
.tgz .tar.gz .tar.bz2 .tar             the members of the tar archive, as far as the limits allow
.gem                                   the members of its ``data.tar.gz``
.conda                                 the members of its two tar archives
=====================================  ===========================================================================

Every reader of a package can ask for this, so it must cost little however large or hostile the archive is: at most
``ListingLimits.listed`` entries are returned, and at most ``unpacked`` bytes decompressed, which takes about a second.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final, Literal

from attrs import evolve, frozen

from pkgrepo.archives.streams import Bunzip2, Gunzip, PlainStream, Unzstd
from pkgrepo.errors import Invalid

from .source import PartSource, Source
from .tar_archive import BLOCK, Member, Stream, Tar
from .zip_archive import ZipArchive

MOST_INNER: Final = 32 * 1024 * 1024  # bytes of a packed archive in an archive, which is held in memory
MOST_BZ2: Final = 16 * 1024 * 1024  # bytes of a bzip2 file that are read; a megabyte takes 60 ms
LONGEST_TEXT: Final = 64 * 1024  # bytes of a file that is read

_ZIP: Final = (".whl", ".egg", ".zip", ".jar", ".war", ".ear", ".aar")
_TAR_GZ: Final = (".tgz", ".tar.gz", ".crate")
_GEM_DATA: Final = "data.tar.gz"
_README: Final = re.compile(r"(?:\./)?(?:[^/]+/)?readme(?:\.(?:md|markdown|rst|txt|rdoc))?", re.IGNORECASE)


@frozen
class ListingLimits:
    """Limits of one listing: the number of entries, and sizes in bytes."""

    listed: int = 5000
    unpacked: int = 256 * 1024 * 1024
    digested: int = 32 * 1024 * 1024  # of a file whose digest is computed, in memory


LIMITS: Final = ListingLimits()


@frozen
class ArchiveEntry:
    """
    A file, folder or link in an archive; ``link`` is the target of a link. Names are made printable as UTF-8.

    ``sha256`` is the digest of a file in lower-case hex; empty if it was not asked for, or the file is too large.
    """

    name: str
    kind: Literal["file", "folder", "link"]
    size: int
    link: str = ""
    sha256: str = ""


@frozen
class ArchiveListing:
    """The entries of an archive in its order; not ``complete`` if a limit was reached before its end."""

    entries: tuple[ArchiveEntry, ...]
    complete: bool


@frozen
class Found:
    """
    An entry that is come by; its content can be read until the next one is.

    ``read`` is all of it, which raises ``Invalid`` if that is more than so many bytes; ``head`` the first bytes.
    """

    entry: ArchiveEntry
    read: Callable[[int], bytes]
    head: Callable[[int], bytes]


def is_archive(filename: str) -> bool:
    """Whether a file with this name is an archive that can be listed."""
    return filename.lower().endswith((*_ZIP, *_TAR_GZ, ".tar.bz2", ".tar", ".gem", ".conda"))


def list_archive(
    content: int | bytes, filename: str, *, digests: bool = False, limits: ListingLimits = LIMITS
) -> ArchiveListing:
    """
    What is inside an archive, given as a file descriptor (which stays open) or bytes. Blocks: call it in a thread.

    With ``digests`` the files in it are read, within the same limit of unpacked bytes.

    :raises Invalid: it is no archive that can be read
    """
    listed: list[ArchiveEntry] = []
    digested = 0
    for found in walk_archive(Source(content, filename), limits.unpacked):
        if found is None or len(listed) >= limits.listed:
            return ArchiveListing(tuple(listed), complete=False)
        entry = found.entry
        if digests and entry.kind == "file" and entry.size <= limits.digested:
            digested += entry.size
            if digested > limits.unpacked:
                return ArchiveListing(tuple(listed), complete=False)
            entry = evolve(entry, sha256=hashlib.sha256(found.read(limits.digested)).hexdigest())
        listed.append(entry)
    return ArchiveListing(tuple(listed), complete=True)


def read_text_entry(content: int | bytes, filename: str, name: str, limits: ListingLimits = LIMITS) -> str | None:
    """
    The text of the first file with this name in an archive; None if it is not found within the limits. Blocks.

    :raises Invalid: the file is longer than ``LONGEST_TEXT``, or no text; or the archive cannot be read
    """
    source = Source(content, filename)
    for found in walk_archive(source, limits.unpacked):
        if found is None:
            return None
        entry = found.entry
        if entry.name != name or entry.kind != "file":
            continue
        if entry.size > LONGEST_TEXT:
            raise source.refuse(f"has a {name} of more than {LONGEST_TEXT} bytes: download the whole file")
        data = found.read(LONGEST_TEXT)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            raise source.refuse(f"has a {name} that is not text: download the whole file")
        return text
    return None


def find_readme(content: int | bytes, filename: str) -> tuple[str, str] | None:
    """
    The name and the text of the readme at the top of an archive, or in its only top folder (npm, conda). Blocks.

    A readme in Markdown is preferred to others. None if there is none within the limits that can be shown as text.

    :raises Invalid: the archive cannot be read
    """
    found = [each.name for each in list_archive(content, filename).entries if _README.fullmatch(each.name)]
    for name in sorted(found, key=lambda each: (not each.lower().endswith((".md", ".markdown")), each.count("/"))):
        with suppress(Invalid):  # too long, or no text
            text = read_text_entry(content, filename, name)
            if text:
                return name, text
    return None


def walk_archive(source: Source, most: int, most_packed: int = MOST_BZ2) -> Iterator[Found | None]:
    """
    The entries of an archive; None in place of what is behind ``most`` unpacked bytes. Blocks.

    :raises Invalid: it is damaged, or no archive; or bzip2 data have more than ``most_packed`` bytes
    """
    name = source.name.lower()
    if name.endswith(_ZIP):
        return _of_zip(ZipArchive(source))
    if name.endswith(_TAR_GZ):
        return _of_tar(source, Gunzip(source), most)
    if name.endswith(".tar.bz2"):
        return _of_tar(source, Bunzip2(source, most_packed=most_packed, most=most), most)
    if name.endswith(".tar"):
        return _of_tar(source, PlainStream(source), most)
    if name.endswith(".gem"):
        return _of_gem(source, most)
    if name.endswith(".conda"):
        return _of_conda(source, most)
    raise source.refuse("is no archive that can be looked into")


def _of_zip(archive: ZipArchive) -> Iterator[Found]:
    for entry in archive.entries.values():
        kind: Literal["file", "folder"] = "folder" if entry.is_folder else "file"
        shown = ArchiveEntry(entry.name, kind, entry.size)
        yield Found(shown, partial(_read_zipped, archive, entry.name), partial(archive.head, entry.name))


def _read_zipped(archive: ZipArchive, name: str, limit: int) -> bytes:
    return archive.read(name, limit) or b""


def _of_tar(source: Source, stream: Stream, most: int) -> Iterator[Found | None]:
    tar, unpacked = Tar(source, stream), 0
    for member in tar:
        yield Found(_entry(member), tar.read, tar.head)
        # The rest of the member is decompressed next, and the header behind it.
        unpacked += BLOCK + member.size
        if unpacked > most:
            yield None
            return


def _entry(member: Member) -> ArchiveEntry:
    name, link = _printable(member.name), _printable(member.link)
    return ArchiveEntry(name, "link" if link else "folder" if member.is_folder else "file", member.size, link)


def _of_gem(source: Source, most: int) -> Iterator[Found | None]:
    stream = PlainStream(source)
    for member in Tar(source, stream):
        if member.name == _GEM_DATA:
            inner = PartSource(source, stream.position, member.size)
            yield from _of_tar(inner, Gunzip(inner), most)
            return
    raise source.refuse(f"has no {_GEM_DATA}")


def _of_conda(source: Source, most: int) -> Iterator[Found | None]:
    archive = ZipArchive(source)
    packed = sorted(each for each in archive.entries if each.endswith(".tar.zst"))  # info-... comes before pkg-...
    if len(packed) > 2:  # each of which may unpack to the limit
        raise source.refuse("has more than two tar archives (CEP 35)")
    for name in packed:
        inner = archive.stored(name) or Source(archive.read(name, MOST_INNER) or b"", source.name)
        yield from _of_tar(inner, Unzstd(inner), most)


def _printable(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
