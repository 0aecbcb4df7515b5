"""
Maven repositories: folders with their layout, and addresses below which there are listings or metadata.

What is taken in together is a directory: the files of a version in one transaction, of very many some at a time. Files
that are of no version follow, and of metadata what they say beside versions, which follow from the files.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote

from attrs import evolve

from pkgrepo.errors import Invalid, NotFound, UpstreamFailed
from pkgrepo.formats.maven.configuration import CHECKSUM_SIZE
from pkgrepo.formats.maven.imported.folder import SourceDirectory, walk
from pkgrepo.formats.maven.metadata.reading import LARGEST as METADATA_SIZE
from pkgrepo.formats.maven.metadata.reading import read_metadata
from pkgrepo.formats.maven.paths import (
    ALGORITHMS,
    ArtifactFile,
    Checksum,
    Directory,
    FilePath,
    parse_text,
)
from pkgrepo.gateway.digest_fields import parse_checksum
from pkgrepo.gateway.imported.items import Item, Place, SourcePackage
from pkgrepo.gateway.imported.listings import read_listing
from pkgrepo.gateway.imported.places import Folder, LocalPlace, Site
from pkgrepo.gateway.imported.sources import Paths, PathSite

METADATA_NAME: Final = "maven-metadata.xml"
SUMS: Final = ("sha1", "md5")  # that are asked for at an address: every repository has these
ENDINGS: Final = (".pom", ".jar", "-sources.jar", "-javadoc.jar", ".module", ".war", ".aar")  # of a version unlisted


class MavenFolder:
    """A folder with the layout of a Maven repository. Symbolic links are problems, unless ``follow_links``."""

    def __init__(self, folder: Folder, *, follow_links: bool) -> None:
        self._folder = folder
        self._follow_links = follow_links
        self._found: dict[str, SourceDirectory] = {}

    async def names(self) -> AsyncIterator[str]:
        """The directories that have files, each after those below it."""
        directories = walk(self._folder.root, follow_links=self._follow_links)
        while (found := await self._folder.pools.disk(next, directories, None)) is not None:
            if found.files or found.problems:
                self._found[found.path] = found
                yield found.path

    async def package(self, name: str) -> SourcePackage:
        """The files of a directory."""
        found = self._found.pop(name)
        items, left_out, mark = await self._folder.pools.disk(self._read, found)
        return SourcePackage(name=name, key=key_of(items), fingerprint=mark, items=items, left_out=left_out)

    def _read(self, found: SourceDirectory) -> tuple[list[Item], list[tuple[str, str]], str]:
        items: list[Item] = []
        marks: list[str] = []
        left_out = [_split(each, found.path) for each in found.problems]
        for target, place in found.files:
            try:
                at = os.stat(place)
                sums = {each: found.sums[target.path, each] for each in ALGORITHMS if (target.path, each) in found.sums}
                digests = {each: parse_checksum(_read_sum(sums[each]), each) for each in sums}
            except (OSError, Invalid) as error:
                left_out.append((target.path, str(error.strerror if isinstance(error, OSError) else error)))
                continue
            marks.append(f"{place} {at.st_size} {at.st_mtime_ns} {sorted(digests.items())}")
            where = LocalPlace(place, self._folder.pools, follow=self._follow_links)
            items.append(item_of(target, where, digests, at.st_size, at.st_mtime_ns // 1_000_000))
        marks += [f"{item} {reason}" for item, reason in left_out]
        return items, left_out, hashlib.sha256("\n".join(marks).encode("utf-8", "surrogateescape")).hexdigest()


class MavenSite:
    """
    A Maven repository by its address, walked by its listings.

    With ``artifacts`` (``group:artifact``) only these are taken, with the versions that their metadata name; where
    versions are not listed either, the usual files are tried.
    """

    def __init__(self, site: Site, artifacts: Sequence[str] = ()) -> None:
        self._site = site
        self._artifacts = artifacts
        self._listed: dict[str, tuple[str, list[str]]] = {}
        self._failed: dict[str, NotFound | UpstreamFailed] = {}

    async def names(self) -> AsyncIterator[str]:
        """The directories that have files."""
        for artifact in self._artifacts:
            group, _, name = artifact.partition(":")
            path = f"{group.replace('.', '/')}/{name}"
            try:
                content, _ = await self._site.read(self._url(f"{path}/{METADATA_NAME}"), largest=METADATA_SIZE)
            except NotFound:
                raise Invalid(f"the source has no metadata of {artifact}", "/names") from None
            for version in (await self._site.pools.cpu(read_metadata, content)).versions:
                yield f"{path}/{version}"
        waiting = [] if self._artifacts else [""]
        while waiting:
            path = waiting.pop()
            try:
                folders, names, mark = await self._list(path)
            except (NotFound, UpstreamFailed) as error:
                if not path:
                    raise
                self._failed[path] = error  # which is that of the directory alone
                yield path
                continue
            waiting += [f"{path}/{each}" if path else each for each in reversed(folders)]
            if names:
                self._listed[path] = mark, names
                yield path

    async def package(self, name: str) -> SourcePackage:
        """The files of a directory."""
        if name in self._failed:
            raise self._failed.pop(name)
        found = self._listed.pop(name, None)
        if found is None:
            found = await self._find(name)
        mark, names = found
        paths = [parse_text(f"{name}/{each}" if name else each) for each in names]
        sums = {each.path for each in paths if isinstance(each, Checksum)}
        targets = [each for each in paths if not isinstance(each, (Checksum, Directory))]
        items, left_out = [], []
        for target in targets:
            try:
                digests = await self._digests(target, sums or None)
            except Invalid as error:
                left_out.append((target.path, error.message))
                continue
            items.append(item_of(target, self._site.file(self._url(target.path)), digests))
        items.sort(key=_order)
        said = f"{mark} {[sorted(each.digests.items()) for each in items]}"
        fingerprint = hashlib.sha256(said.encode()).hexdigest()
        return SourcePackage(name=name, key=key_of(items), fingerprint=fingerprint, items=items, left_out=left_out)

    async def _digests(self, target: FilePath, listed: set[str] | None) -> dict[str, str]:
        """The digests beside a file; ``listed`` are the paths of checksums, None if they are not known."""
        for algorithm in SUMS:
            path = f"{target.path}.{algorithm}"
            if listed is not None and path not in listed:
                continue
            try:
                content, _ = await self._site.read(self._url(path), largest=CHECKSUM_SIZE)
            except NotFound:
                continue
            return {algorithm: parse_checksum(content, algorithm)}
        return {}

    async def _find(self, path: str) -> tuple[str, list[str]]:
        """The files of a version, by its listing, or else those of the usual names that are there."""
        try:
            _, names, mark = await self._list(path)
        except (NotFound, Invalid):
            names, mark = [], ""
        if names:
            return mark, names
        _, artifact, version = path.rsplit("/", 2)
        for ending in ENDINGS:
            name = f"{artifact}-{version}{ending}"
            if await self._site.has(self._url(f"{path}/{name}")):
                names.append(name)
        return path, names

    async def _list(self, path: str) -> tuple[list[str], list[str], str]:
        """Names of folders and of files in a listing, and a text that differs if it does. :raises Invalid: no page"""
        found = await read_listing(self._site, f"{self._url(path)}/" if path else f"{self._site.url}/")
        if found is None:
            raise Invalid(f"there is no listing at {path or 'the address'}: name artifacts (group:artifact)")
        return found.folders, found.files, found.mark

    def _url(self, path: str) -> str:
        return f"{self._site.url}/{quote(path)}"


def open_assets(site: Site, paths: Paths) -> PathSite:
    """The files of a Maven repository by a list of their paths, whose directories are taken in as packages."""
    return PathSite(site, paths, _read_path, settle=_settle)


def _read_path(path: str) -> tuple[str, str]:
    """:raises Invalid: it is no path, or that of what is computed here, in silence"""
    target = parse_text(path)
    if isinstance(target, (Checksum, Directory)):
        raise Invalid("")
    return path.rpartition("/")[0], target.coordinates.version if isinstance(target, ArtifactFile) else ""


def _settle(found: SourcePackage) -> SourcePackage:
    items = sorted((evolve(each, about=parse_text(each.path)) for each in found.items), key=_order)
    return evolve(found, key=key_of(items), items=items)


def _order(item: Item) -> tuple[bool, str]:
    return not item.path.endswith(".pom"), item.path


def item_of(
    target: FilePath, place: Place, digests: Mapping[str, str], size: int | None = None, at_ms: int | None = None
) -> Item:
    """The item of a file of a Maven repository, which was published at some time if that is known."""
    return Item(
        name=target.path,
        path=target.path,
        place=place,
        version=target.coordinates.version if isinstance(target, ArtifactFile) else "",
        size=size,
        digests=digests,
        published_ms=at_ms,
        about=target,
    )


def key_of(items: Sequence[Item]) -> str:
    """The key of the package that the files of a directory are of; empty if they are of none."""
    found = (each.about for each in items if isinstance(each.about, ArtifactFile))
    return next((each.coordinates.package_key for each in found), "")


def _read_sum(place: str) -> bytes:
    with open(place, "rb") as file:
        return file.read(CHECKSUM_SIZE)


def _split(problem: str, directory: str) -> tuple[str, str]:
    """The item and the reason of a sentence about a file that is left out."""
    item, _, reason = problem.partition(": ")
    return (item, reason) if reason else (directory, problem)
