"""
Questions for files by their paths, and the digests that upstreams announce for them.

Artifact servers have header fields for digests; stores of objects show fields that were stored with the object. None of
this is in a standard. Files of checksums beside a file are as old as the Maven repository layout.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from attrs import frozen

from pkgrepo.proxy.transfers.download import Headers

SIZES: Final = {"sha512": 128, "sha256": 64, "sha1": 40, "md5": 32}  # characters of hex
LARGEST_FILE: Final = 4096  # bytes of a file with one checksum
_FIELDS = ("X-Checksum-{}", "x-goog-meta-checksum-{}", "x-amz-meta-checksum-{}")
_NAMES = {algorithm: [field.format(algorithm) for field in _FIELDS] for algorithm in SIZES}
_ETAG = re.compile(r'"\{SHA1\{([0-9a-fA-F]{40})\}\}"')
_HEX = re.compile(r"(?<![0-9A-Za-z])[0-9a-fA-F]+(?![0-9A-Za-z])")


def file_key(path: str) -> str:
    """The key of what is remembered about the file of an upstream at a path."""
    return f"file/{path}"


@frozen(kw_only=True)
class FileRequest:
    """
    One file of an upstream: ``path`` is decoded, below the URL of a route as below the address of the repository.

    ``package_key`` and the version are those that it belongs to; empty for a file that belongs to none. All files of
    one version come from one route.

    A ``lasting`` file never changes, and is kept as a file of the package. Another one is asked for again after
    ``cache_ttl``, and after ``most_ttl_s`` seconds at most; one that is ``settled`` never is, since it does not change.
    With ``of_one_route`` it tells what a whole upstream has, so that it is wrong where several are behind one address.
    Upstreams are not asked for one that is ``only_hosted``. It is an error of the upstream if a file is empty, unless
    it ``may_be_empty``.

    ``algorithms`` are digests to compute (names of ``hashlib``). If an upstream announces none of them in the header of
    its response, those of ``companions`` are asked for: the suffix of each is a dot and its name.
    """

    path: str
    media_type: str
    package_key: str = ""
    version_key: str = ""
    version_text: str = ""
    sort: bytes = b""
    lasting: bool = True
    settled: bool = False
    most_ttl_s: int | None = None
    of_one_route: bool = False
    only_hosted: bool = False
    may_be_empty: bool = False
    algorithms: tuple[str, ...] = ()
    companions: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The key of what is remembered about the file, among those of the documents of the proxy."""
        return file_key(self.path)

    @property
    def filename(self) -> str:
        """The last segment of the path."""
        return self.path.rpartition("/")[2]


class Announcers:
    """Remembers which routes (by repository id and name) announce digests in the header of their responses."""

    def __init__(self) -> None:
        self._silent: set[tuple[int, str]] = set()

    def note(self, repository_id: int, route: str, *, announces: bool) -> None:
        """Remember what a route did."""
        change = self._silent.discard if announces else self._silent.add
        change((repository_id, route))

    def is_silent(self, repository_id: int, route: str) -> bool:
        """Whether the last response of a route announced nothing, so that checksums are worth asking for early."""
        return (repository_id, route) in self._silent


def digests_in_header(fields: Headers) -> dict[str, str]:
    """The digests in the header of a response, by names of ``hashlib``, in lower-case hex."""
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

    Its forms are the bare digest, ``digest  name`` and ``SHA1(name)= digest``.
    """
    size = SIZES[algorithm]
    text = content.decode("ascii", "replace")
    return next((each.lower() for each in _HEX.findall(text) if len(each) == size), None)


def select(digests: Mapping[str, str], algorithms: tuple[str, ...]) -> dict[str, str]:
    """The digests, by algorithm, that are computed here."""
    return {
        algorithm: digest for algorithm, digest in digests.items() if algorithm in algorithms or algorithm == "sha256"
    }
