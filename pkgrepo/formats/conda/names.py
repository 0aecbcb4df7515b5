"""
Names, versions and build strings of conda packages, the names of their files, and platforms (CEP 26).

A file is called ``<name>-<version>-<build>`` with one of two endings. Only a name may have dashes.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.untrusted.text import quoted

from .limits import LONGEST_BUILD, LONGEST_FILE_NAME, LONGEST_NAME, LONGEST_VERSION
from .version_order import order_key

CONDA: Final = ".conda"
TAR_BZ2: Final = ".tar.bz2"
ENDINGS: Final = (CONDA, TAR_BZ2)

NOARCH: Final = "noarch"
SUBDIRS: Final = (
    NOARCH,
    "emscripten-wasm32",
    "freebsd-64",
    "linux-32",
    "linux-64",
    "linux-aarch64",
    "linux-armv6l",
    "linux-armv7l",
    "linux-loongarch64",
    "linux-ppc64",
    "linux-ppc64le",
    "linux-riscv32",
    "linux-riscv64",
    "linux-s390x",
    "osx-64",
    "osx-arm64",
    "wasi-wasm32",
    "win-32",
    "win-64",
    "win-arm64",
    "zos-z",
)

# Two underscores begin the names of virtual packages, which no channel has.
_NAME: Final = re.compile(r"(?!__)[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?")
_VERSION: Final = re.compile(r"(?:[0-9]+!)?[A-Za-z0-9_][A-Za-z0-9_.]*(?:\+[A-Za-z0-9_][A-Za-z0-9_.]*)?")
_BUILD: Final = re.compile(r"[A-Za-z0-9_.+]+")


@frozen
class FileName:
    """The parts of a package's file name; ``ending`` is one of L{ENDINGS}."""

    name: str
    version: str
    build: str
    ending: str

    @property
    def stem(self) -> str:
        """The name without its ending, which conda calls the distribution."""
        return f"{self.name}-{self.version}-{self.build}"

    def __str__(self) -> str:
        return self.stem + self.ending


def parse_file_name(text: str) -> FileName:
    """
    The parts of a package's file name.

    :raises Invalid: the text is no such name; the sentence has the rule
    """
    ending = next((each for each in ENDINGS if text.endswith(each)), None)
    parts = text.removesuffix(ending or "").rsplit("-", 2)
    if ending is None or len(parts) != 3 or len(text) > LONGEST_FILE_NAME:
        raise Invalid(
            f"file name {quoted(text)} must be NAME-VERSION-BUILD.conda or .tar.bz2, of at most {LONGEST_FILE_NAME} "
            "characters",
            "filename",
        )
    return FileName(check_name(parts[0]), check_version(parts[1]), check_build(parts[2]), ending)


def is_name(text: str) -> bool:
    """Whether a text is the name of a package."""
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(text) is not None


def check_name(text: str) -> str:
    """The name of a package. :raises Invalid: the text is no name; the sentence has the rule"""
    if not is_name(text):
        raise Invalid(
            f"name {quoted(text)} must have lower-case letters, digits, '.', '_' and '-' only and at most "
            f"{LONGEST_NAME} characters, begin with a letter, digit or one '_', and not end in '.' or '-'",
            "name",
        )
    return text


def check_version(text: str) -> str:
    """
    A version, as in the names of files.

    :raises Invalid: the text is no version, or conda cannot compare it
    """
    if len(text) <= LONGEST_VERSION and _VERSION.fullmatch(text):
        with suppress(ValueError):
            order_key(text)
            return text
    raise Invalid(
        f"version {quoted(text)} must be letters and numbers, joined by '.' or '_', perhaps with an epoch before '!' "
        f"and a local part after '+', of at most {LONGEST_VERSION} characters",
        "version",
    )


def version_key(text: str) -> str:
    """The normal form of a version: versions differ by more than case. :raises Invalid: the text is no version"""
    return check_version(text).lower()


def check_build(text: str) -> str:
    """A build string. :raises Invalid: the text is no build string"""
    if len(text) > LONGEST_BUILD or not _BUILD.fullmatch(text):
        raise Invalid(
            f"build {quoted(text)} must have letters, digits, '.', '_' and '+' only, at most {LONGEST_BUILD} of them",
            "build",
        )
    return text


def check_subdir(text: str) -> str:
    """A platform as channels have folders for it. :raises Invalid: conda knows no such platform"""
    if text not in SUBDIRS:
        raise Invalid(f"subdir {quoted(text)} is none of {', '.join(SUBDIRS)}", "subdir")
    return text
