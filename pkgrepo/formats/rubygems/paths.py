"""
Paths of requests and of files, and the paths of files in the readable layout.

A request path is split before it is decoded, and each part is decoded once, so that an encoded slash is no separator.
Empty parts are left out: ``gem push --host URL/`` asks for ``URL//api/v1/gems``. The name of a gem's file is never
split.

A yanked version keeps its files, but at hidden paths, which no request names. So it is not served, cannot be published
again, and can be restored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from pkgrepo.formats.rubygems.names import full_name, is_name
from pkgrepo.untrusted.text import split_path

GEM: Final = ".gem"
QUICK: Final = ".gemspec.rz"
ATTESTATIONS: Final = ".attestations"  # of the list of Sigstore bundles (JSON) beside a gem, behind its whole name
GEM_TYPE: Final = "application/octet-stream"

_GEMS: Final = "gems/"
_QUICK: Final = "quick/Marshal.4.8/"
_HIDDEN: Final = ".yanked/"  # no name of a gem begins with a dot

COMPACT: Final = frozenset({"names", "versions"})
SPECS: Final = frozenset({"specs.4.8.gz", "latest_specs.4.8.gz", "prerelease_specs.4.8.gz"})
MARSHAL: Final = "Marshal.4.8"


def gem_path(full_name: str) -> str:
    """The public path of a gem."""
    return f"{_GEMS}{full_name}{GEM}"


def quick_path(full_name: str) -> str:
    """The public path of a gem's specification in the legacy index."""
    return f"{_QUICK}{full_name}{QUICK}"


def hidden_path(path: str) -> str:
    """The path of a yanked version's file, from its public one."""
    return path if path.startswith(_HIDDEN) else _HIDDEN + path


def is_hidden(path: str) -> bool:
    """Whether a file is that of a yanked version, which no client gets."""
    return path.startswith(_HIDDEN)


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
    paths = (gem_path(full), gem_path(full) + ATTESTATIONS, quick_path(full))
    return [readable_path(each) for path in paths for each in (path, hidden_path(path))]


@frozen
class RootPath:
    """The repository itself."""


@frozen
class CompactPath:
    """A list of the compact index: ``names`` or ``versions``."""

    document: str


@frozen
class InfoPath:
    """The versions of one gem in the compact index."""

    name: str


@frozen
class SpecsPath:
    """A list of the legacy index, by its file name."""

    document: str


@frozen
class QuickPath:
    """The specification of one gem in the legacy index."""

    full_name: str


@frozen
class GemPath:
    """A gem, or the file beside it with this ending."""

    full_name: str
    beside: str = ""


@frozen
class ApiPath:
    """A path below ``/api/``, as decoded parts."""

    parts: tuple[str, ...]


Path = RootPath | CompactPath | InfoPath | SpecsPath | QuickPath | GemPath | ApiPath


def read_path(raw_path: bytes) -> Path | None:  # noqa: PLR0911 - one return for each kind of path
    """
    What a path means, None if nothing.

    ``raw_path`` is as on the wire, behind the slash that ends the repository's own path.
    """
    parts = split_path(raw_path)
    match parts:
        case None:
            return None
        case []:
            return RootPath()
        case ["api", *rest]:
            return ApiPath(tuple(rest))
        case [document] if document in COMPACT:
            return CompactPath(document)
        case [document] if document in SPECS:
            return SpecsPath(document)
        case ["info", name] if is_name(name):
            return InfoPath(name)
        case ["gems", file] if file.endswith(GEM) and is_full_name(file.removesuffix(GEM)):
            return GemPath(file.removesuffix(GEM))
        case ["gems", file] if file.endswith(GEM + ATTESTATIONS) and is_full_name(
            file.removesuffix(GEM + ATTESTATIONS)
        ):
            return GemPath(file.removesuffix(GEM + ATTESTATIONS), ATTESTATIONS)
        case ["quick", marshal, file] if marshal == MARSHAL and file.endswith(QUICK):
            full_name = file.removesuffix(QUICK)
            return QuickPath(full_name) if is_full_name(full_name) else None
        case _:
            return None


def is_full_name(text: str) -> bool:
    """Whether a gem's file may be called so: its characters are those of names, versions and platforms."""
    return text.isascii() and text.replace("-", "").replace("_", "").replace(".", "").isalnum() and text[0] != "."
