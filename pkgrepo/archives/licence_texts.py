"""
The licence that a text is, for formats whose packages declare none: they have the text of one.

It is told by what each licence says of itself. The texts of others, and of several together, are not known.
"""

from __future__ import annotations

import re
from typing import Final

_SPDX: Final = re.compile(r"SPDX-License-Identifier:\s*([\w.+ ()-]+)")
_WORDS: Final = re.compile(r"[a-z0-9]+")
# What a licence says, in lower case and without punctuation, with its SPDX identifier; the first that fits.
_SAID: Final = {
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


def licence_of(text: str) -> str:
    """The SPDX identifier, or expression, of a text; empty if it is not known."""
    if named := _SPDX.search(text):
        return named[1].strip()
    words = " ".join(_WORDS.findall(text.lower()))
    return next((name for said, name in _SAID.items() if said in words), "")
