"""
Paths of a Ruby repository's files: the public ones, and those in the readable layout.

A yanked version keeps its files, but at hidden paths, which no request names. So it is not served, cannot be published
again, and can be restored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from .names import full_name

GEM: Final = ".gem"
QUICK: Final = ".gemspec.rz"
GEM_TYPE: Final = "application/octet-stream"

_GEMS: Final = "gems/"
_QUICK: Final = "quick/Marshal.4.8/"
_HIDDEN: Final = ".yanked/"  # no name of a gem begins with a dot


def gem_path(full_name: str) -> str:
    """The public path of a gem."""
    return f"{_GEMS}{full_name}{GEM}"


def quick_path(full_name: str) -> str:
    """The public path of a gem's specification in the legacy index."""
    return f"{_QUICK}{full_name}{QUICK}"


def hidden_path(path: str) -> str:
    """The path of a yanked version's file, from its public one."""
    return path if path.startswith(_HIDDEN) else _HIDDEN + path


def public_path(path: str) -> str:
    """The public path of a file, also of one that is hidden."""
    return path.removeprefix(_HIDDEN)


def readable_path(path: str) -> str:
    """
    The path of a file in the readable layout.

    Gems are in one folder, as ``gem generate_index`` needs them; those of yanked versions are in another one.
    """
    return f"yanked/{public_path(path)}" if path.startswith(_HIDDEN) else path


def readable_folder(name: str) -> str:
    """The folder of a gem's sidecars in the readable layout."""
    return f"specs/{name}"


def readable_places(name: str, version: str) -> Sequence[str]:
    """The places of the files of a version in the readable layout, whether it is yanked or not."""
    full = full_name(name, version)
    paths = (gem_path(full), quick_path(full))
    return [readable_path(each) for path in paths for each in (path, hidden_path(path))]
