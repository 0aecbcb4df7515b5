"""Names of packages, and paths. Versions are those of semantic versioning."""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.repositories.semver import parse_version

NAME: Final = "toy"
INDEX: Final = "index.json"  # the document of a package, and the kind of its fragments

_PACKAGE: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_FILE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,199}")


def check_name(name: str) -> str:
    """The name of a package, which has one spelling. :raises Invalid: it is none"""
    if not _PACKAGE.fullmatch(name):
        raise Invalid("a package is called by lower-case letters, digits and ._-", "name")
    return name


def sort_key(version: str) -> bytes:
    """The sort key of a version. :raises Invalid: it is none"""
    return parse_version(version).sort


def parse_path(path: str) -> tuple[str, str]:
    """The package and the version of the file at a path. :raises Invalid: no file can be there"""
    match path.split("/"):
        case [package, version, file] if _FILE.fullmatch(file):
            return check_name(package), parse_version(version).text
    raise Invalid("a file is at <package>/<version>/<file>", "file")
