"""Paths of a channel's files: the public ones, which are also those in the readable layout, and sidecars."""

from __future__ import annotations

from typing import Final

from .names import CONDA, FileName

SIDECARS: Final = "packages"  # no platform is called so
_TYPES: Final = {CONDA: "application/vnd.conda.package.2"}  # the media type that OCI mirrors of channels use
_OTHER_TYPE: Final = "application/x-tar"


def package_path(subdir: str, name: FileName) -> str:
    """The public path of a package."""
    return f"{subdir}/{name}"


def media_type(name: FileName) -> str:
    """The media type of a package."""
    return media_type_of(name.ending)


def media_type_of(ending: str) -> str:
    """The media type of packages whose names end so."""
    return _TYPES.get(ending, _OTHER_TYPE)


def readable_folder(name: str) -> str:
    """The folder of a package's sidecars in the readable layout."""
    return f"{SIDECARS}/{name}"
