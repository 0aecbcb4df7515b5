"""
Paths of files and folders, and which package and version a file belongs to.

=====================================  ===================  ===========  ==============================================
path                                   package              version      with the patterns
=====================================  ===================  ===========  ==============================================
``tool/1.2.0/tool.bin``                tool                 1.2.0
``tool/notes.txt``, ``tool``           tool                 unversioned
``releases/tool/1.2.0/tool.bin``       releases/tool        1.2.0        ``releases/*``
=====================================  ===================  ===========  ==============================================
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from mimetypes import MimeTypes
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.text import quoted, split_path

UNVERSIONED: Final = "unversioned"
ALGORITHMS: Final = ("md5", "sha1", "sha512")  # beside sha256, which every file has
SUMS: Final = (*ALGORITHMS, "sha256")
LONGEST_PATH: Final = 1024  # bytes
LONGEST_PART: Final = 255  # bytes, as file systems have it
_TYPES: Final = MimeTypes()  # without those of the machine: each server says the same
_PACKED: Final = {"gzip": "application/gzip", "bzip2": "application/x-bzip2", "xz": "application/x-xz"}
_RUN: Final = re.compile(r"(\d+)|([^\d\W_]+)|[^A-Za-z0-9]+")
_EARLY: Final = re.compile(r"(?i)(^|[-._+\d])(a|alpha|b|beta|rc|pre|preview|dev|snapshot|nightly)(?![a-z])")


def parse_path(raw: bytes, *, written: bool = False) -> str:
    """
    The path in an address, without a slash at its end; ``written``: a file is to be there.

    :raises Invalid: it could be another path, or is too long; or a file cannot be there
    """
    if written and (raw.endswith(b"/") or b"//" in raw or not raw):
        raise Invalid("a file has a name: no slash at the end of its path, and no two together")
    parts = split_path(raw)
    path = "" if parts is None else check_path("/".join(parts))
    if parts is None:
        raise Invalid("this is no path: parts are text (UTF-8), without control characters, and not . or ..")
    return path


def check_path(path: str) -> str:
    """The path. :raises Invalid: it, or a part of it, is too long, or would be hidden on some systems"""
    if len(_encoded(path)) > LONGEST_PATH:
        raise Invalid(f"the path is longer than {LONGEST_PATH} bytes")
    for part in path.split("/") if path else ():
        if len(part.encode()) > LONGEST_PART or part.strip(" .") == "" or not part.isprintable():
            raise Invalid(f"{quoted(part)} is no part of a path: at most {LONGEST_PART} bytes, and not dots or spaces")
    return path


def check_package(name: str) -> str:
    """The key of a package, which is the path of a folder or file. :raises Invalid: it is none"""
    if not name or split_path(_encoded(name)) != name.split("/"):
        raise Invalid(f"{quoted(name)} is no path")
    return check_path(name)


def check_version(text: str) -> str:
    """The key of a version, which is a part of a path. :raises Invalid: it is none"""
    if "/" in text:
        raise Invalid(f"{quoted(text)} is no part of a path")
    return check_package(text)


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Invalid(f"{quoted(text)} is no text in UTF-8") from None


def package_of(path: str, patterns: Sequence[str]) -> str:
    """The package (a key) that the file at a path belongs to."""
    parts = path.split("/")
    for pattern in patterns:
        wanted = pattern.split("/")
        if len(parts) >= len(wanted) and all(map(fnmatchcase, parts, wanted)):
            return "/".join(parts[: len(wanted)])
    return parts[0]


def package_of_folder(path: str, patterns: Sequence[str]) -> str | None:
    """The package that all files in a folder belong to; None if they may belong to several."""
    parts = path.split("/") if path else []
    longer = any(
        len(wanted) > len(parts) and all(map(fnmatchcase, parts, wanted))
        for wanted in (each.split("/") for each in patterns)
    )
    return None if longer or not parts else package_of(path, patterns)


def version_of(package: str, path: str) -> str:
    """The version that a file of a package belongs to: the next part of its path, if more follows."""
    version, slash, _ = path.removeprefix(f"{package}/").partition("/")
    return version if slash and path != package else UNVERSIONED


def folder_of(package: str, version: str) -> str:
    """The folder of a version, or without one of a package."""
    return f"{package}/{version}" if version and version != UNVERSIONED else package


def media_type(path: str) -> str:
    """The media type of a file, by its name."""
    found, packed = _TYPES.guess_type(path.rpartition("/")[2])
    if packed:
        return _PACKED.get(packed, "application/octet-stream")
    if found is None:
        return "application/octet-stream"
    return f"{found}; charset=utf-8" if found.startswith("text/") else found


def sort_key(text: str) -> bytes:
    """
    The place of a version: numbers by their value, above the end of a text, which is above letters.

    :raises Invalid: it is longer than a version, or not UTF-8
    """
    whole = _encoded(text)
    if len(whole) > LONGEST_PART:
        raise Invalid(f"{quoted(text[:LONGEST_PART])} is longer than a version")
    found = []
    for run in _RUN.finditer(text.removeprefix("v") if text[1:2].isdigit() else text):
        if run[1]:
            digits = run[1].lstrip("0").encode()
            found.append(b"\x04" + len(digits).to_bytes(2) + digits)
        elif run[2]:
            found.append(b"\x01" + run[2].lower().encode() + b"\x00")
    return b"".join(found) + b"\x02" + whole


def is_prerelease(text: str) -> bool:
    """Whether a version says that it comes before a release."""
    return _EARLY.search(text) is not None
