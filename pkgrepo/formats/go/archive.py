"""
Module zips that are published, as ``golang.org/x/mod/zip`` checks them.

Whoever publishes one names neither module nor version: the zip does.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from attrs import frozen

from pkgrepo.archives.licence_texts import licence_of
from pkgrepo.archives.module_zip import (
    GO_MOD,
    LARGEST,
    LARGEST_FILE,
    FileNames,
    GoMod,
    h1_of,
    major_suffix,
    read_mod,
)
from pkgrepo.archives.source import LIMITS, Source
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.errors import Invalid
from pkgrepo.untrusted.text import quoted

from .names import check_pair

LARGEST_README: Final = 64 * 1024  # bytes

_LICENCE: Final = re.compile(r"(?:un)?licen[cs]e|copying", re.IGNORECASE)
_README: Final = re.compile(r"readme(?:\.md|\.markdown)?", re.IGNORECASE)


@frozen
class Module:
    """A module zip: ``go_mod`` is that of the version, made up if it has none; ``h1`` is the hash of go.sum."""

    module: str
    version: str
    go_mod: bytes
    h1: str
    meta: Mapping[str, Any]


def read_module(content: int | bytes) -> Module:
    """
    Read and check a module zip. Blocks: some seconds for the largest.

    :raises Invalid: it is none, or one that clients would refuse
    """
    source = Source(content, "the zip", LIMITS)
    archive = ZipArchive(source)
    if source.size > LARGEST or sum(each.size for each in archive.entries.values()) > LARGEST:
        raise source.refuse(f"has more than {LARGEST} bytes, or unpacks to more")
    first = next(iter(archive.entries), "")
    prefix = first[: first.find("/", first.find("@")) + 1] if "@" in first else ""
    if not prefix:
        raise source.refuse("has no files below MODULE@VERSION/")
    module, _, version = prefix[:-1].rpartition("@")
    check_pair(module, version)
    _check_names(source, archive, prefix)
    go_mod = archive.read(f"{prefix}{GO_MOD}", LARGEST_FILE)
    said = GoMod(module=module) if go_mod is None else read_mod(go_mod)
    if said.module != module:
        raise source.refuse(f"has a go.mod of {quoted(said.module)}, and is of {quoted(module)}")
    if go_mod is None and major_suffix(module)[:1] == "/":
        raise source.refuse(f"has no go.mod, which a module needs whose path ends with {major_suffix(module)}")
    if go_mod is not None and version.endswith("+incompatible"):
        raise source.refuse("has a go.mod, so that its version is not +incompatible: its path ends with the major one")
    files = [each for each in archive.entries.values() if not each.is_folder]
    h1 = h1_of((each.name, _digest(archive.pieces(each.name))) for each in files)
    meta = {**meta_of(said), "h1": h1, **_about(archive, prefix)}
    return Module(module, version, go_mod if go_mod is not None else f"module {module}\n".encode(), h1, meta)


def meta_of(said: GoMod) -> dict[str, Any]:
    """What a go.mod says, as the metadata of a version."""
    found = {"dependencies": said.requires, "go": said.go, "deprecated": said.deprecated, "retract": said.retracts}
    return {key: value for key, value in found.items() if value}


def _digest(pieces: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _check_names(source: Source, archive: ZipArchive, prefix: str) -> None:
    names = FileNames()
    for entry in archive.entries.values():
        if not entry.name.startswith(prefix):
            raise source.refuse(f"has {quoted(entry.name)}, which is not below {prefix}")
        if name := entry.name.removeprefix(prefix).rstrip("/"):
            try:
                names.add(name, entry.size, is_folder=entry.is_folder)
            except Invalid as error:
                raise source.refuse(error.message) from None


def _about(archive: ZipArchive, prefix: str) -> dict[str, str]:
    """The licence that the text of one looks like, and the readme."""
    found: dict[str, str] = {}
    for name in archive.entries:
        inner = name.removeprefix(prefix)
        with suppress(Invalid):  # too long to be shown
            if _README.fullmatch(inner):
                found["readme"] = (archive.read(name, LARGEST_README) or b"").decode("utf-8", "replace")
            elif "license" not in found and "/" not in inner and _LICENCE.match(inner):
                text = (archive.read(name, LARGEST_README) or b"").decode("utf-8", "replace")
                if licence := licence_of(text):
                    found["license"] = licence
    return found
