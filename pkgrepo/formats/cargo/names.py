"""
Names of crates, the requirements of dependencies, and the paths of files.

The key of a crate is its name in lower case, as paths of the index have it. ``-`` and ``_`` differ there, but two names
that differ in them or in case alone are one spelling, of which a repository takes one.
"""

from __future__ import annotations

import re
from typing import Final

from pkgrepo.errors import Invalid
from pkgrepo.repositories import semver
from pkgrepo.untrusted.text import quoted

LONGEST_NAME: Final = 64  # characters; as on the public registry
LONGEST_VERSION: Final = 150
CRATE: Final = ".crate"

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_DEVICES: Final = re.compile(r"con|prn|aux|nul|(com|lpt)[1-9]")  # of Windows, which are no names of files there
# Crates and tools of the compiler, and what the public registry reserves beside them.
_STANDARD: Final = frozenset(
    """
    alloc arena ast builtins collections compiler-builtins compiler-rt compiletest core coretest debug driver flate
    fmt-macros grammar graphviz macro macros proc-macro rbml rust rust-installer rustbook rustc rustc-back
    rustc-borrowck rustc-driver rustc-llvm rustc-resolve rustc-trans rustc-typeck rustc-unicode rustdoc rustllvm rustuv
    serialize std syntax test unicode
    """.split()  # noqa: SIM905 - so many words read better so
)


def package_key(name: str) -> str:
    """The key of a crate. :raises Invalid: no crate has such a name"""
    if len(name) > LONGEST_NAME or _NAME.fullmatch(name) is None:
        raise Invalid(
            f"invalid crate name {quoted(name)}: it must be of ASCII letters, digits, '-' and '_', begin with a letter "
            f"and have at most {LONGEST_NAME} characters",
            "name",
        )
    return name.lower()


def check_new_name(name: str, *, standard: bool) -> None:
    """Check the name of a new crate; with ``standard`` also those are refused that the compiler has. :raises Invalid"""
    key = package_key(name)
    if key[0] == "_" or _DEVICES.fullmatch(key):
        raise Invalid(f"invalid crate name {quoted(name)}: no file or program can be called so everywhere", "name")
    if standard and spelling(name) in _STANDARD:
        raise Invalid(
            f"crate name {quoted(name)} is reserved: the compiler has one of this name (policy.standard_names)", "name"
        )


def spelling(name: str) -> str:
    """What names have in common that are too much alike."""
    return name.lower().replace("_", "-")


def parse_version(text: str) -> semver.Version:
    """A version that can be published. :raises Invalid: it is none"""
    if len(text) > LONGEST_VERSION:
        raise Invalid(f"invalid version: it has more than {LONGEST_VERSION} characters", "version")
    return semver.parse_version(text)


def crate_path(key: str, version: str) -> str:
    """The public path of a crate's file, by key and the text of the version."""
    return f"{key}/{version}/{key}-{version}{CRATE}"


def prefix(key: str) -> str:
    """The folder of the document of a crate in an index."""
    return {1: "1", 2: "2", 3: f"3/{key[:1]}"}.get(len(key), f"{key[:2]}/{key[2:4]}")


def normal_requirement(text: str) -> str:
    """A requirement as ``cargo`` sends it, from one as people write it: ``1.2`` is ``^1.2``."""
    parts = ["".join(each.split()) for each in text.split(",")]
    return ", ".join(f"^{each}" if each[:1].isdigit() and "*" not in each else each for each in parts)
