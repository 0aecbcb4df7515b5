"""What the readers of pages have in common: the values of a page, and the checks of their parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

from attrs import Factory, frozen

from pkgrepo.errors import Invalid

LONGEST_TEXT: Final = 4096  # characters of the reason of a yank, of Requires-Python and of a status
MOST_LOCATIONS: Final = 100  # URLs of PEP 708

# The length of hexadecimal digests by the names of hashlib.
_DIGESTS: Final = {"sha256": 64, "sha512": 128, "sha384": 96, "sha224": 56, "blake2b": 128, "sha1": 40, "md5": 32}
_HEX: Final = re.compile("[0-9a-f]+")
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f]+")
_VERSION: Final = re.compile(r"1(?:\.[0-9]{1,9})?")


@frozen
class ListedFile:
    """
    A file as a page lists it; ``url`` may be relative to ``Listing.base``. The rest is as in ``pages.FileEntry``.

    ``upload_time`` is the upstream's text, and ``provenance`` the upstream's URL.
    """

    filename: str
    url: str
    hashes: Mapping[str, str]
    requires_python: str | None = None
    size: int | None = None
    upload_time: str | None = None
    yanked: Literal[False] | str = False
    core_metadata: Mapping[str, str] | bool = False
    has_sig: bool = False
    provenance: str | None = None
    other: Mapping[str, Any] = Factory(dict)


@frozen
class Listing:
    """
    A project's page. ``name`` is None, and ``versions`` empty, if the page does not have them.

    Links are relative to ``base``. ``files`` can be read once.
    """

    name: str | None
    base: str
    files: Iterable[ListedFile]
    versions: Sequence[str] = ()
    status: str = "active"
    reason: str | None = None
    tracks: Sequence[str] = ()
    alternate_locations: Sequence[str] = ()


def check_api_version(text: str) -> None:
    """Check the version of a page (PEP 629). :raises Invalid: its major version is not 1"""
    if not _VERSION.fullmatch(text):
        raise Invalid(f"it has version {text[:40]!a} of the simple index, and 1 is known")


def find_text(value: Any) -> str | None:
    """A text without control characters, which is short and not empty; else None."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        return None
    return _CONTROLS.sub(" ", value).strip() or None


def find_hashes(given: Mapping[str, Any]) -> dict[str, str]:
    """The known hashes that are well-formed."""
    found: dict[str, str] = {}
    for name, value in given.items():
        text = value.lower() if isinstance(value, str) else ""
        if len(text) == _DIGESTS.get(name) and _HEX.fullmatch(text):
            found[name] = text
    return found


def find_locations(given: Iterable[Any]) -> list[str]:
    """The URLs of other repositories (PEP 708)."""
    urls = [text for text in map(find_text, given) if text is not None and text.startswith(("http://", "https://"))]
    return urls[:MOST_LOCATIONS]
