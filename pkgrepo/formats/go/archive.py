"""
Module zips, as ``golang.org/x/mod/zip`` makes and checks them, and the go.mod files in them.

A zip has the files of one module below ``MODULE@VERSION/``, and a go.mod at that place only. Whoever publishes names
neither: the zip does.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from attrs import define, field, frozen

from pkgrepo.archives.licence_texts import licence_of
from pkgrepo.archives.source import LIMITS, Source
from pkgrepo.archives.zip_archive import ZipArchive
from pkgrepo.errors import Invalid
from pkgrepo.untrusted.text import quoted

from .names import check_pair, major_suffix, wrong_file_name

LARGEST: Final = 500 * 1024 * 1024  # bytes of a zip, and of all that is in it
LARGEST_FILE: Final = 16 * 1024 * 1024  # bytes of a go.mod, or of a licence
LARGEST_README: Final = 64 * 1024  # bytes
GO_MOD: Final = "go.mod"

_LICENCE: Final = re.compile(r"(?:un)?licen[cs]e|copying", re.IGNORECASE)
_README: Final = re.compile(r"readme(?:\.md|\.markdown)?", re.IGNORECASE)
_WORDS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`|//.*|[()]|(?:(?!//)[^\s"`()])+')


@define
class GoMod:
    """What a go.mod says: ``requires`` are versions by module, ``indirect`` those that the module does not import."""

    module: str = ""
    go: str = ""
    deprecated: str = ""
    requires: dict[str, str] = field(factory=dict)
    indirect: dict[str, str] = field(factory=dict)
    retracts: list[str] = field(factory=list)

    def meta(self) -> dict[str, Any]:
        """As the metadata of a version."""
        found = {"dependencies": self.requires, "go": self.go, "deprecated": self.deprecated, "retract": self.retracts}
        return {key: value for key, value in found.items() if value}


@frozen
class Module:
    """A module zip: ``go_mod`` is that of the version, made up if it has none; ``h1`` is the hash of go.sum."""

    module: str
    version: str
    go_mod: bytes
    h1: str
    meta: Mapping[str, Any]


def h1_of(files: Iterable[tuple[str, str]]) -> str:
    """The hash of files with these names and SHA-256 digests in hex (``golang.org/x/mod/sumdb/dirhash``)."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(files))
    return f"h1:{b64encode(hashlib.sha256(lines.encode()).digest()).decode()}"


def h1_of_mod(content: bytes) -> str:
    """The hash in go.sum of a go.mod."""
    return h1_of([(GO_MOD, hashlib.sha256(content).hexdigest())])


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
    meta = {**said.meta(), "h1": h1, **_about(archive, prefix)}
    return Module(module, version, go_mod if go_mod is not None else f"module {module}\n".encode(), h1, meta)


def _digest(pieces: Iterator[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _check_names(source: Source, archive: ZipArchive, prefix: str) -> None:
    """Check what is called how (``zip.CheckZip``). :raises Invalid: clients would refuse the zip"""
    seen: dict[str, tuple[str, bool]] = {}  # by the name without case: the name, and whether it is a file
    for entry in archive.entries.values():
        if not entry.name.startswith(prefix):
            raise source.refuse(f"has {quoted(entry.name)}, which is not below {prefix}")
        name = entry.name.removeprefix(prefix).rstrip("/")
        if not name:
            continue
        if why := wrong_file_name(name):
            raise source.refuse(f"has {quoted(name)}: {why}")
        folder, _, base = name.rpartition("/")
        if base.lower() == GO_MOD and (folder or base != GO_MOD):
            raise source.refuse(f"has {quoted(name)}: the only go.mod is that at the root of the module, in lower case")
        if name in (GO_MOD, "LICENSE") and entry.size > LARGEST_FILE:
            raise source.refuse(f"has a {name} of more than {LARGEST_FILE} bytes")
        is_file = not entry.is_folder
        while name:
            known = seen.setdefault(name.casefold(), (name, is_file))
            if known != (name, is_file):
                raise source.refuse(f"has {quoted(name)} and {quoted(known[0])}, which are one name without case")
            name, is_file = name.rpartition("/")[0], False


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


def read_mod(content: bytes) -> GoMod:
    """What a go.mod says of its module (https://go.dev/ref/mod#go-mod-file). :raises Invalid: it names none"""
    found, verb, comment = GoMod(), "", list[str]()
    for line in content.decode("utf-8", "replace").splitlines():
        words = _WORDS.findall(line)
        said = words.pop()[2:].strip() if words and words[-1].startswith("//") else ""
        if not words:
            comment = [*comment, said] if said else []
            continue
        if not verb and words[1:2] == ["("]:
            verb = words[0]
            continue
        if words[0] == ")":
            verb = ""
            continue
        _note(found, verb or words[0], [each.strip('"`') for each in (words if verb else words[1:])], said, comment)
        comment = []
    if not found.module:
        raise Invalid("the go.mod names no module", GO_MOD)
    return found


def _note(found: GoMod, verb: str, words: list[str], said: str, comment: list[str]) -> None:
    """Add what a line says, with the comment in it and those before it."""
    match verb, words:
        case "module", [name]:
            found.module = name
            notes = [each for each in (*comment, said) if each.startswith("Deprecated:")]
            found.deprecated = notes[0].removeprefix("Deprecated:").strip() if notes else ""
        case "go", [version]:
            found.go = version
        case "require", [name, version]:
            (found.indirect if said.startswith("indirect") else found.requires)[name] = version
        case "retract", [*_]:
            found.retracts.append(" ".join((*words, *([f"({said})"] if said else []))))
