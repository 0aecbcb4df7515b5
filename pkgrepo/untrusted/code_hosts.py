"""The repository of source code that a text in metadata names, in one spelling, so that two can be compared."""

from __future__ import annotations

import re
from typing import Final

LONGEST: Final = 1000  # characters of a text that is read
_SHORT: Final = re.compile(r"(?:(github|gitlab|bitbucket):)?([\w.-]+/[\w.-]+)", re.ASCII)
_ADDRESS: Final = re.compile(
    r"(?:git\+)?(?:\w+://)?(?:[^@/\s]+@)?([\w.-]+\.[a-z]{2,})(?::\d+)?[:/]+([^\s?#]+)", re.IGNORECASE
)
_HOSTS: Final = {"gitlab": "gitlab.com", "bitbucket": "bitbucket.org"}


def repository_of(text: str, *, short: bool = False) -> str:
    """
    HOST/OWNER/NAME of a repository, in lower case; empty if the text is no address of one.

    ``short`` texts such as ``OWNER/NAME`` and ``gitlab:OWNER/NAME`` are as npm reads them.
    """
    text = text.strip()
    if len(text) > LONGEST:
        return ""
    brief = _SHORT.fullmatch(text.partition("#")[0]) if short else None
    if brief is not None:
        host, path = _HOSTS.get(brief[1] or "", "github.com"), brief[2]
    else:
        found = _ADDRESS.match(text)
        if found is None:
            return ""
        host, path = found[1].lower().removeprefix("www."), found[2]
    parts = [each for each in path.split("/") if each][:2]
    if len(parts) < 2:
        return ""
    return f"{host}/{parts[0]}/{parts[1].removesuffix('.git')}".lower()
