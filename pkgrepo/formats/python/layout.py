"""Paths of a Python repository's files: the public ones, and those in the readable layout."""

from __future__ import annotations

METADATA = ".metadata"  # PEP 658
SIGNATURE = ".asc"
PROVENANCE = ".provenance"  # PEP 740
PROVENANCE_TYPE = "application/vnd.pypi.integrity.v1+json"
COMPANIONS = (METADATA, SIGNATURE, PROVENANCE)


def file_path(project: str, version: str, filename: str) -> str:
    """The public path of a distribution below its repository; ``project`` is the key, ``version`` as published."""
    return f"packages/{project}/{version}/{filename}"


def split_companion(filename: str) -> tuple[str, str]:
    """Split a requested file name into the distribution's name and the companion suffix, which may be empty."""
    for suffix in COMPANIONS:
        if filename.endswith(suffix) and len(filename) > len(suffix):
            return filename[: -len(suffix)], suffix
    return filename, ""


def readable_path(path: str) -> str:
    """``<project>/<version>/<file>`` of a public path."""
    return path.removeprefix("packages/")
