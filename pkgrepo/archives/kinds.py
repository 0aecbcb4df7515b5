"""
Whether a file can be what its name says, by its first and last bytes; its content is not read.

==================================  ==================================================================================
the name ends with                  the file
==================================  ==================================================================================
.jar .war .whl .conda and others    ends with the record of a zip archive; before it may be anything, as a script is in
                                    executable jars
.tgz .gz .crate .bz2 .xz .zst       begins as its compression does; a .tgz may be a plain tar, as npm takes it
.gem                                is a tar
.gemspec.rz                         begins as zlib does
.pom                                is XML, with the element ``project``
.xml                                is XML and no web page
.asc                                begins as OpenPGP's armour does
.json .module .provenance           begins with an object or list of JSON
.metadata                           has a field of core metadata
==================================  ==================================================================================

No file is empty. Names that end otherwise may have any content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from .source import Source
from .zip_archive import is_zip

HEAD: Final = 64 * 1024  # bytes at the beginning that are looked at; the comments before a POM may be long

_USTAR: Final = 257  # where the magic of a tar is
_BOM: Final = b"\xef\xbb\xbf"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_PROJECT: Final = re.compile(rb"<(?:[\w.-]+:)?project[\s/>]")
_PAGE: Final = re.compile(rb"<(?:!doctype\s+)?html[\s>]", re.IGNORECASE)
_FIELD: Final = re.compile(rb"^(?:metadata-version|name):", re.IGNORECASE | re.MULTILINE)


def check_kind(source: Source, name: str) -> None:
    """Check a file that is called so. :raises Invalid: the content is of another kind"""
    if not source.size:
        raise source.refuse("is empty")
    lower = name.lower()
    what, check = next(((what, check) for endings, what, check in _KINDS if lower.endswith(endings)), ("a file", None))
    if check is not None and not check(source):
        raise source.refuse(f"is not {what}, as its name says")


def _begins(*signatures: bytes) -> Callable[[Source], bool]:
    return lambda source: _head(source).startswith(signatures)


def _is_tar(source: Source) -> bool:
    return _head(source)[_USTAR : _USTAR + 5] == b"ustar"


def _is_npm_tarball(source: Source) -> bool:
    return _head(source).startswith(b"\x1f\x8b") or _is_tar(source)


def _is_pom(source: Source) -> bool:
    head = _head(source)
    root = _root(head)
    return head.startswith(_UTF16) or root == b"" or (root is not None and _PROJECT.match(root) is not None)


def _is_xml(source: Source) -> bool:
    head = _head(source)
    return head.startswith(_UTF16) or (_root(head) is not None and not _PAGE.match(head.lstrip()))


def _root(head: bytes) -> bytes | None:
    """XML from its first element on; empty if that comes later, and None if it is no XML."""
    rest = head.removeprefix(_BOM).lstrip()
    while True:
        end = next((end for start, end in _MISCELLANEOUS.items() if rest.startswith(start)), None)
        if end is None:
            return rest if rest.startswith(b"<") else None
        _, found, rest = rest.partition(end)
        if not found:
            return b""
        rest = rest.lstrip()


def _is_json(source: Source) -> bool:
    return _head(source).removeprefix(_BOM).lstrip().startswith((b"{", b"["))


def _is_metadata(source: Source) -> bool:
    return _FIELD.search(_head(source)) is not None


def _is_armour(source: Source) -> bool:
    return _head(source).lstrip().startswith(b"-----BEGIN PGP ")


def _head(source: Source) -> bytes:
    return source.read(0, min(HEAD, source.size))


_MISCELLANEOUS: Final[Mapping[bytes, bytes]] = {b"<?": b"?>", b"<!--": b"-->", b"<!": b">"}  # XML 1.0 2.8: the prolog

_KINDS: Final[tuple[tuple[tuple[str, ...], str, Callable[[Source], bool]], ...]] = (
    (
        (".jar", ".war", ".ear", ".aar", ".nar", ".hpi", ".jpi", ".klib", ".whl", ".egg", ".zip", ".conda"),
        "a zip archive",
        is_zip,
    ),
    ((".tgz",), "a tar archive", _is_npm_tarball),
    ((".gz", ".crate"), "compressed with gzip", _begins(b"\x1f\x8b")),
    ((".bz2",), "compressed with bzip2", _begins(b"BZh")),
    ((".xz",), "compressed with xz", _begins(b"\xfd7zXZ\x00")),
    ((".zst",), "compressed with zstd", _begins(b"\x28\xb5\x2f\xfd")),
    ((".gem",), "a gem", _is_tar),
    ((".gemspec.rz",), "a gemspec", _begins(b"\x78")),  # RFC 1950: deflate with a window of 32 KiB
    ((".pom",), "a POM", _is_pom),
    ((".xml",), "XML", _is_xml),
    ((".asc",), "a signature of OpenPGP", _is_armour),
    ((".json", ".module", ".provenance"), "JSON", _is_json),
    ((".metadata",), "core metadata", _is_metadata),
)
