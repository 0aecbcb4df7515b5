"""Where a repository has what a lock names: the documents that clients read, and the paths of files."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from re import Pattern
from typing import Protocol

from attrs import field, frozen

from pkgrepo.errors import Invalid
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository
from pkgrepo.proxy.caching.questions import DocumentRequest
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.resolving.serving import UpstreamMember
from pkgrepo.proxy.trace import Trace
from pkgrepo.storage.catalog.packages import files, packages

from .locks import Lock, Wanted, differs


@frozen(kw_only=True)
class Place:
    """
    A file of the package with a ``key``, and for what it is wanted.

    A companion may be missing; one that is ``uncounted`` belongs to another file. ``is_document``: it is made of the
    document with the key, and has no path.
    """

    wanted: Wanted
    key: str
    path: str = ""
    is_companion: bool = False
    uncounted: bool = False
    is_document: bool = False


class FindPlaces(Protocol):
    """Finds the places of what is wanted of one package."""

    def __call__(
        self, services: Services, repository: Repository, wanted: Sequence[Wanted], /
    ) -> Awaitable[list[Place]]:
        """
        What is not in the list is not there.

        :raises NotFound: there is no such package; :raises UpstreamFailed: that is not known
        """


class ChooseVersions(Protocol):
    """Says what is wanted of some versions of a package."""

    def __call__(
        self, services: Services, repository: Repository, name: str, versions: Sequence[str], /
    ) -> Awaitable[list[Wanted]]:
        """:raises Invalid: no package has this name; :raises PkgrepoError: it is not known what there is"""


class Needed(Protocol):
    """Collects files that were fetched, and tells which others they need."""

    def add(self, path: str, content: bytes) -> None:
        """Add a file. One that cannot be read needs nothing."""

    def needed(self) -> list[Wanted]:
        """What is needed and was not told before; none at some time. It takes CPU time: call it in a thread."""


@frozen(kw_only=True)
class Needs:
    """How files with an ending, of at most ``largest`` bytes, name others that are needed."""

    ending: str
    largest: int
    collect: Callable[[], Needed]


@frozen
class LockFile:
    """
    A kind of lock file: patterns of its name in lower case, its reader, and the formats of the repositories it is for.

    Readers raise ``Invalid`` for a text that is no such file.
    """

    names: tuple[str, ...]
    read: Callable[[str], Lock]
    formats: frozenset[str]


@frozen(kw_only=True, eq=False)
class Mirrored:
    """
    How what lock files name is found in repositories of a format.

    A file with a name that no format knows is read by ``read_list``. It is likely one of this format if its text or its
    name has the sign; a format without ``text_sign`` may have any text.

    ``document_keys`` are those of the documents that clients read before the files, and raise ``Invalid`` if no package
    has such a name; ``common`` are the documents that they read whatever they want. ``places`` is None for images.
    ``choose`` is what patterns mean by versions, where it is not just these; ``document_key`` is the key of a name in a
    pattern, where that is no package.

    ``package_key`` is the key of what is wanted. ``split`` is the name of a file, and what makes it a companion of it.
    ``is_wanted`` tells whether the file of a version at a path is wanted; it is also given the name without what makes
    it a companion. ``needs`` is for files that name others.
    """

    lock_files: Sequence[LockFile]
    read_list: Callable[[str], Lock]
    text_sign: Pattern[str] | None = None
    name_sign: Pattern[str] | None = None
    document_keys: Callable[[Wanted], Iterator[str]] = lambda wanted: iter([wanted.name])
    common: Callable[[Sequence[Wanted]], Sequence[DocumentRequest]] = lambda _wanted: ()
    places: FindPlaces | None = None
    choose: ChooseVersions | None = None
    document_key: Callable[[str], str] | None = None
    package_key: Callable[[Wanted], str] = lambda wanted: wanted.name
    split: Callable[[str], tuple[str, str]] = lambda name: (name, "")
    is_wanted: Callable[[Wanted, str, str, str], bool]
    needs: Needs | None = None
    hashes: Mapping[str, Callable[[int | bytes, str], str]] = field(factory=dict)


def by_name(find: Callable[[Wanted], Iterator[Place]]) -> FindPlaces:
    """The places where these follow from what is wanted alone; ``find`` raises ``Invalid`` if nothing can be there."""

    async def places(_services: Services, _repository: Repository, wanted: Sequence[Wanted], /) -> list[Place]:
        found: list[Place] = []
        for each in wanted:
            with suppress(Invalid):  # no file can be called so
                found += find(each)
        return found

    return places


def by_listing(key_of: Callable[[Wanted], str]) -> FindPlaces:
    """The places of the files that documents list: those with the name, or those of the version with the digests."""

    async def places(services: Services, repository: Repository, wanted: Sequence[Wanted], /) -> list[Place]:
        key = key_of(wanted[0])
        listed = await list_files(services, repository, key)
        return [
            Place(wanted=each, key=key, path=file.path)
            for each in wanted
            for file in listed
            if is_version(each, file.version, file.path, file.name)
            and (each.file or differs(each.digests, file.digests) is not True)
        ]

    return places


def is_version(wanted: Wanted, version: str, _path: str, base: str) -> bool:
    """Whether a file is wanted, by its name or by the text of its version."""
    return wanted.file == base if wanted.file else wanted.version == version


def is_path(wanted: Wanted, _version: str, path: str, _base: str) -> bool:
    """Whether a file is wanted, by its path."""
    return wanted.file == path


@frozen
class Listed:
    """A file that a document lists."""

    path: str
    version: str
    digests: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of the file."""
        return self.path.rpartition("/")[2]


async def list_files(services: Services, repository: Repository, key: str) -> list[Listed]:
    """
    The files that the members serving a package list, each path once.

    :raises NotFound: there is no such package; :raises UpstreamFailed: that is not known
    """
    found: dict[str, Listed] = {}
    members = await services.proxy.resolver.members(repository, key, Trace())
    for member in members.serving:
        if isinstance(member, UpstreamMember):
            section = member.request.section

            def read(parts: PartsFile, section: bytes = section) -> list[Listed]:
                return [
                    Listed(source.path, entry.version, source.digests)
                    for entry in parts.entries((), section)
                    for source in entry.files
                ]

            some = await services.proxy.resolver.read(member, read)
        else:
            some = await services.catalog.scan(_stored, member.repository.id, key)
        for each in some:
            found.setdefault(each.path, each)
    return list(found.values())


def _stored(r: Reader, repository_id: int, key: str) -> list[Listed]:
    package = packages.find_package(r, repository_id, key)
    if package is None:
        return []
    return [
        Listed(each.path, each.path.rpartition("/")[0].rpartition("/")[2], {**each.digests, "sha256": each.sha256})
        for each in files.files_of_package(r, package.id)
    ]
