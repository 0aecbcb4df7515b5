"""Where a repository has what a lock names: the documents that clients read, and the paths of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.names import NOARCH, SUBDIRS, check_subdir, parse_file_name
from pkgrepo.formats.conda.proxied.restoring import repodata_question
from pkgrepo.formats.maven.paths import ArtifactFile, Metadata, parse_text
from pkgrepo.formats.npm.names import is_readable
from pkgrepo.formats.npm.paths import tarball_path
from pkgrepo.formats.python.names import normalise
from pkgrepo.formats.python.versions import find_version
from pkgrepo.formats.rubygems.names import check_name, full_name
from pkgrepo.formats.rubygems.paths import gem_path
from pkgrepo.formats.rubygems.proxied.upstream import versions_question
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.mirroring.locks.wanted import Wanted, differs
from pkgrepo.model import Repository
from pkgrepo.proxy.documents.held import DocumentRequest
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.resolving.serving import UpstreamMember
from pkgrepo.proxy.trace import Trace
from pkgrepo.storage.catalog.packages import files, packages

PLATFORMS: Final = (NOARCH, "linux-64", "linux-aarch64", "osx-64", "osx-arm64", "win-64")
METADATA: Final = ".metadata"  # of a wheel (PEP 658)


@frozen(kw_only=True)
class Place:
    """
    A file of the package with a ``key``, and for what it is wanted.

    A companion may be missing. ``is_document``: it is made of the document with the key, and has no path.
    """

    wanted: Wanted
    key: str
    path: str = ""
    is_companion: bool = False
    is_document: bool = False


@frozen
class _Listed:
    """A file that a document lists."""

    path: str
    version: str
    digests: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


def document_keys(repository: Repository, wanted: Sequence[Wanted]) -> list[str]:
    """The keys of the documents that clients read before the files. :raises Invalid: no package has such a name"""
    return [key for each in wanted for key in _KEYS[repository.format](each)]


def common_questions(repository: Repository, wanted: Sequence[Wanted]) -> list[DocumentRequest]:
    """
    The documents that clients read whatever they want: the list of all gems, and those of the folders of a channel.

    Where only packages for every platform are wanted, clients ask for the folders of their own, too.
    """
    if repository.format == "ruby":
        return [versions_question()]
    if repository.format != "conda":
        return []
    subdirs = {each.file.partition("/")[0] for each in wanted} & {*SUBDIRS}
    return [repodata_question(each) for each in sorted(subdirs | {NOARCH} if subdirs - {NOARCH} else {*PLATFORMS})]


async def find_places(services: Services, repository: Repository, wanted: Sequence[Wanted]) -> list[Place]:
    """
    The places of what is wanted of one package; what is not in the list is not there.

    :raises NotFound: there is no such package; :raises UpstreamFailed: that is not known
    """
    find = _PLACES.get(repository.format)
    if find is None:
        key = normalise(wanted[0].name)
        listed = await list_files(services, repository, key)
        return [place for each in wanted for place in _python_places(each, key, listed)]
    found: list[Place] = []
    for each in wanted:
        with suppress(Invalid):  # no file can be called so
            found += find(each)
    return found


def _npm_places(wanted: Wanted) -> Iterator[Place]:
    yield Place(wanted=wanted, key=wanted.name, path=tarball_path(wanted.name, wanted.version))


def _npm_keys(wanted: Wanted) -> Iterator[str]:
    if not is_readable(wanted.name):
        raise Invalid(f"no package can be called {wanted.name[:200]!r}")
    yield wanted.name


def _ruby_places(wanted: Wanted) -> Iterator[Place]:
    yield Place(wanted=wanted, key=wanted.name, path=gem_path(full_name(wanted.name, wanted.version)))


def _conda_places(wanted: Wanted) -> Iterator[Place]:
    yield Place(wanted=wanted, key=parse_file_name(wanted.file.rpartition("/")[2]).name, path=wanted.file)


def _conda_keys(wanted: Wanted) -> Iterator[str]:
    subdir, _, file = wanted.file.partition("/")
    yield f"{check_subdir(subdir)}/{parse_file_name(file).name}"


def _maven_places(wanted: Wanted) -> Iterator[Place]:
    target = parse_text(wanted.file)
    if isinstance(target, ArtifactFile):
        key = target.coordinates.package_key
        yield Place(wanted=wanted, key=key, path=wanted.file, is_companion=wanted.optional)
    elif isinstance(target, Metadata) and target.package_key is not None:
        key = target.package_key if target.version is None else f"{target.package_key}:{target.version}"
        yield Place(wanted=wanted, key=key, is_document=True)
    else:
        raise Invalid(f"{wanted.file[:200]!r} is not the path of a file of an artifact")


def _python_places(wanted: Wanted, key: str, listed: Sequence[_Listed]) -> Iterator[Place]:
    """The files with the name, or those of the version with one of the digests; wheels with their metadata."""
    paths = {each.path for each in listed}
    for each in listed:
        if each.name.endswith(METADATA) or not _is_wanted(wanted, each):
            continue
        yield Place(wanted=wanted, key=key, path=each.path)
        if each.path + METADATA in paths:
            yield Place(wanted=wanted, key=key, path=each.path + METADATA, is_companion=True)


def _is_wanted(wanted: Wanted, each: _Listed) -> bool:
    if wanted.file:
        return each.name == wanted.file
    pin, version = find_version(wanted.version), find_version(each.version)
    if pin != version or (pin is None and wanted.version != each.version):
        return False
    return differs(wanted.digests, each.digests) is not True


async def list_files(services: Services, repository: Repository, key: str) -> list[_Listed]:
    """
    The files that the members serving a package list, each path once.

    :raises NotFound: there is no such package; :raises UpstreamFailed: that is not known
    """
    found: dict[str, _Listed] = {}
    members = await services.proxy.resolver.members(repository, key, Trace())
    for member in members.serving:
        if isinstance(member, UpstreamMember):
            section = member.request.section

            def read(parts: PartsFile, section: bytes = section) -> list[_Listed]:
                return [
                    _Listed(source.path, entry.version, source.digests)
                    for entry in parts.entries((), section)
                    for source in entry.files
                ]

            some = await services.proxy.resolver.read(member, read)
        else:
            some = await services.catalog.scan(_stored, member.repository.id, key)
        for each in some:
            found.setdefault(each.path, each)
    return list(found.values())


def _stored(r: Reader, repository_id: int, key: str) -> list[_Listed]:
    package = packages.find_package(r, repository_id, key)
    if package is None:
        return []
    return [
        _Listed(each.path, each.path.rpartition("/")[0].rpartition("/")[2], {**each.digests, "sha256": each.sha256})
        for each in files.files_of_package(r, package.id)
    ]


_KEYS: Final[Mapping[str, Callable[[Wanted], Iterator[str]]]] = {
    "npm": _npm_keys,
    "python": lambda wanted: iter([normalise(wanted.name)]),
    "ruby": lambda wanted: iter([check_name(wanted.name)]),
    "conda": _conda_keys,
    "maven": lambda _: iter(()),  # most builds ask for files alone
}
_PLACES: Final[Mapping[str, Callable[[Wanted], Iterator[Place]]]] = {
    "npm": _npm_places,
    "ruby": _ruby_places,
    "conda": _conda_places,
    "maven": _maven_places,
}
