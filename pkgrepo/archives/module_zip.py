"""
Rules of module zips (``golang.org/x/mod/zip``), and of the go.mod in them, for those who make such zips and check them.

A zip has the files of one module below ``MODULE@VERSION/``, and a go.mod at that place only.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from collections.abc import Iterable
from typing import Final

from attrs import define, field

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.text import quoted

LARGEST: Final = 500 * 1024 * 1024  # bytes of a zip, and of all that is in it
LARGEST_FILE: Final = 16 * 1024 * 1024  # bytes of a go.mod, or of the licence
GO_MOD: Final = "go.mod"
LICENCE: Final = "LICENSE"
DOTTED: Final = "gopkg.in/"  # modules there have the major version behind a dot, as in yaml.v3
# Names of devices of Windows, which it takes for them with any ending.
WINDOWS: Final = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)", re.IGNORECASE)

_WORDS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|`[^`]*`|//.*|[()]|(?:(?!//)[^\s"`()])+')
_IN_FILES: Final = frozenset("!#$%&()+,-.=@[]^_{}~ ")
_LANGUAGE: Final = re.compile(rb"^[ \t]*go[ \t]+([0-9]\S*)", re.MULTILINE)
_MAJOR: Final = re.compile(r"/v[0-9.]+")
_DOTTED: Final = re.compile(r".*(\.v(?:0|[1-9][0-9]*))(?:-unstable)?")


@define
class GoMod:
    """What a go.mod says: ``requires`` are versions by module, ``indirect`` those that the module does not import."""

    module: str = ""
    go: str = ""
    deprecated: str = ""
    requires: dict[str, str] = field(factory=dict)
    indirect: dict[str, str] = field(factory=dict)
    retracts: list[str] = field(factory=list)


class FileNames:
    """The names of the files of a module, which are checked one after another (``zip.CheckZip``)."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, bool]] = {}  # by the name without case: the name, and whether it is a file

    def add(self, name: str, size: int, *, is_folder: bool = False) -> None:
        """Check one, below the module. :raises Invalid: clients would refuse a zip with it"""
        if not is_file_name(name):
            raise Invalid(f"has {quoted(name)}: not all systems take such a name", "content")
        folder, _, base = name.rpartition("/")
        if base.lower() == GO_MOD and (folder or base != GO_MOD):
            why = "the only go.mod is that at the root of the module, in lower case"
            raise Invalid(f"has {quoted(name)}: {why}", "content")
        if name in (GO_MOD, LICENCE) and size > LARGEST_FILE:
            raise Invalid(f"has a {name} of more than {LARGEST_FILE} bytes", "content")
        is_file = not is_folder
        while name:
            known = self._seen.setdefault(name.casefold(), (name, is_file))
            if known != (name, is_file):
                why = "which are one name without case"
                raise Invalid(f"has {quoted(name)} and {quoted(known[0])}, {why}", "content")
            name, is_file = name.rpartition("/")[0], False


def is_file_name(name: str) -> bool:
    """Whether a file in a module zip may have a name (``module.CheckFilePath``)."""
    for part in name.split("/"):
        known = all(each in _IN_FILES or (each.isalnum() if each.isascii() else each.isalpha()) for each in part)
        if not known or not part.strip(".") or part[-1] == "." or WINDOWS.match(part):
            return False
    return True


def major_suffix(module: str) -> str:
    """The end of a module path that says the major version, as ``/v2``, or ``.v2`` on gopkg.in; empty without one."""
    if module.startswith(DOTTED):
        dotted = _DOTTED.fullmatch(module)
        return dotted[1] if dotted else ""
    last = f"/{module.rpartition('/')[2]}"
    return last if "/" in module and _MAJOR.fullmatch(last) else ""


def fits_major(module: str, version: str) -> bool:
    """Whether a version of this major number can be one of a module with this path (``module.CheckPathMajor``)."""
    major, suffix, incompatible = version.partition(".")[0], major_suffix(module), version.endswith("+incompatible")
    if suffix == ".v1" and version.startswith("v0.0.0-"):  # as old releases of the go command named commits
        return True
    return major == suffix[1:] and not incompatible if suffix else (major in ("v0", "v1")) is not incompatible


def h1_of(files: Iterable[tuple[str, str]]) -> str:
    """The hash of files with these names and SHA-256 digests in hex (``golang.org/x/mod/sumdb/dirhash``)."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(files))
    return f"h1:{b64encode(hashlib.sha256(lines.encode()).digest()).decode()}"


def h1_of_mod(content: bytes) -> str:
    """The hash in go.sum of a go.mod."""
    return h1_of([(GO_MOD, hashlib.sha256(content).hexdigest())])


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
    if language := _LANGUAGE.search(content):
        found.go = language[1].decode("utf-8", "replace")
    return found


def _note(found: GoMod, verb: str, words: list[str], said: str, comment: list[str]) -> None:
    """Add what a line says, with the comment in it and those before it."""
    match verb, words:
        case "module", [name]:
            found.module = name
            notes = [each for each in (*comment, said) if each.startswith("Deprecated:")]
            found.deprecated = notes[0].removeprefix("Deprecated:").strip() if notes else ""
        case "require", [name, version]:
            (found.indirect if said.startswith("indirect") else found.requires)[name] = version
        case "retract", [*_]:
            found.retracts.append(" ".join((*words, *([f"({said})"] if said else []))))
