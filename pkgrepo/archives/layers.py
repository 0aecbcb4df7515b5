"""
Which programs in the layers of an image run with the rights of their owner: files with setuid or setgid.

A layer is a tar archive (OCI image layer). What it has at a path takes the place of what the layers below have there:

=========================  =========================================================================================
entry in a layer           what becomes of the programs below
=========================  =========================================================================================
``FOLDER/.wh.NAME``        ``FOLDER/NAME`` is removed, with all that is in it
``FOLDER/.wh..wh..opq``    everything in ``FOLDER`` is
anything at a path         what was there is replaced; if it was a folder and this is none, all that was in it is, too
=========================  =========================================================================================

Programs that unpack layers differ where a layer removes a folder and has it again: then nothing in it counts as
removed. A stack of layers is named by its chain id, which is made of their digests; images that share their lowest
layers share these names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from typing import Any, Final

from attrs import define, evolve, field

from pkgrepo.archives.inside import MOST, MOST_BZ2

from .source import ArchiveLimits, Source
from .streams import Bunzip2, Gunzip, PlainStream, Unzstd
from .tar_archive import Member, Stream, Tar

LIMITS: Final = ArchiveLimits(  # an image of a whole system has 200,000 files
    entries=500_000,
    free_entries=500_000,
    names=64 * 1024 * 1024,
    extended=256 * 1024 * 1024,
    free_size=MOST,
    unpacked=MOST,
)
MOST_STREAMS: Final = LIMITS.entries  # of gzip: eStargz has one for each file
MOST_PROGRAMS: Final = 500  # with setuid or setgid; a usual base image has 20
MOST_NAMES: Final = 64 * 1024  # bytes of their paths together

_WHITEOUT, _META, _OPAQUE = ".wh.", ".wh..wh.", ".wh..wh..opq"
_SPECIAL: Final = (b"3", b"4", b"6")  # devices and named pipes
_FILES: Final = (b"0", b"\x00", b"7")
_HARD_LINK: Final = b"1"
_SET_ID, _EXECUTE = 0o6000, 0o111
_GZIP, _BZIP2, _ZSTD = b"\x1f\x8b", b"BZh", b"\x28\xb5\x2f\xfd"


def chain_of(below: str, layer: str) -> str:
    """The chain id of a stack of layers (OCI image config): of the one below, empty for none, and the digest on top."""
    return layer if not below else f"sha256:{hashlib.sha256(f'{below} {layer}'.encode()).hexdigest()}"


def programs_with(content: int | bytes, name: str, below: Collection[str]) -> tuple[str, ...]:
    """
    The paths of the programs with setuid or setgid in a stack of layers, of which one is put on those ``below``.

    The layer is given as a file descriptor (which stays open) or bytes. Blocks: call it in a thread.

    :raises Invalid: the layer cannot be read to its end, or there are too many such programs
    """
    source = Source(content, name, LIMITS)
    changes = _Changes(below)
    for member in _Layer(source, _unpacked(source)):
        changes.add(source, member)
    found = sorted({*changes.own, *changes.linked(), *(each for each in below if not changes.removes(each))})
    if len(found) > MOST_PROGRAMS or sum(map(len, found)) > MOST_NAMES:
        raise source.refuse(f"has more than {MOST_PROGRAMS} programs with setuid or setgid, or too long names of these")
    return tuple(found)


@define
class _Changes:
    """What a layer has (``own``), and what it does to the programs ``below``, and to the folders that these are in."""

    below: Collection[str]
    own: set[str] = field(factory=set)
    _files: dict[str, str] = field(factory=dict)  # the first paths of files, by those of hard links to them
    _near: set[str] = field(init=False)
    _removed: set[str] = field(factory=set)
    _emptied: set[str] = field(factory=set)
    _replaced: set[str] = field(factory=set)
    _present: set[str] = field(factory=set)
    _last: str = ""

    def __attrs_post_init__(self) -> None:
        self._near = {*self.below, *(folder for each in self.below for folder in _folders(each))}

    def add(self, source: Source, member: Member) -> None:
        """Take an entry of the layer into account."""
        path = _plain(source, member.name)
        folder, _, name = path.rpartition("/")
        if name == _OPAQUE:
            self._emptied.add(folder)
        elif name.startswith(_WHITEOUT) and name != _WHITEOUT and not name.startswith(_META):
            self._removed.add(f"{folder}/{name.removeprefix(_WHITEOUT)}".removeprefix("/"))
        else:
            self._add_entry(path, folder, member, source)

    def _add_entry(self, path: str, folder: str, member: Member, source: Source) -> None:
        if member.link and not member.is_symbolic:
            target = _plain(source, member.link)
            file = self._files[path] = self._files.get(target, target)
            if target in self.below:
                self.own.add(path)
            if member.mode & _SET_ID and member.mode & _EXECUTE:  # which the file gets by that, under all its paths
                self.own.add(file)
        if member.mode & _SET_ID and member.mode & _EXECUTE:
            self.own.add(path)
        if path in self._near:
            (self._present if member.is_folder else self._replaced).add(path)
        if folder != self._last:
            self._last = folder
            self._present.update(each for each in (folder, *_folders(folder)) if each in self._near)

    def linked(self) -> Iterator[str]:
        """The paths of hard links to what it has."""
        files = {self._files.get(each, each) for each in self.own}
        return (path for path, file in self._files.items() if file in files)

    def removes(self, path: str) -> bool:
        """Whether a program below is not there any more, or is another one."""
        folders = list(_folders(path))
        gone = (self._removed | self._replaced) - self._present
        return (
            path in self._removed | self._replaced | self._present
            or not self._emptied.isdisjoint(folders)
            or not gone.isdisjoint(folders)
        )


class _Layer(Tar):
    """Iterates over the entries of a layer, which may be devices and named pipes, too."""

    def _member(self, header: bytes, kind: bytes, override: Any) -> Member:
        special = kind in _SPECIAL
        if special and self._left:
            raise self._source.refuse("has a device or named pipe with content")
        found = super()._member(header, b"0" if special else kind, override)
        # Some programs take a file whose name ends with a slash for a folder, others do not.
        has_mode = kind in (*_FILES, _HARD_LINK)
        return evolve(found, mode=self._number(header[100:108], "mode")) if has_mode else found


def _unpacked(source: Source) -> Stream:
    """The tar archive in a layer. Programs that unpack layers go by the first bytes, whatever the media type is."""
    head = source.read(0, min(4, source.size))
    if head.startswith(_GZIP):
        return Gunzip(source, most_streams=MOST_STREAMS)
    if head == _ZSTD or (head[1:] == b"\x2a\x4d\x18" and head[0] & 0xF0 == 0x50):  # or a skippable frame
        return Unzstd(source, frames=True)
    if head.startswith(_BZIP2):
        return Bunzip2(source, most_packed=MOST_BZ2, most=MOST)
    return PlainStream(source)


def _plain(source: Source, name: str) -> str:
    """A path without dots and slashes that mean nothing; the top folder is empty."""
    parts = [each for each in name.split("/") if each not in ("", ".")]
    if ".." in parts:
        raise source.refuse(f"has an entry {name!a} outside of its folder")
    return "/".join(parts).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _folders(path: str) -> Iterator[str]:
    """The folders that a path is in, the top one last."""
    while path:
        path = path.rpartition("/")[0]
        yield path
