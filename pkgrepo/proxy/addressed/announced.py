"""
The digests that upstreams announce for a file.

Artifact servers have header fields for them; stores of objects show fields that were stored with the object. None of
this is in a standard. Files of checksums beside a file are as old as the Maven repository layout.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Protocol

SIZES: Final = {"sha512": 128, "sha256": 64, "sha1": 40, "md5": 32}  # characters of hex
LARGEST_FILE: Final = 4096  # bytes of a file with one checksum

_FIELDS = ("X-Checksum-{}", "x-goog-meta-checksum-{}", "x-amz-meta-checksum-{}")
_NAMES = {algorithm: [field.format(algorithm) for field in _FIELDS] for algorithm in SIZES}
_ETAG = re.compile(r'"\{SHA1\{([0-9a-fA-F]{40})\}\}"')
_HEX = re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]+(?![0-9A-Za-z])")


class Announcers:
    """Remembers which routes (by repository id and name) announce digests in the header of their answers."""

    def __init__(self) -> None:
        self._silent: set[tuple[int, str]] = set()

    def note(self, repository_id: int, route: str, *, announces: bool) -> None:
        """Remember what a route did."""
        change = self._silent.discard if announces else self._silent.add
        change((repository_id, route))

    def is_silent(self, repository_id: int, route: str) -> bool:
        """Whether the last answer of a route announced nothing, so that checksums are worth asking for early."""
        return (repository_id, route) in self._silent


class Fields(Protocol):
    """Header fields of an answer."""

    def get(self, name: str) -> str | None:
        """The value by a name without regard to case."""


def digests_in_header(fields: Fields) -> dict[str, str]:
    """The digests in the header of an answer, by names of C{hashlib}, in lower-case hex."""
    found: dict[str, str] = {}
    for algorithm, names in _NAMES.items():
        for name in names:
            value = (fields.get(name) or "").strip()
            if len(value) == SIZES[algorithm] and _HEX.fullmatch(value):
                found[algorithm] = value.lower()
                break
    etag = _ETAG.fullmatch((fields.get("ETag") or "").strip())
    if etag is not None:
        found.setdefault("sha1", etag[1].lower())
    return found


def digest_in_file(content: bytes, algorithm: str) -> str | None:
    """
    The digest that a file with one checksum has; None if it has none.

    Its forms are the bare digest, C{digest  name} and C{SHA1(name)= digest}.
    """
    size = SIZES[algorithm]
    text = content.decode("ascii", "replace")
    return next((each.lower() for each in _HEX.findall(text) if len(each) == size), None)


def select(digests: Mapping[str, str], algorithms: tuple[str, ...]) -> dict[str, str]:
    """Those of the digests that are computed."""
    return {
        algorithm: digest for algorithm, digest in digests.items() if algorithm in algorithms or algorithm == "sha256"
    }
