"""
The JSON documents that the catalog is rebuilt from, of repositories whose files lie at their public paths.

Clients choose the paths of files freely, so the sidecars are apart from them, in a folder that no public path leads to:

==============================  ========================================================================================
place in the repository         what
==============================  ========================================================================================
``.repository.json``            as in every repository
``.pkgrepo/versions/<p>/<v>``   a version with its files
``.pkgrepo/packages/<p>``       a package without its versions
``.pkgrepo/burned/<p>``         the deleted files of a package, which stay when it is removed
``.pkgrepo/kept/<p>``           the fragments of a package that cannot be made from its files
``.pkgrepo/files/<2>/<62>``     a plain file, by the hex digits of the sha256 of its path
anything else                   what the public path says; one that begins like the first two has a ``~`` behind that
==============================  ========================================================================================

All end with ``.json``. ``<p>`` and ``<v>`` are the key of a package and the text of a version, with ``~-`` for ``~``:
two of them never have one name, also not where a long name is shortened, which adds a ``~`` and a hex digit.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Final

import msgspec

from pkgrepo.model import Fragment, Package
from pkgrepo.repositories.layout.sidecars import (
    REPOSITORY,
    BurnedSidecar,
    FileSidecar,
    PackageSidecar,
    VersionSidecar,
)
from pkgrepo.storage.layout_folder import shorten

SIDECARS: Final = ".pkgrepo"
_TAKEN: Final = re.compile(f"({re.escape(SIDECARS)}|{re.escape(REPOSITORY)})~*")


class KeptFragment(msgspec.Struct, frozen=True, kw_only=True):
    """One fragment; see L{Fragment}."""

    kind: str
    sort: bytes
    key: str
    body: bytes


class KeptSidecar(msgspec.Struct, frozen=True, kw_only=True):
    """The fragments of a package that cannot be made from its files; ``package`` is its key."""

    package: str
    name: str
    fragments: list[KeptFragment]

    @classmethod
    def of(cls, package: Package, fragments: Sequence[tuple[str, Fragment]]) -> KeptSidecar:
        """Make the sidecar of a package with these pairs of kind and fragment."""
        kept = [KeptFragment(kind=kind, sort=sort, key=key, body=body) for kind, (sort, key, body) in fragments]
        return cls(package=package.key, name=package.name, fragments=kept)


TreeSidecar = VersionSidecar | PackageSidecar | BurnedSidecar | KeptSidecar | FileSidecar

KINDS: Final[dict[str, type[TreeSidecar]]] = {
    "versions": VersionSidecar,
    "packages": PackageSidecar,
    "burned": BurnedSidecar,
    "kept": KeptSidecar,
    "files": FileSidecar,
}


class TreePlaces:
    """The places of one repository, which its folder's name begins."""

    def __init__(self, repository: str) -> None:
        self._repository = repository
        self._sidecars = f"{repository}/{SIDECARS}"

    def of_path(self, path: str) -> str:
        """The place of what has this public path."""
        first, slash, rest = path.partition("/")
        mark = "~" if _TAKEN.fullmatch(first) else ""
        return shorten(f"{self._repository}/{first}{mark}{slash}{rest}")

    def of_version(self, package_key: str, version: str) -> str:
        """The place of the sidecar of a version."""
        return shorten(f"{self._sidecars}/versions/{_name(package_key)}/{_name(version)}.json")

    def of_package(self, package_key: str) -> str:
        """The place of the sidecar of a package."""
        return shorten(f"{self._sidecars}/packages/{_name(package_key)}.json")

    def of_burned(self, package_key: str) -> str:
        """The place of the sidecar of the deleted files of a package."""
        return shorten(f"{self._sidecars}/burned/{_name(package_key)}.json")

    def of_kept(self, package_key: str) -> str:
        """The place of the sidecar of the fragments of a package."""
        return shorten(f"{self._sidecars}/kept/{_name(package_key)}.json")

    def of_plain(self, path: str) -> str:
        """The place of the sidecar of a plain file."""
        digest = hashlib.sha256(path.encode()).hexdigest()
        return f"{self._sidecars}/files/{digest[:2]}/{digest[2:]}.json"


def kind_of(place: str) -> type[TreeSidecar] | None:
    """What a place holds, or None if it holds no sidecar of a tree."""
    _, folder, rest = f"{place}//".split("/", 2)
    return KINDS.get(rest.partition("/")[0]) if folder == SIDECARS and place.endswith(".json") else None


def _name(text: str) -> str:
    return text.replace("~", "~-")
