"""What sources of imports list, and what a kind of source needs to be one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from attrs import Factory, field, frozen

from pkgrepo.concurrency.pools import Pools
from pkgrepo.interfaces import Reader
from pkgrepo.model import BlobInfo, VersionState
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.imported_downloads import Downloads

MARK: Final = "imported"  # the attribute of a file that was taken in: where it came from
State = tuple[VersionState, str]  # with the reason


class Place(Protocol):
    """
    Where the bytes of a file are.

    ``modified_ms`` is when they were changed there, if that is known once they were read; in ms since the epoch.
    """

    @property
    def modified_ms(self) -> int | None:
        """When the bytes were changed at the source, in ms since the epoch; None if that is not known."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The bytes. :raises PkgrepoError, OSError: they cannot be read"""


@frozen(kw_only=True)
class Item:
    """
    A file at a source.

    ``path`` is where the repository is to have it. ``digests`` are what the source says of its bytes, by ``hashlib``
    name, in lower-case hex; ``size`` is None if it does not say that. ``published_ms`` and ``publisher`` are those of
    the publish at the source; None if they are not known. ``about`` is for the L{Take} of the kind.
    """

    name: str
    path: str
    place: Place
    version: str = ""
    size: int | None = None
    digests: Mapping[str, str] = Factory(dict)
    published_ms: int | None = None
    publisher: str | None = None
    about: Any = None


@frozen(kw_only=True)
class SourcePackage:
    """
    A package at a source: ``name`` is what the source calls it, ``key`` that of the package here.

    ``fingerprint`` is a text that differs once the source says something else. ``tags`` are texts of versions by tag,
    ``states`` are those of versions that are not live, by text. ``left_out`` are names of files that are not taken,
    with the reason. ``meta`` is set on the package. ``downloads`` are None if they are not known; they are in no
    fingerprint, since each download changes them, also those of an import.
    """

    name: str
    key: str
    fingerprint: str
    items: Sequence[Item]
    tags: Mapping[str, str] = Factory(dict)
    states: Mapping[str, State] = Factory(dict)
    left_out: Sequence[tuple[str, str]] = ()
    meta: Mapping[str, Any] = Factory(dict)
    downloads: Downloads | None = None


@frozen
class Fact:
    """
    What an API says of a version or of a file; None where it does not say it. ``digests`` are as in L{Item}.

    ``downloads`` are not in its text, of which fingerprints are made; see L{SourcePackage}.
    """

    published_ms: int | None = None
    publisher: str | None = None
    state: State | None = None
    digests: Mapping[str, str] = Factory(dict)
    downloads: int = field(default=0, repr=False)


Facts = Mapping[str, Fact]  # by the text of the version, or by the name of the file; of the package by an empty one
NOTHING: Final = Fact()


def downloads_of(items: Sequence[Item], facts: Facts) -> Downloads | None:
    """The downloads of a package, and of the versions of these files; None if there are no counts."""
    versions: dict[str, int] = {}
    for item in items:
        if item.version and (count := facts.get(item.name, NOTHING).downloads):
            versions[item.version] = versions.get(item.version, 0) + count
    versions |= {text: facts[text].downloads for text in {each.version for each in items} & facts.keys() if text}
    versions = {text: count for text, count in versions.items() if count}
    total = facts.get("", NOTHING).downloads
    return Downloads(total, versions) if total or versions else None


class Take(Protocol):
    """Makes the release of a file, whose staged bytes have the digests that the source announced."""

    def __call__(
        self, source_package: SourcePackage, item: Item, staged: Staged, blob: BlobInfo, pools: Pools, /
    ) -> Awaitable[Release]:
        """:raises Invalid: it is no file of this package, or one that cannot be served"""


class Source(Protocol):
    """The packages of one place."""

    def names(self) -> AsyncIterator[str]:
        """The names of all packages, each once. :raises PkgrepoError, OSError: they cannot be listed"""

    def package(self, name: str) -> Awaitable[SourcePackage]:
        """What there is of a package. :raises PkgrepoError, OSError: that is not known"""


def _unchanged(_reader: Reader, _repository_id: int, source_package: SourcePackage) -> SourcePackage:
    return source_package


@frozen(kw_only=True, eq=False)
class Taking:
    """
    How files of a format are taken in.

    ``take`` makes releases. ``algorithms`` are the digests beside sha256 that the format needs of its files. ``settle``
    returns the package with the paths that its files have in a repository which has other files of their versions.
    ``join`` makes one release of those of the files of a version; None: each file is a release. A version that is
    joined is left out whole if a file of it fails that is ``needed``.
    """

    take: Take
    algorithms: tuple[str, ...] = ()
    settle: Callable[[Reader, int, SourcePackage], SourcePackage] = _unchanged
    join: Callable[[Sequence[Release]], Release] | None = None
    needed: Callable[[Item], bool] = lambda _item: True
