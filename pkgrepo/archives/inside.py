"""
What an archive has inside that may do something to those who install it, as rules ask for it.

==================  ================================================================================================
word                what it says of the files in an archive
==================  ================================================================================================
``install_script``  something of it runs when it is installed, built or activated
``native_build``    machine code is built of it at the installation
``pth``             something of it runs whenever Python starts
``executable``      a program: a script with an interpreter in its first line, or machine code that is no library
``native_binary``   machine code: ELF, PE, Mach-O, or a static library
``root_user``       the program of an image runs as root, unless whoever starts it says otherwise
``setuid``          an image has a program that runs with the rights of its owner, see L{pkgrepo.archives.layers}
==================  ================================================================================================

The first three are told by names and small texts, which a format knows (L{Signs}); the next two by the first bytes of
each file, whatever it is called; the last two are those of images. What is compared between two versions beside these
words is the L{Shape}. The archive is read to its end: of one that cannot be, nothing is said.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, Literal, get_args

import msgspec
from attrs import define, field, frozen

from pkgrepo.errors import Invalid

from .licence_texts import LONGEST, MOST_FILES, UNKNOWN, licence_files, licences_of_file
from .listing import Found, walk_archive
from .minified import MOST_READ, Places, is_code, places_of, unreadable_bytes
from .source import Source

Word = Literal["install_script", "native_build", "pth", "executable", "native_binary", "root_user", "setuid"]
WORDS: Final[tuple[Word, ...]] = get_args(Word)

# What may differ between a version and the one before, as rules ask for it.
Difference = Literal[
    "install_script",
    "native_build",
    "pth",
    "executable",
    "dependency",
    "young_dependency",
    "git_dependency",
    "publisher",
    "source",
    "size",
    "obfuscated",
    "licence",
    "unexplained",
]
DIFFERENCES: Final[tuple[Difference, ...]] = get_args(Difference)

MOST: Final = 2 * 1024**3  # unpacked bytes, which takes some 5 s
MOST_BZ2: Final = 64 * 1024 * 1024  # packed bytes, which takes some 4 s
LONGEST_TEXT: Final = 8 * 1024 * 1024  # bytes of a file that is read
MOST_NAMES: Final = 2000  # of dependencies
LONGEST_NAME: Final = 256  # characters of one
_HEAD: Final = 64  # bytes
_ODD: Final = re.compile(r"^/|(?:^|[/\\])\.{0,2}(?:[/\\]|$)|\\")  # of a path that has another spelling
_AT_THE_TOP: Final = licence_files("^")

_MACHINE: Final = (
    b"\x7fELF",
    b"!<arch>\n",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
)
_FAT: Final = (b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf")  # Mach-O of several processors; the first is also that of Java
_MOST_PROCESSORS: Final = 30  # the version of a Java class, which is in the same place, is 45 or more
_LIBRARY: Final = re.compile(r"\.(?:so(?:\.[\d.]+)?|dylib|dll|node|pyd|bundle|a|lib|o|obj|sys)$", re.IGNORECASE)
_PROGRAM: Final = re.compile(r"\.(?:exe|com|scr|msi|bat|cmd|ps1|vbs|sh|command)$", re.IGNORECASE)


class Shape(msgspec.Struct, frozen=True, omit_defaults=True):
    """
    What of a version, or of a file, is compared with the version before.

    ``dependencies`` are the names of packages that are installed with it; those in ``direct`` come from an address of
    their own, such as a git repository, and those in ``aliases`` are names that other packages get there. ``sources``
    are the repositories of its source, as host and path. ``publisher`` is the account that published it, and
    ``maintainers`` are those that could; empty if not known. ``unpacked`` is the size of its files in bytes, and
    ``files`` their number; None if not known. What is for one ``platform`` alone is not chosen by clients: another
    package names its version. ``unreadable`` is where its files have code that people cannot read; None if they were
    not read, or by an earlier release, which did not look for it. ``programs`` are the paths of those with setuid or
    setgid in an image, and ``runs`` the program that it runs, with its arguments. ``licences`` are those that its files
    declare, and whose texts they have; None as for ``unreadable``.
    """

    dependencies: tuple[str, ...] = ()
    direct: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    publisher: str = ""
    maintainers: tuple[str, ...] = ()
    unpacked: int | None = None
    files: int | None = None
    platform: bool = False
    unreadable: Places | None = None
    programs: tuple[str, ...] = ()
    licences: tuple[str, ...] | None = None
    runs: tuple[str, ...] = ()

    @property
    def is_read(self) -> bool:
        """Whether the bytes of a file were read for all of it."""
        return self.unreadable is not None and self.licences is not None

    def joined(self, other: Shape) -> Shape:
        """What both say together."""
        return Shape(
            dependencies=_union(self.dependencies, other.dependencies),
            direct=_union(self.direct, other.direct),
            aliases=_union(self.aliases, other.aliases),
            sources=_union(self.sources, other.sources),
            publisher=self.publisher or other.publisher,
            maintainers=_union(self.maintainers, other.maintainers),
            unpacked=other.unpacked if self.unpacked is None else self.unpacked,
            files=other.files if self.files is None else self.files,
            platform=self.platform or other.platform,
            unreadable=other.unreadable if self.unreadable is None else self.unreadable,
            programs=_union(self.programs, other.programs),
            licences=_joined(self.licences, other.licences),
            runs=self.runs or other.runs,
        )


NO_SHAPE: Final = Shape()


def _union(one: Iterable[str], other: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*one, *other}))


def _joined(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return one if other is None else other if one is None else _union(one, other)


def names_checked(found: Iterable[str], what: str = "dependencies") -> tuple[str, ...]:
    """Names, such as those of dependencies, sorted. :raises Invalid: there are too many, or one is too long"""
    names = sorted(set(found))
    if len(names) > MOST_NAMES or any(len(each) > LONGEST_NAME for each in names):
        raise Invalid(f"it has more than {MOST_NAMES} {what}, or a name of more than {LONGEST_NAME} characters")
    return tuple(names)


@frozen
class Inside:
    """What is inside an archive, or what a text in it says of that."""

    words: frozenset[Word] = frozenset()
    shape: Shape = NO_SHAPE


@frozen
class Signs:
    """
    What tells of a format's archives what names and texts can tell.

    ``names`` are patterns of names in the archive, with what they say. ``texts`` are patterns of the names of files
    that are read, with functions that say what these tell, and raise ``Invalid`` if they cannot be understood.
    ``top`` is what names begin with that is not the same in each version. ``licences`` is a pattern of the names of
    files with the text of a licence.
    """

    names: Sequence[tuple[re.Pattern[str], Word]] = ()
    texts: Sequence[tuple[re.Pattern[str], Callable[[bytes], Inside]]] = ()
    top: re.Pattern[str] | None = None
    licences: re.Pattern[str] = _AT_THE_TOP


def look_inside(content: int | bytes, filename: str, signs: Signs) -> Inside:
    """
    What is inside an archive, given as a file descriptor (which stays open) or bytes. Blocks: call it in a thread.

    :raises Invalid: it cannot be read to its end, or a text in it cannot be understood
    """
    source = Source(content, filename)
    found: set[Word] = set()
    shape, unpacked, files = NO_SHAPE, 0, 0
    unreadable: dict[str, int] = {}
    licences = _Licences(signs.licences)
    for each in walk_archive(source, MOST, MOST_BZ2):
        if each is None:
            raise source.refuse(f"unpacks to more than {MOST} bytes")
        names, kind = spellings(each.entry.name), each.entry.kind
        name = names[-1]
        if kind == "folder":
            continue
        found.update(word for pattern, word in signs.names if any(map(pattern.search, names)))
        readers = [read for pattern, read in signs.texts if any(map(pattern.search, names))]
        if readers and kind == "link":
            raise source.refuse(f"has a link in the place of {name}")
        if kind == "link":
            continue
        unpacked, files = unpacked + each.entry.size, files + 1
        code = is_code(name)
        licence = licences.takes(name)
        data = each.read(LONGEST_TEXT) if readers else _code(each) if code else each.head(LONGEST if licence else _HEAD)
        if licence:
            licences.add(name, data)
        if code and (count := unreadable_bytes(name, data, each.entry.size)):
            unreadable[name if signs.top is None else signs.top.sub("", name, count=1)] = count
        found.update(_of_head(data[:_HEAD], name))
        for told in (read(data) for read in readers):
            found.update(told.words)
            shape = shape.joined(told.shape)
    shape = msgspec.structs.replace(
        shape,
        unpacked=unpacked,
        files=files,
        unreadable=places_of(unreadable),
        licences=names_checked([*(shape.licences or ()), *licences.found], "licences"),
    )
    return Inside(frozenset(found), shape)


def spellings(name: str) -> Sequence[str]:
    """
    A path in an archive as it is written, and as programs that unpack it understand it.

    They differ in that: npm drops the first part of what is written, others resolve dots first.
    """
    if name.isascii() and not _ODD.search(name):
        return (name,)
    plain = posixpath.normpath(f"/{unicodedata.normalize('NFC', name)}".replace("\\", "/")).lstrip("/")
    return (name, plain)


@define
class _Licences:
    """The licences that files of an archive have the text of, whose names are like a ``pattern``."""

    pattern: re.Pattern[str]
    found: set[str] = field(factory=set)
    _count: int = 0

    def takes(self, name: str) -> bool:
        """Whether a file is to be read; of too many it is not known what they say."""
        if not self.pattern.search(name):
            return False
        self._count += 1
        if self._count > MOST_FILES:
            self.found.add(UNKNOWN)
        return self._count <= MOST_FILES

    def add(self, name: str, data: bytes) -> None:
        """Take the text in a file into account."""
        self.found.update(licences_of_file(name, data))


def _code(found: Found) -> bytes:
    """The bytes of a file of code, at most so many as are looked at."""
    return found.read(MOST_READ) if found.entry.size <= MOST_READ else found.head(MOST_READ)


def _of_head(head: bytes, name: str) -> Iterator[Word]:
    machine = _is_machine_code(head)
    if machine:
        yield "native_binary"
    if head.startswith(b"#!") or _PROGRAM.search(name) or (machine and not _LIBRARY.search(name)):
        yield "executable"


def _is_machine_code(head: bytes) -> bool:
    fat = head.startswith(_FAT) and 0 < int.from_bytes(head[4:8]) < _MOST_PROCESSORS
    pe = head.startswith(b"MZ") and b"\x00" in head  # text may begin with these letters
    return fat or pe or head.startswith(_MACHINE)
