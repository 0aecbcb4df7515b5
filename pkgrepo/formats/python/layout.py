"""Where a Python repository keeps its files: their public paths, and their places in the readable layout."""

from __future__ import annotations

from pkgrepo.model import File

METADATA = ".metadata"  # PEP 658
SIGNATURE = ".asc"
PROVENANCE = ".provenance"  # PEP 740
COMPANIONS = (METADATA, SIGNATURE, PROVENANCE)


def file_path(project: str, version: str, filename: str) -> str:
    """The path of a distribution below its repository, from the project's key and the version as it is written."""
    return f"packages/{project}/{version}/{filename}"


def companion_of(file: File) -> str | None:
    """The suffix by which this file accompanies a distribution, or None when it is one itself."""
    role: str | None = file.attrs.get("role")
    return role


def split_companion(filename: str) -> tuple[str, str]:
    """A requested file name as distribution and suffix; the suffix is empty when it names the distribution."""
    for suffix in COMPANIONS:
        if filename.endswith(suffix) and len(filename) > len(suffix):
            return filename[: -len(suffix)], suffix
    return filename, ""


def readable_path(path: str) -> str:
    """``<project>/<version>/<file>`` for a file's public path."""
    return path.removeprefix("packages/")
