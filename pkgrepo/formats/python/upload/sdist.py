"""Source distributions (PEP 517, PEP 625, PEP 721): what must be in one, looked at without unpacking it."""

from __future__ import annotations

import posixpath

from pkgrepo.archives.entry_names import check_entry_name, is_portable
from pkgrepo.archives.gunzip import Gunzip
from pkgrepo.archives.limits import MOST_FOLDERS
from pkgrepo.archives.source import Source
from pkgrepo.archives.tar import Member, Tar
from pkgrepo.archives.zips import ZipArchive
from pkgrepo.formats.python.limits import METADATA_SIZE
from pkgrepo.formats.python.names import FileName, split_stem

PKG_INFO = "PKG-INFO"


def read_sdist(source: Source, filename: FileName) -> bytes:
    """
    The exact bytes of a source distribution's PKG-INFO.

    The whole archive is walked, so that nothing in it, wherever it stands, may lead out of its folder.

    :raises Invalid: it is no sound source distribution of that project and version
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
    """What unpacking would make: one folder named as the file, and everything in it."""

    def __init__(self, source: Source, filename: FileName) -> None:
        self.top = ""
        self._source = source
        self._filename = filename
        self._names: set[str] = set()
        self._symbolic: set[str] = set()
        self._folders = 0  # that were looked at on the way to an entry

    def add(self, member: Member) -> str | None:
        """
        Take a member in; its path, or None for one that stands for the archive's own root.

        :raises Invalid: its path or its link leads out of the one folder, or it is there already
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
            self._check_way(name)
        if member.link:
            self._check_link(name, member)
            if member.is_symbolic:
                self._symbolic.add(name)
        return name

    def _plain(self, name: str) -> str:
        """A member's path without ``./`` before and ``/`` behind it."""
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

    def _check_way(self, name: str) -> None:
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
            # A second name of a symbolic link would lead elsewhere than the first.
            original = self._plain(target)
            inside = original in self._names and original not in self._symbolic
        else:
            # ".." behind a name could be taken after following another link, and lead anywhere.
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
