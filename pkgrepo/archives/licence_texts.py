"""
The licence that a text is: of packages that declare none, and of files beside a declaration, which may say otherwise.

It is told by what each licence says of itself. The texts of others, and of several together, are not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

UNKNOWN: Final = "LicenseRef-unknown"  # the text of a licence that is none of these
LONGEST: Final = 64 * 1024  # bytes of a text that are read; that of the GPL has 35 KiB
MOST_FILES: Final = 50  # of an archive that are read; what is in further ones is not known
LONGEST_NAME: Final = 100  # characters of a name; what is longer is a text

_SEPARATORS: Final = re.compile(r" (?:OR|AND|WITH) |[()/,;]+")
_NOTHING: Final = frozenset({"", "the", "license", "licence", "software", "version", "v", "only"})
_NAMES: Final = re.compile(r"[a-z0-9.+]+")
_NOTICE: Final = re.compile(r"notice", re.IGNORECASE)
_SPDX: Final = re.compile(r"SPDX-License-Identifier:\s*([\w.+ ()-]+)")
_WORDS: Final = re.compile(r"[a-z0-9]+")
# What a licence says, in lower case and without punctuation, with its SPDX identifier; the first that fits.
_SAID: Final = {
    # those that name another one in their text come first
    "business source license 1 1": "BUSL-1.1",
    "functional source license version 1 1 mit future license": "FSL-1.1-MIT",
    "functional source license version 1 1 alv2 future license": "FSL-1.1-ALv2",
    "commons clause license condition": "LicenseRef-Commons-Clause",
    "server side public license": "SSPL-1.0",
    "elastic license 2 0": "Elastic-2.0",
    "polyform noncommercial license 1 0 0": "PolyForm-Noncommercial-1.0.0",
    "polyform small business license 1 0 0": "PolyForm-Small-Business-1.0.0",
    "gnu affero general public license version 3": "AGPL-3.0",
    "gnu lesser general public license version 3": "LGPL-3.0",
    "gnu lesser general public license version 2 1": "LGPL-2.1",
    "gnu general public license version 3": "GPL-3.0",
    "gnu general public license version 2": "GPL-2.0",
    "apache license version 2 0": "Apache-2.0",
    "mozilla public license version 2 0": "MPL-2.0",
    "permission to use copy modify and or distribute this software for any purpose": "ISC",
    "permission to use copy modify and distribute this software for any purpose": "ISC",
    "permission is hereby granted free of charge to any person obtaining a copy": "MIT",
    "may be used to endorse or promote products derived from": "BSD-3-Clause",
    "redistribution and use in source and binary forms": "BSD-2-Clause",
    "this is free and unencumbered software released into the public domain": "Unlicense",
    "cc0 1 0 universal": "CC0-1.0",
}


def licence_files(folder: str) -> re.Pattern[str]:
    """A pattern of the names of files in a folder (a pattern, too) that have the text of a licence, or a notice."""
    name = r"(?:[\w.]+-)?(?:un)?(?:licen[sc]es?|copying|notice)(?:[-.][\w.-]+)?"
    code = r"(?![^/]*\.(?:[cm]?[jt]sx?|py|rb|json|map|html?|ya?ml|xml|toml|h|c|cpp|java|go|rs|png|svg|svelte|vue)$)"
    return re.compile(rf"{folder}{code}{name}$", re.IGNORECASE)


def licences_of_file(name: str, data: bytes) -> Iterator[str]:
    """The licences that a file with such a name says; a notice that is no licence says none."""
    found = licence_of(data[:LONGEST].decode("utf-8", "replace"))
    if found:
        yield from names_in(found)
    elif data.strip() and not _NOTICE.search(name.rpartition("/")[2]):
        yield UNKNOWN


def licences_declared(texts: Iterable[str]) -> Iterator[str]:
    """The licences in what is declared: names, SPDX expressions, or whole texts."""
    for text in texts:
        if len(text) > LONGEST_NAME or "\n" in text.strip():
            yield from names_in(licence_of(text[:LONGEST]) or UNKNOWN)
        else:
            yield from names_in(text)


def names_in(expression: str) -> list[str]:
    """The licences in an SPDX expression, or in a free text, of whatever length."""
    plain = " ".join(expression.split())  # a pattern for many blanks takes seconds where there are thousands
    return [each.strip() for each in _SEPARATORS.split(plain) if each.strip()]


def new_licences(before: Iterable[str], after: Iterable[str]) -> list[str]:
    """Those of a version that the one before does not have, in whatever spelling; none if that has none at all."""
    known = {*map(_plain, before)}
    return sorted({each for each in after if _plain(each) not in known}) if known else []


def _plain(name: str) -> str:
    """A name without what spellings differ in: ``MIT License`` is ``mit``, ``Apache 2.0`` is ``apache-2.0``."""
    return "-".join(each for each in _NAMES.findall(name.lower()) if each not in _NOTHING)


def licence_of(text: str) -> str:
    """The SPDX identifier, or expression, of a text; empty if it is not known."""
    if named := _SPDX.search(text):
        return named[1].strip()
    words = " ".join(_WORDS.findall(text.lower()))
    return next((name for said, name in _SAID.items() if said in words), "")
