"""
The routes that look into archives: what is in them, the text of a small file, and the readme of a version.

Archives are read one at a time, since a large one keeps a thread busy for a second; lists are kept in memory by the
digest and the name of the archive.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar, cast

from attrs import frozen
from twisted.internet.interfaces import IReactorTime

from pkgrepo.archives.listing import find_readme, list_archive, read_text_entry
from pkgrepo.concurrency.fair_semaphore import FairSemaphore, QueueFull
from pkgrepo.concurrency.lru import SizedCache
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import BlobMissing, Invalid, NotFound, existing
from pkgrepo.http.responses import NO_STORE, Refusal, Response
from pkgrepo.management.api.access_rules import CONTENT_READERS, CONTENT_READERS_OF_SOME
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.management.packages import images
from pkgrepo.management.packages.contents import ArchiveContents, ArchiveEntryRecord, EntryChange, VersionDifference
from pkgrepo.management.packages.difference import (
    compare_entries,
    compare_requirements,
    compare_scripts,
    find_pair,
    neutral_name,
    unified_difference,
)
from pkgrepo.model import Action, File, Package, Version
from pkgrepo.storage.catalog.packages.files import count_files_of_version, find_file, list_files_of_version
from pkgrepo.storage.catalog.packages.packages import find_package_by_id
from pkgrepo.storage.catalog.packages.text_index import license_of
from pkgrepo.storage.catalog.packages.versions import find_by_keys
from pkgrepo.untrusted.networks import networks_of

MOST_WAITING: Final = 32  # requests that wait for their turn
CACHE_SIZE: Final = 8 * 1024 * 1024  # bytes
ENTRY_SIZE: Final = 300  # bytes of an entry in memory, besides its name

# Media types of readmes, by the ending of the file's name.
_README_TYPES: Final = {
    "md": "text/markdown", "markdown": "text/markdown", "rst": "text/x-rst", "txt": "text/plain"
}  # fmt: skip
_WITH_README: Final = (
    ".tgz",
    ".gem",
    ".crate",
    ".conda",
    ".tar.bz2",
)  # the readmes of other formats are in their metadata
MOST_SEARCHED: Final = 20  # files of a version
MOST_COMPARED: Final = 1000  # files of a version
MOST_CHANGES: Final = 2000  # files in an archive that are returned
LARGEST_SEARCHED: Final = 32 * 1024 * 1024  # bytes of an archive that is searched for a readme

VERSIONS: Final = (Parameter("before", "The older version."), Parameter("after", "The newer version."))

T = TypeVar("T")


@frozen
class _Listing:
    """The records of an archive's entries, which are made in the thread that reads it: there may be thousands."""

    entries: list[ArchiveEntryRecord]
    complete: bool


@frozen
class _Readme:
    """The text of a readme and its media type; both are empty if the archive has no readme."""

    text: str
    kind: str


class Contents:
    """Lists what is inside an archive, and shows small files of it."""

    table = Table("packages")

    def __init__(self, services: ManagementServices) -> None:
        shared = services.shared
        self._shared = shared
        self._turns = FairSemaphore(1, cast("IReactorTime", shared.pools.reactor), most_waiting=MOST_WAITING)
        self._kept: SizedCache[_Listing] = SizedCache(CACHE_SIZE)
        self._flight: SingleFlight[tuple[str, str, bool], _Listing] = SingleFlight()
        self._readmes: SizedCache[_Readme] = SizedCache(CACHE_SIZE)
        self._readme_flight: SingleFlight[str, _Readme] = SingleFlight()

    @table.get(
        "/repository/<repository>/contents/<path:path>",
        CONTENT_READERS_OF_SOME,
        "List what is inside an archive",
        query=[Parameter("digests", "Whether to return the SHA-256 digests of files of up to 32 MiB.", "boolean")],
    )
    async def entries(self, call: Call, path: str) -> ArchiveContents:
        """
        The path is that of a file in the repository, as in its tree: wheels, jars, tarballs, gems, conda packages...

        complete is false if the archive has more entries than are returned, or is too large to be read to its end. It
        is read in a second at most, and nothing is unpacked to the disk.
        """
        file = await self._find(call, path)
        listing = await self._list(call, file, digests=call.flag("digests"))
        return ArchiveContents(path=file.path, size=file.size, complete=listing.complete, entries=listing.entries)

    @table.command(
        "package diff REPOSITORY NAME BEFORE AFTER",
        fields="size: {size_before:size} -> {size_after:size} | licence: :licences | scripts: scripts:changes | "
        "dependencies: requirements:changes | files: :compared",
        about="Compare two versions of a package: files, dependencies, install scripts, licence and size.",
    )
    @table.get(
        "/package/<repository>/<package>/difference",
        CONTENT_READERS,
        "Compare two versions of a package",
        query=VERSIONS,
    )
    async def difference(self, call: Call) -> VersionDifference:
        """
        The files in their archives, their dependencies, and the scripts that run when they are installed.

        Images have no such difference: compare their layers.
        """
        package, old, new, pair = await self._compared(call)
        texts = old.text, new.text
        sizes = [await call.catalog.scan(count_files_of_version, each.id) for each in (old, new)]
        changes, complete = list[EntryChange](), True
        if pair:
            was, now = [await self._list(call, each, digests=True) for each in pair]
            read = was.complete, now.complete
            changes, complete = compare_entries(was.entries, now.entries, texts, read)
        return VersionDifference(
            package=package.name,
            before=old.text,
            after=new.text,
            archives=[each.path for each in pair] if pair else None,
            complete=complete,
            files=changes[:MOST_CHANGES],
            file_count=len(changes),
            requirements=compare_requirements(old.meta, new.meta),
            scripts=compare_scripts(old.meta, new.meta),
            license_before=license_of(old.meta),
            license_after=license_of(new.meta),
            size_before=sizes[0][1],
            size_after=sizes[1][1],
        )

    @table.command("package diff REPOSITORY NAME BEFORE AFTER --entry ENTRY", lines=":")
    @table.get(
        "/package/<repository>/<package>/difference/text",
        CONTENT_READERS,
        "Compare a text file in two versions of a package",
        media_type="text/plain",
        query=[*VERSIONS, Parameter("entry", "The name of the file, as the difference of the versions has it.")],
    )
    async def text_difference(self, call: Call) -> Response:
        """
        As a unified diff; a file that only one of the versions has is added or removed whole.

        Files of up to 64 KiB that are UTF-8 are compared; others are answered with 422.
        """
        _, old, new, pair = await self._compared(call)
        entry = call.query("entry")
        texts: list[str | None] = []
        for file, version in zip(pair or (), (old.text, new.text), strict=False):
            listed = await self._list(call, file, digests=True)
            name = next((each.name for each in listed.entries if neutral_name(each.name, version) == entry), None)
            if name is None and not listed.complete:
                raise Invalid(f"{file.path} is too large to be read to its end: download the whole file", "entry")
            text = None
            if name is not None:
                text = await self._read(call, file, partial(read_text_entry, filename=_name(file), name=name))
            texts.append(text)
        if not any(each is not None for each in texts):
            raise NotFound("file in the archives", entry)
        labels = f"{old.text}/{entry}", f"{new.text}/{entry}"
        return call.text_answer(await self._shared.pools.cpu(unified_difference, texts, labels), "text/plain")

    async def _compared(self, call: Call) -> tuple[Package, Version, Version, tuple[File, File] | None]:
        """The package, its two versions that the query names, and their archives. :raises Invalid: it is an image"""
        if images.are_in(call):
            raise Invalid("images are not compared here: the digests of their layers say what they share", "package")
        package, new = await call.find_version(call.query("after"))
        old = await self._before(call)
        ours, theirs = [
            await call.catalog.scan(partial(list_files_of_version, limit=MOST_COMPARED), each.id) for each in (old, new)
        ]
        return package, old, new, find_pair(ours, theirs, (old.text, new.text))

    async def _before(self, call: Call) -> Version:
        """The older version; what is staged is compared with what the repository of the stage has, too."""
        text, target = call.query("before"), call.repository.authority
        try:
            return (await call.find_version(text))[1]
        except NotFound:
            if call.repository.stage is None:
                raise
        try:
            key = call.format.version_key(text)
        except Invalid:
            raise NotFound("version", text) from None
        return existing(await call.catalog.look(find_by_keys, target.id, call.package or "", key), "version", text)

    @table.get(
        "/repository/<repository>/text/<path:path>",
        CONTENT_READERS_OF_SOME,
        "Show a small text file in an archive",
        media_type="text/plain",
        query=[Parameter("entry", "The name of the file, as the list of the archive has it.")],
    )
    async def text(self, call: Call, path: str) -> Response:
        """Files of up to 64 KiB that are UTF-8 are sent, as text/plain in a sandbox; others are answered with 422."""
        file, entry = await self._find(call, path), call.query("entry")
        found = await self._read(call, file, partial(read_text_entry, filename=_name(file), name=entry))
        if found is None:
            raise NotFound("file in the archive", entry)
        return Response(
            body=found.encode(),
            content_type=b"text/plain; charset=utf-8",
            headers=(
                *NO_STORE,
                (b"X-Content-Type-Options", b"nosniff"),
                (b"Content-Security-Policy", b"sandbox; default-src 'none'"),
            ),
        )

    @table.get(
        "/package/<repository>/<package>/versions/<version>/readme",
        CONTENT_READERS,
        "Get the readme of a version",
        media_type="text/plain",
    )
    async def readme(self, call: Call, version: str) -> Response:
        """
        The text is not rendered; X-Readme-Type is its media type, as the publisher declared it or named the file.

        It is sent as text/plain, or as text/markdown if it is Markdown and the Accept field contains text/markdown. If
        the publisher sent no readme with the metadata, that in the archive of the package is.
        """
        _, found = await call.find_version(version)
        text, kind = found.meta.get("readme"), "text/markdown"  # of npm packages
        if not text:
            text, kind = await self._packed_readme(call, found.id)
        if not text:
            text = found.meta.get("description")
            kind = str(found.meta.get("description_content_type") or "text/plain").partition(";")[0].strip().lower()
        if not text:
            raise NotFound("readme of version", found.text)
        kind = kind if kind in _README_TYPES.values() else "text/plain"
        return call.text_answer(str(text), kind, headers=((b"X-Readme-Type", kind.encode("ascii")),))

    async def _packed_readme(self, call: Call, version_id: int) -> tuple[str, str]:
        """The readme in the archive of a version, and its media type; without a readme, two empty texts."""
        listed = await call.catalog.scan(partial(list_files_of_version, limit=MOST_SEARCHED), version_id)
        packed = [each for each in listed if each.path.endswith(_WITH_README) and each.size <= LARGEST_SEARCHED]
        if not packed:
            return "", ""
        file = min(packed, key=lambda each: each.size)
        found = self._readmes.get(file.sha256)
        if found is None:
            found = await self._readme_flight.run(file.sha256, lambda: self._read_readme(call, file))
        return found.text, found.kind

    async def _read_readme(self, call: Call, file: File) -> _Readme:
        found = None
        with suppress(Invalid, BlobMissing):  # a damaged archive has no readme that could be shown
            found = await self._read(call, file, partial(find_readme, filename=_name(file)))
        name, text = found or ("", "")
        ending = name.lower().rpartition(".")[2]
        kept = _Readme(text, _README_TYPES.get(ending, "text/plain") if text else "")
        self._readmes.put(file.sha256, kept, ENTRY_SIZE + len(text))
        return kept

    async def _find(self, call: Call, path: str) -> File:
        file: File | None = await call.catalog.look(find_file, call.repository.id, path)
        if file is None:
            raise NotFound("file", path)
        named = None if file.package_id is None else await call.catalog.look(find_package_by_id, file.package_id)
        if not await call.may(Action.READ, call.repository, None if named is None else named.key):
            raise NotFound("file", path)
        return file

    async def _list(self, call: Call, file: File, *, digests: bool) -> _Listing:
        key = file.sha256, _name(file), digests
        return self._kept.get(key) or await self._flight.run(key, lambda: self._read_listing(call, file, key))

    async def _read_listing(self, call: Call, file: File, key: tuple[str, str, bool]) -> _Listing:
        listing = await self._read(call, file, partial(_listing, filename=key[1], digests=key[2]))
        size = sum(ENTRY_SIZE + len(each.name) + len(each.link) + len(each.sha256) for each in listing.entries)
        self._kept.put(key, listing, size)
        return listing

    async def _read(self, call: Call, file: File, look: Callable[[int | bytes], T]) -> T:
        shared = self._shared
        try:
            async with self._turns.hold(networks_of(call.request.client_address)):
                return await shared.files.inspect(shared.pools.cpu, file.storage_id, file, look)
        except QueueFull:
            raise Refusal(503, "too many archives are looked into at the same time; try again", "busy") from None


def _listing(content: int | bytes, filename: str, *, digests: bool) -> _Listing:
    found = list_archive(content, filename, digests=digests)
    return _Listing([ArchiveEntryRecord.from_attributes(each) for each in found.entries], found.complete)


def _name(file: File) -> str:
    return file.path.rpartition("/")[2]
