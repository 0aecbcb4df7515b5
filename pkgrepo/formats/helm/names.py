"""
Names and versions of charts, and the paths of their files.

An archive is called ``<name>-<version>.tgz``, where both may have hyphens: whose file it is, tells what has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.repositories.semver import find_version, padded, parse_version
from pkgrepo.untrusted.text import quoted

INDEX: Final = "index.yaml"
ARCHIVE: Final = ".tgz"
PROVENANCE: Final = ".prov"  # of the file that belongs to an archive, after the whole name of that
FOLDER: Final = "charts"
ARCHIVE_TYPE: Final = "application/gzip"
PROVENANCE_TYPE: Final = "text/plain; charset=utf-8"
LONGEST_FILE_NAME: Final = 220  # bytes with the ending, so that a file system can hold names of sidecars

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


def check_name(text: str) -> str:
    """The name of a chart. :raises Invalid: the text is no name; the sentence has the rule"""
    if len(text) > LONGEST_FILE_NAME or not _NAME.fullmatch(text):
        raise Invalid(
            f"chart name {quoted(text)} must have letters, digits, '.', '_' and '-' only, begin with none of the last "
            f"but '_', and have at most {LONGEST_FILE_NAME} characters",
            "name",
        )
    return text


def sort_key(text: str) -> bytes:
    """The sort key of a version, also of one with missing parts, as helm reads it. :raises Invalid: it is none"""
    return parse_version(padded(text.removeprefix("v"))).sort


def version_key(text: str) -> str:
    """A version as it is compared: the text itself. :raises Invalid: it is none"""
    sort_key(text)
    return text


def chart_path(name: str, version: str) -> str:
    """The path of a chart's archive. :raises Invalid: it would be too long"""
    file = f"{name}-{version}{ARCHIVE}"
    if len(file) > LONGEST_FILE_NAME:
        raise Invalid(f"name and version have more than {LONGEST_FILE_NAME} characters together", "name")
    return f"{FOLDER}/{file}"


def version_places(name: str, version: str) -> tuple[str, str]:
    """The paths of a version's archive and of its provenance."""
    path = chart_path(name, version)
    return path, path + PROVENANCE


def file_place(path: str) -> str:
    """The path here of a file that is called so elsewhere, in whatever folder."""
    return f"{FOLDER}/{path.rpartition('/')[2]}"


def split_ending(file: str) -> str | None:
    """The name of an archive, or of its provenance, without the ending; None if the file is neither."""
    stem = file.removesuffix(PROVENANCE)
    return stem.removesuffix(ARCHIVE) if stem.endswith(ARCHIVE) else None


def possible_names(path: str) -> Iterator[str]:
    """The charts that the file at a path may be of, the one with the shortest name first."""
    stem = split_ending(path.rpartition("/")[2]) or ""
    for found in re.finditer(r"-(?=v?[0-9])", stem):
        if find_version(padded(stem[found.end() :].removeprefix("v"))) is not None:
            yield stem[: found.start()]
