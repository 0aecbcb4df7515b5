"""Air-gap bundles as sources of imports: each is verified as a whole, and then read as a folder of its format."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any, Final

import msgspec
from attrs import evolve, field, frozen

from pkgrepo.archives.bundle_file import OWN, Content, Facts, PackageFacts, Reading, Stored
from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import DigestMismatch, Invalid, NotFound
from pkgrepo.gateway.format import Format
from pkgrepo.gateway.imported.described import WithLeftOut
from pkgrepo.gateway.imported.items import Item, Source, SourcePackage, State
from pkgrepo.gateway.imported.places import Folder, FoundFile, LocalPlace
from pkgrepo.model import VersionState
from pkgrepo.repositories.upkeep.imports import ImportRequest
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.untrusted.signed_lists import Listed

KIND: Final = "bundle"
MIB: Final = 1024 * 1024
PIECE: Final = 1024 * 1024  # bytes of a file that are read at a time
STEPS: Final = 16  # pieces that one turn of a thread reads


@frozen
class PackedPlace(LocalPlace):
    """The bytes of a file in a bundle, which are verified again as they are read. ``stored`` is None if it has none."""

    listed: Listed = field(kw_only=True)
    stored: Stored | None = field(kw_only=True)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The bytes. :raises NotFound: an earlier bundle has them; :raises DigestMismatch: the bundle was changed"""
        if self.stored is None:
            raise NotFound("file of an earlier bundle, which is to be read first,", self.listed.sha256[:16])
        descriptor = await self.pools.disk(os.open, self.path, os.O_RDONLY | os.O_CLOEXEC)
        digest, at, end = hashlib.sha256(), self.stored.offset, self.stored.offset + self.stored.size
        try:
            while at < end:
                piece = await self.pools.disk(_read_piece, descriptor, digest, at, min(PIECE, end - at))
                if not piece:
                    break
                at += len(piece)
                yield piece
        finally:
            os.close(descriptor)
        if digest.hexdigest() != self.listed.sha256:
            raise DigestMismatch("sha256", self.listed.sha256, digest.hexdigest())


def _read_piece(descriptor: int, digest: Any, at: int, count: int) -> bytes:
    piece = os.pread(descriptor, count, at)
    digest.update(piece)
    return piece


class BundleFolder(Folder):
    """What a bundle has of a repository, as a folder; also the files that earlier bundles have, which have no bytes."""

    def __init__(self, path: str, pools: Pools, content: Content, blobs: Mapping[str, Stored]) -> None:
        super().__init__(f"{path}/.", pools)  # a name that no image has
        self._path = path
        self._blobs = blobs
        self._files = {**content.before, **content.files}
        self._files = {path: each for path, each in self._files.items() if not path.startswith(OWN)}
        self._times = content.facts.times
        self._below: dict[str, tuple[dict[str, None], list[FoundFile]]] = {"": ({}, [])}
        for each in sorted(self._files):
            self._sort_in(each)

    def _sort_in(self, path: str) -> None:
        folder, _, _ = path.rpartition("/")
        found = FoundFile(path, self._files[path].size, self._times.get(path, 0) * 1_000_000)
        self._below.setdefault(folder, ({}, []))[1].append(found)
        while folder:
            above, _, name = folder.rpartition("/")
            self._below.setdefault(above, ({}, []))[0][name] = None
            folder = above

    async def read(self, path: str, limit: int) -> bytes:
        """A small file. :raises NotFound: there is none; :raises Invalid: it is too large"""
        listed = self._files.get(path)
        if listed is None:
            raise NotFound("file", path[-200:])
        if listed.size > limit:
            raise Invalid(f"{path.rpartition('/')[2]} has more than {limit} bytes")
        return b"".join([chunk async for chunk in self.at(path).chunks()])

    async def files(self, below: str = "") -> list[FoundFile]:
        """All files below a path, ordered by path."""
        prefix = f"{below}/" if below else ""
        every = (each for _, files in self._below.values() for each in files)
        return sorted((each for each in every if each.path.startswith(prefix)), key=lambda each: each.path)

    async def list(self, path: str = "") -> tuple[list[str], list[FoundFile]]:
        """The names of the folders in a folder, and its files."""
        folders, files = self._below.get(path.rstrip("/"), ({}, []))
        return list(folders), files

    def at(self, path: str) -> PackedPlace:
        """The place of a file."""
        listed = self._files[path]
        return PackedPlace(self._path, self.pools, listed=listed, stored=self._blobs.get(listed.sha256))


class BundleSource:
    """
    A source in a bundle, with the digests of its list, and with what the bundle knows of the packages.

    Of yanked gems it knows the state, and has no files.
    """

    def __init__(self, inner: Source, facts: Facts, documents_have_states: bool = False) -> None:
        self._inner = inner
        self._facts = facts
        self._has_states = documents_have_states
        self._withdrawn: set[str] = set()  # the packages of which all versions are yanked, and no file is there

    async def names(self) -> AsyncIterator[str]:
        """The names of the packages."""
        listed = set()
        async for name in self._inner.names():
            listed.add(name)
            yield name
        for key, known in self._facts.packages.items():
            if key not in listed and all(each.state == VersionState.YANKED for each in known.versions.values()):
                self._withdrawn.add(key)
                yield key

    async def package(self, name: str) -> SourcePackage:
        """What there is of a package."""
        if name in self._withdrawn:
            source_package = SourcePackage(name=name, key=name, fingerprint="", items=())
        else:
            source_package = await self._inner.package(name)
        known = self._facts.packages.get(source_package.key, PackageFacts()).versions
        items = [_with_facts(each, known.get(each.version or ""), self._facts.times) for each in source_package.items]
        states: dict[str, State] = {}
        if not self._has_states:
            for text, each in known.items():
                if each.state in (VersionState.YANKED, VersionState.DEPRECATED):
                    states[text] = VersionState(each.state), each.reason
        said = hashlib.sha256(b"%s %s" % (source_package.fingerprint.encode(), msgspec.json.encode(known)))
        return evolve(
            source_package, items=items, states={**source_package.states, **states}, fingerprint=said.hexdigest()
        )


def _with_facts(item: Item, known: Any, times: Mapping[str, int]) -> Item:
    place = item.place
    digests = {"sha256": place.listed.sha256} if isinstance(place, PackedPlace) else {}
    published_ms = times.get(item.path, item.published_ms or None)
    if known is not None and published_ms is None:
        published_ms = known.published_ms
    publisher = item.publisher if known is None else known.publisher or item.publisher
    return evolve(item, digests={**item.digests, **digests}, published_ms=published_ms, publisher=publisher)


async def open_bundle(path: str, format_: Format, request: ImportRequest, pools: Pools, progress: Progress) -> Source:
    """
    Verify a bundle, and return what it has for a repository of a format.

    :raises Invalid: it is damaged, not signed by a key that is trusted, or has nothing for such a repository
    """
    reading = Reading(path, tuple(request.keys))
    try:
        await pools.disk(reading.open)
        progress.begin("verification (MiB)", reading.size // MIB)
        done = 0
        while await pools.disk(_step, reading):
            progress.step(reading.read // MIB - done)
            done = reading.read // MIB
        contents = await pools.disk(reading.contents)
        progress.end()
    finally:
        reading.close()
    content = _choose(contents, format_.name, request)
    folder = await pools.disk(partial(BundleFolder, path, pools, content, reading.blobs))
    source = (format_.imported.in_bundle or format_.imported.folder)(folder, request)
    if format_.images is not None:
        return source
    return BundleSource(WithLeftOut(source, folder), content.facts, format_.imported.states)


def _step(reading: Reading) -> bool:
    return all(reading.step() for _ in range(STEPS))


def _choose(contents: list[Content], format_name: str, request: ImportRequest) -> Content:
    """The repository of the bundle that is wanted. :raises Invalid: it is not said which, or it is another format"""
    there = ", ".join(each.manifest.repository for each in contents)
    if request.repositories:
        wanted = [each for each in contents if each.manifest.repository in request.repositories]
    else:
        wanted = [each for each in contents if each.facts.format == format_name]
    if len(wanted) != 1:
        raise Invalid(
            f"name the repository of the bundle (repositories, --repository): it has {there}", "/repositories"
        )
    if wanted[0].facts.format != format_name:
        raise Invalid(f"{wanted[0].manifest.repository} has the format {wanted[0].facts.format}, not {format_name}")
    return wanted[0]
