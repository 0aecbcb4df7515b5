"""Names of packages, versions with their order, and paths."""

from __future__ import annotations

import re
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid

NAME: Final = "toy"
INDEX: Final = "index.json"  # the document of a package, and the kind of its fragments
FILE_TYPE: Final = "application/octet-stream"

_PACKAGE: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_VERSION: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9}){0,9})(?:-([a-z0-9.]{1,50}))?")
_FILE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}")
_NUMBER, _RELEASE, _PRERELEASE = b"\x03", b"\x02", b"\x01"  # what comes next in a sort key; 1.0-rc < 1.0 < 1.0.1


@frozen
class FilePath:
    """The place of a file. :raises Invalid: nothing can be called so"""

    package: str
    version: str
    file: str

    def __attrs_post_init__(self) -> None:
        check_name(self.package)
        sort_key(self.version)
        if not _FILE.fullmatch(self.file):
            raise Invalid("a file is called by letters, digits and ._+-", "file")

    @property
    def path(self) -> str:
        """The path in the repository."""
        return f"{self.package}/{self.version}/{self.file}"


def check_name(name: str) -> str:
    """The name of a package, which has one spelling. :raises Invalid: it is none"""
    if not _PACKAGE.fullmatch(name):
        raise Invalid("a package is called by lower-case letters, digits and ._-", "name")
    return name


def version_key(version: str) -> str:
    """The key of a version: its text. :raises Invalid: it is none"""
    sort_key(version)
    return version


def sort_key(version: str) -> bytes:
    """The sort key of a version such as 1.10 or 2.0-rc.1. :raises Invalid: it is none"""
    found = _VERSION.fullmatch(version)
    if found is None:
        raise Invalid("a version is numbers with dots between, such as 1.0 or 1.0-rc", "version")
    numbers = b"".join(_NUMBER + int(each).to_bytes(4, "big") for each in found[1].split("."))
    return numbers + (_RELEASE if found[2] is None else _PRERELEASE + found[2].encode() + b"\0")


def is_prerelease(version: str) -> bool:
    """Whether a version is before the release with its numbers."""
    return "-" in version
