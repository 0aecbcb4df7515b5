"""The public paths of an npm repository's files, and their paths in the readable layout."""

from __future__ import annotations

from . import names

BUNDLE_ROLE = ".sigstore"  # the suffix of a provenance bundle behind its tarball's path
_FILES = "/-/"


def tarball_path(name: str, version_text: str) -> str:
    """The path of a version's tarball, relative to its repository."""
    return f"{name}{_FILES}{names.tarball_name(name, version_text)}"


def bundle_path(name: str, version_text: str) -> str:
    """The path of a version's provenance bundle."""
    return tarball_path(name, version_text) + BUNDLE_ROLE


def readable_path(path: str) -> str:
    """``<name>/<version>/<name>-<version>.tgz`` for a file's public path; a scope becomes a parent directory."""
    name, _, filename = path.partition(_FILES)
    stem = filename.removesuffix(BUNDLE_ROLE).removesuffix(names.TARBALL)
    version = stem.removeprefix(f"{names.split_scope(name)[1]}-")
    suffix = names.BUNDLE if filename.endswith(BUNDLE_ROLE) else names.TARBALL
    return f"{name}/{version}/{stem}{suffix}"
