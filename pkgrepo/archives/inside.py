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
==================  ================================================================================================

The first three are told by names and small texts, which a format knows (L{Signs}); the others by the first bytes of
each file, whatever it is called. The archive is read to its end: of one that cannot be, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, Literal, get_args

from attrs import frozen

from .listing import walk_archive
from .source import Source

Word = Literal["install_script", "native_build", "pth", "executable", "native_binary"]
WORDS: Final[tuple[Word, ...]] = get_args(Word)

MOST: Final = 2 * 1024**3  # unpacked bytes, which takes some 5 s
MOST_BZ2: Final = 64 * 1024 * 1024  # packed bytes, which takes some 4 s
LONGEST_TEXT: Final = 1024 * 1024  # bytes of a file that is read
_HEAD: Final = 64  # bytes

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


@frozen
class Signs:
    """
    What tells of a format's archives what names and texts can tell.

    ``names`` are patterns of names in the archive, with what they say. ``texts`` are patterns of the names of files
    that are read, with functions that say what these tell, and raise ``Invalid`` if they cannot be understood.
    """

    names: Sequence[tuple[re.Pattern[str], Word]] = ()
    texts: Sequence[tuple[re.Pattern[str], Callable[[bytes], Collection[Word]]]] = ()


def look_inside(content: int | bytes, filename: str, signs: Signs) -> frozenset[Word]:
    """
    What is inside an archive, given as a file descriptor (which stays open) or bytes. Blocks: call it in a thread.

    :raises Invalid: it cannot be read to its end, or a text in it cannot be understood
    """
    source = Source(content, filename)
    found: set[Word] = set()
    for each in walk_archive(source, MOST, MOST_BZ2):
        if each is None:
            raise source.refuse(f"unpacks to more than {MOST} bytes")
        name, kind = each.entry.name, each.entry.kind
        if kind == "folder":
            continue
        found.update(word for pattern, word in signs.names if pattern.search(name))
        readers = [read for pattern, read in signs.texts if pattern.search(name)]
        if readers and kind == "link":
            raise source.refuse(f"has a link in the place of {name}")
        if kind == "link":
            continue
        data = each.read(LONGEST_TEXT) if readers else each.head(_HEAD)
        found.update(*(read(data) for read in readers), _of_head(data[:_HEAD], name))
    return frozenset(found)


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
