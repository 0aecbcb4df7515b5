"""Checks source distributions (PEP 517, PEP 625, PEP 721) without unpacking them."""

from __future__ import annotations

import posixpath

from pkgrepo.archives.source import MOST_FOLDERS, Source, check_entry_name, is_portable
from pkgrepo.archives.streams import Gunzip
from pkgrepo.archives.tar_archive import Member, Tar
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.formats.python.limits import METADATA_SIZE
from pkgrepo.formats.python.names import FileName, split_stem

PKG_INFO = "PKG-INFO"


def read_sdist(source: Source, filename: FileName) -> bytes:
    """
    The exact bytes of a source distribution's PKG-INFO.

    Every entry is checked, so that unpacking the archive cannot write outside its folder.

    :raises Invalid: it is not a valid source distribution of that project and version
    """
    tree = _Tree(source, filename)
    found = _read_zip(source, tree) if filename.filename.endswith(".zip") else _read_tar(source, tree)
    if found is None:
        raise source.refuse(f"must have {tree.top or filename.stem}/{PKG_INFO}")
    return found


def _read_zip(source: Source, tree: _Tree) -> bytes | None:
    archive = ZipArchive(source)
    for name, entry in archive.entries.items():
        tree.add(Member(name, entry.size, is_folder=entry.is_folder))
    return archive.read(f"{tree.top}/{PKG_INFO}", METADATA_SIZE)


def _read_tar(source: Source, tree: _Tree) -> bytes | None:
    found = None
    tar = Tar(source, Gunzip(source))
    for member in tar:
        name = tree.add(member)
        if name is not None and name == f"{tree.top}/{PKG_INFO}":
            if not member.is_file:
                raise source.refuse(f"has a {PKG_INFO} that is no plain file")
            found = tar.read(METADATA_SIZE)
    return found


class _Tree:
    """The tree that unpacking would create: one folder with the name of the file, and its entries."""

    def __init__(self, source: Source, filename: FileName) -> None:
        self.top = ""
        self._source = source
        self._filename = filename
        self._names: set[str] = set()
        self._symbolic: set[str] = set()
        self._folders = 0  # path components checked so far, limited by MOST_FOLDERS

    def add(self, member: Member) -> str | None:
        """
        Add a member; returns its path, or None for the archive's root folder.

        :raises Invalid: its path or link leads out of the folder, or the path was added before
        """
        name = self._plain(member.name)
        if not name:
            if member.is_folder:
                return None
            raise self._source.refuse("has an entry without a name")
        self._check_top(name, member)
        if not member.is_folder:
            if name in self._names:
                raise self._source.refuse(f"has two entries of the name {name!a}")
            self._names.add(name)
        if self._symbolic:
            self._check_parents(name)
        if member.link:
            self._check_link(name, member)
            if member.is_symbolic:
                self._symbolic.add(name)
        return name

    def _plain(self, name: str) -> str:
        """A member's path without leading ``./`` and trailing ``/``."""
        while name.startswith("./"):
            name = name[2:]
        name = name.rstrip("/") if name != "." else ""
        if name:
            check_entry_name(self._source, name)
        return name

    def _check_top(self, name: str, member: Member) -> None:
        top, slash, _ = name.partition("/")
        if (self.top and top != self.top) or not (slash or member.is_folder):
            raise self._source.refuse(f"must have everything in one folder {self.top or self._filename.stem!r}")
        if not self.top:
            readings = split_stem(top, self._filename.project_key)
            if not any(self._filename.is_version(version) for _, version in readings):
                raise self._source.refuse(f"must have everything in one folder {self._filename.stem!r}, not {top!r}")
            self.top = top

    def _check_parents(self, name: str) -> None:
        self._count_folders(name)
        at = name.find("/")
        while at >= 0:
            if name[:at] in self._symbolic:
                raise self._source.refuse(f"has an entry {name!a} whose path goes through a link")
            at = name.find("/", at + 1)

    def _count_folders(self, path: str) -> None:
        self._folders += path.count("/")
        if self._folders > MOST_FOLDERS:
            raise self._source.refuse(f"has links, and more than {MOST_FOLDERS} folders on the way to its entries")

    def _check_link(self, name: str, member: Member) -> None:
        target = member.link
        self._count_folders(target)
        if not member.is_symbolic:
            # A hard link to a symbolic link could resolve to another place.
            original = self._plain(target)
            inside = original in self._names and original not in self._symbolic
        else:
            # ".." after a name could be resolved after following another link, and lead anywhere.
            parts = [part for part in target.split("/") if part not in ("", ".")]
            climbs = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
            reached = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            inside = (
                not target.startswith("/")
                and is_portable(target)
                and ".." not in parts[climbs:]
                and (reached == self.top or reached.startswith(f"{self.top}/"))
            )
        if not inside:
            raise self._source.refuse(f"has a link {name!a} that leads out of its folder, to {target!a}")
