"""
Names, versions and build strings of conda packages, the names of their files, and platforms (CEP 26).

A file is called ``<name>-<version>-<build>`` with one of two endings. Only a name may have dashes.

The limits of what clients send keep the inspection of a package below a few seconds of CPU time, whatever its size;
those of archives are in ``pkgrepo.archives.source``.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.versions import order_key
from pkgrepo.untrusted.text import quoted

MIB: Final = 1024 * 1024

METADATA_SIZE: Final = 4 * 1024  # bytes of metadata.json in a .conda; 34 are usual
INFO_SIZE: Final = 32 * MIB  # bytes of the packed info member of a .conda; 100,000 files take 5 MB
INDEX_SIZE: Final = 256 * 1024  # bytes of info/index.json; it is in the repodata, and usually has 500
ABOUT_SIZE: Final = MIB  # bytes of info/about.json
EXPORTS_SIZE: Final = 64 * 1024  # bytes of info/run_exports.json
MOST_VALUES: Final = 20_000  # of one of these JSON documents


@frozen
class Bz2Limits:
    """Bytes of a ``.tar.bz2`` that are read until its info folder has come: 2 s as packed, or 4 s as unpacked ones."""

    packed: int = 8 * MIB
    unpacked: int = 64 * MIB


BZ2: Final = Bz2Limits()
REPODATA_SIZE: Final = 512 * MIB  # bytes of a document of an upstream channel, unpacked; the largest one has 300 MB
BZ2_DOCUMENT: Final = 64 * MIB  # bytes of a document up to which it is there as .bz2, which takes 100 ms per MB

LONGEST_NAME: Final = 128  # characters
LONGEST_VERSION: Final = 64  # CEP 26
LONGEST_BUILD: Final = 64  # CEP 26
LONGEST_FILE_NAME: Final = 220  # bytes with ending, so that a file system can hold names of sidecars
LONGEST_TEXT: Final = 64 * 1024  # characters of one text about a package, which is cut there

WHEEL_SIZE: Final = 64 * MIB  # bytes of a wheel that is converted, at most 1 s per 30 MB
WHEEL_UNPACKED: Final = 256 * MIB  # bytes of the same after decompression
CORE_METADATA_SIZE: Final = MIB  # bytes of METADATA in a wheel, with its description
RECORD_SIZE: Final = 16 * MIB  # bytes of RECORD in a wheel
ENTRY_POINTS_SIZE: Final = 64 * 1024  # bytes of entry_points.txt in a wheel
MOST_ENTRY_POINTS: Final = 1000
SCRIPT_SIZE: Final = MIB  # bytes of a script in a wheel
MOST_REQUIREMENTS: Final = 500
LONGEST_REQUIREMENT: Final = 2000  # characters


BRANCH: Final = "api/conda"  # at the root of the server: anaconda-client sends files there
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
