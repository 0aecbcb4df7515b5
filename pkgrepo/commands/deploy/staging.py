"""The files of a staging folder that go into a bundle."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.maven.paths import ArtifactFile, Checksum, Metadata, parse_text


@frozen
class StagedFile:
    """A file of the folder; ``path`` is the one in the bundle, with slashes, and ``size`` in bytes."""

    path: str
    file: Path
    size: int


@frozen
class Staging:
    """The files that go into the bundle, and the paths of those that do not; both are sorted."""

    files: tuple[StagedFile, ...]
    left_out: tuple[str, ...]


def read_staging(folder: Path) -> Staging:
    """
    The content of a staging folder in the Maven layout.

    Metadata is left out silently, because the server makes it. Other files that belong to no artifact, such as those
    in which Maven keeps notes, and links are left out too, and named.

    :raises OSError: the folder cannot be read
    """
    files: list[StagedFile] = []
    left_out: list[str] = []
    for parent, folders, names in os.walk(folder, onerror=_fail):
        folders.sort()
        for name in sorted(names):
            file = Path(parent, name)
            path = file.relative_to(folder).as_posix()
            found = file.lstat()
            kind = _kind(path)
            if kind is None or not stat.S_ISREG(found.st_mode):
                left_out.append(path)
            elif kind is not Metadata:
                files.append(StagedFile(path, file, found.st_size))
    return Staging(tuple(sorted(files, key=lambda each: each.path)), tuple(sorted(left_out)))


def _kind(path: str) -> type | None:
    """The class of a path, of a checksum that of its file; None if the path is not one of an artifact."""
    try:
        found = parse_text(path)
    except Invalid:
        return None
    file = found.of if isinstance(found, Checksum) else found
    return type(file) if isinstance(file, (ArtifactFile, Metadata)) else None


def _fail(error: OSError) -> None:
    raise error
