"""
The grammar of request paths below a repository.

A path is split before it is decoded, and each part is decoded once, so that an encoded slash is no separator. Empty
parts are left out: ``gem push --host URL/`` asks for ``URL//api/v1/gems``. The name of a gem's file is never split.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import unquote_to_bytes

from attrs import frozen

from .layout import GEM, QUICK
from .names import is_name

COMPACT: Final = frozenset({"names", "versions"})
SPECS: Final = frozenset({"specs.4.8.gz", "latest_specs.4.8.gz", "prerelease_specs.4.8.gz"})
MARSHAL: Final = "Marshal.4.8"
LONGEST_PART: Final = 512  # characters


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
    """A gem."""

    full_name: str


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
    parts = _decode(raw_path)
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
        case ["quick", marshal, file] if marshal == MARSHAL and file.endswith(QUICK):
            full_name = file.removesuffix(QUICK)
            return QuickPath(full_name) if is_full_name(full_name) else None
        case _:
            return None


def is_full_name(text: str) -> bool:
    """Whether a gem's file may be called so: its characters are those of names, versions and platforms."""
    return text.isascii() and text.replace("-", "").replace("_", "").replace(".", "").isalnum() and text[0] != "."


def _decode(raw_path: bytes) -> list[str] | None:
    try:
        parts = [unquote_to_bytes(part).decode() for part in raw_path.split(b"/") if part]
    except UnicodeDecodeError:
        return None
    return parts if all(map(_is_part, parts)) else None


def _is_part(part: str) -> bool:
    return len(part) <= LONGEST_PART and part.isprintable() and part.strip(".") != "" and not set(part) & {"/", "\\"}
