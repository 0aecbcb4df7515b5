"""
Takes files of a folder into a hosted repository.

The files of one version are published in one transaction, of very many some at a time. What was published before a
crash is found by the next run, which compares each file with the stored one of the same path and takes in what is
missing. Nothing that is stored is replaced.

The folder is walked one directory at a time, those below first. Left out are hidden names, and what build tools write
into their own local repositories for bookkeeping.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from functools import partial
from typing import Final, cast

from attrs import Factory, define, evolve, frozen
from twisted.internet.defer import Deferred, DeferredList, DeferredLock
from twisted.python.failure import Failure

from pkgrepo.errors import Conflict, FileBurned, FileExists, Invalid, PkgrepoError, StorageFailed, StorageFull, TooLarge
from pkgrepo.formats.maven.configuration import CHECKSUM_SIZE, PushRules
from pkgrepo.formats.maven.metadata.reading import LARGEST as METADATA_SIZE
from pkgrepo.formats.maven.metadata.reading import read_metadata
from pkgrepo.formats.maven.metadata.uploads import render_upload, store_metadata
from pkgrepo.formats.maven.paths import (
    ALGORITHMS,
    LONGEST_PATH,
    ArtifactFile,
    Checksum,
    Directory,
    FilePath,
    Metadata,
    media_type,
    parse_text,
)
from pkgrepo.formats.maven.push_rules import check_push_policy
from pkgrepo.formats.maven.upload.digest_fields import make_release, new_file, parse_checksum
from pkgrepo.formats.maven.upload.pom import Pom, read_pom_file
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import SYSTEM, BlobInfo, File, NewFile, Repository
from pkgrepo.repositories.publish.index import Indexer
from pkgrepo.repositories.publish.plain_files import put_plain_file
from pkgrepo.repositories.publish.publisher import Publisher
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.packages.tree import check_place
from pkgrepo.storage.pools import Pools
from pkgrepo.untrusted.text import quoted

# Maven's and Ivy's local repositories: where a file came from, failed downloads, metadata by repository.
_BOOKKEEPING: Final = re.compile(
    r"_remote\.repositories|_maven\.repositories|resolver-status\.properties|m2e-lastUpdated\.properties"
    r"|maven-metadata-.*\.(xml|properties)|.*\.(lastUpdated|part|lock|tmp)"
)


@define
class SourceDirectory:
    """
    The files of one directory: their places on the disk by what they are, and the checksums that lie beside them.

    ``sums`` are places by path of the file and algorithm. ``problems`` are sentences about what is left out because it
    is wrong, ``skipped`` the number of files that are left out otherwise.
    """

    path: str
    files: list[tuple[FilePath, str]] = Factory(list)
    sums: dict[tuple[str, str], str] = Factory(dict)
    problems: list[str] = Factory(list)
    skipped: int = 0


def open_source(place: str, *, follow_links: bool) -> int:
    """
    A descriptor of a regular file for reading; the caller closes it.

    :raises OSError: it cannot be read; :raises Invalid: it is no regular file any more
    """
    # Without O_NONBLOCK opening a FIFO would wait for its writer.
    descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if follow_links else os.O_NOFOLLOW))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Invalid("it is no regular file")
    return descriptor


def walk(
    root: str, path: str = "", *, follow_links: bool, above: tuple[tuple[int, int], ...] = ()
) -> Iterator[SourceDirectory]:
    """
    Iterate over all directories with their files, each after those below it. It blocks: call ``next`` in a thread.

    Symbolic links are problems unless ``follow_links``: then they count as what they lead to, except to directories
    around them: ``above`` has their devices and inodes.
    """
    found = SourceDirectory(path)
    folders: list[str] = []
    try:
        if len(path.encode("utf-8", "surrogateescape")) > LONGEST_PATH:
            raise Invalid("the path is too long")
        at = os.stat(f"{root}/{path}")
        mine = (at.st_dev, at.st_ino)
        if mine in above:
            raise Invalid("a symbolic link leads to a directory around it")
        with os.scandir(f"{root}/{path}") as entries:
            for entry in entries:
                _sort_in(entry, found, folders, follow_links)
    except (OSError, Invalid) as error:
        found.problems.append(_sentence(path, error))
        folders.clear()
    for name in sorted(folders):
        below = f"{path}/{name}" if path else name
        yield from walk(root, below, follow_links=follow_links, above=(*above, mine))
    # Metadata may be there under both names; POMs come first, since they describe what follows.
    found.files.sort(key=lambda each: (not each[0].path.endswith(".pom"), each[0].path, each[1]))
    yield found


def _sort_in(entry: os.DirEntry[str], found: SourceDirectory, folders: list[str], follow_links: bool) -> None:
    path = f"{found.path}/{entry.name}" if found.path else entry.name
    if entry.name.startswith("."):
        found.skipped += 1
        return
    try:
        if entry.is_symlink() and not follow_links:
            raise Invalid("symbolic links are not followed (--follow-links)")
        if entry.is_dir():
            folders.append(entry.name)
        elif entry.is_file():
            _add_file(entry, path, found)
        else:
            raise Invalid("it is neither a file nor a directory")
    except (OSError, Invalid) as error:
        found.problems.append(_sentence(path, error))


def _add_file(entry: os.DirEntry[str], path: str, found: SourceDirectory) -> None:
    stem, _, suffix = entry.name.rpartition(".")
    summed = bool(stem) and suffix in ALGORITHMS
    if _BOOKKEEPING.fullmatch(stem if summed else entry.name):
        found.skipped += 1
        return
    target = parse_text(path)
    if isinstance(target, Checksum):
        found.sums[target.of.path, target.algorithm] = entry.path
    elif not isinstance(target, Directory):
        found.files.append((target, entry.path))


def _sentence(path: str, error: OSError | Invalid) -> str:
    shown = path if path.isprintable() and path.isascii() else quoted(path)
    return f"{shown or 'the folder'}: {_reason(error)}"


def _reason(error: Exception) -> str:
    return str(error.strerror if isinstance(error, OSError) else error)


PIECE = 256 * 1024  # bytes of a file that are read at a time
AT_ONCE = 32  # files of a version in one transaction, which are open until then
WORKERS = 4  # directories at a time: while one is made durable, the others are read


@define
class ImportReport:
    """
    The numbers of files and versions that were taken in, and of files that were there already or are left out.

    ``size`` are the bytes of the files that were taken in; ``problems`` are those that were reported.
    """

    versions: int = 0
    files: int = 0
    plain_files: int = 0
    metadata: int = 0
    size: int = 0
    present: int = 0
    skipped: int = 0
    problems: int = 0


@frozen
class ImportTarget:
    """The hosted repository that files are taken into, and what that needs."""

    repository: Repository
    catalog: ICatalog
    publisher: Publisher
    pools: Pools
    indexer: Indexer


class Importer:
    """
    Takes in one folder.

    ``tell`` is called with a sentence about each file that is left out because something is wrong with it.
    """

    def __init__(
        self, target: ImportTarget, root: str, *, follow_links: bool, progress: Progress, tell: Callable[[str], None]
    ) -> None:
        self._target = target
        self._rules = PushRules.of(target.repository)
        self._root = root
        self._follow_links = follow_links
        self._progress = progress
        self._tell = tell
        self._report = ImportReport()
        self._reading = DeferredLock()
        self._failed = False

    async def run(self) -> ImportReport:
        """Take in everything that is not there yet. A problem with a file does not keep the others out."""
        directories = walk(self._root, follow_links=self._follow_links)
        self._progress.begin("files", 0)
        works = [Deferred.fromCoroutine(self._work(directories)) for _ in range(WORKERS)]
        for ended, result in await DeferredList(works, consumeErrors=True):
            if not ended:
                cast("Failure", result).raiseException()
        self._progress.end()
        return self._report

    async def _work(self, directories: Iterator[SourceDirectory]) -> None:
        try:
            await self._take_all(directories)
        except BaseException:
            self._failed = True  # such as a full disk
            raise

    async def _take_all(self, directories: Iterator[SourceDirectory]) -> None:
        while not self._failed and (directory := await self._next(directories)) is not None:
            for problem in directory.problems:
                self._refuse(problem)
            self._report.skipped += directory.skipped
            artifacts = [(file, place) for file, place in directory.files if isinstance(file, ArtifactFile)]
            fresh = False
            for start in range(0, len(artifacts), AT_ONCE):
                fresh |= await self._take_files(directory, artifacts[start : start + AT_ONCE])
            self._report.versions += fresh
            for target, place in directory.files:
                if not isinstance(target, ArtifactFile):
                    await self._take_other(directory, target, place)

    async def _next(self, directories: Iterator[SourceDirectory]) -> SourceDirectory | None:
        """The next directory; a generator cannot run in two threads at a time."""
        await self._reading.acquire()
        try:
            return await self._target.pools.disk(next, directories, None)
        finally:
            self._reading.release()

    async def _take_files(self, directory: SourceDirectory, some: Sequence[tuple[ArtifactFile, str]]) -> bool:
        """Take in files of one version. Returns whether any were not there yet."""
        async with self._target.publisher.stage(self._target.repository) as staged:
            taken: list[NewFile] = []
            pom: Pom | None = None
            for target, place in some:
                blob = await self._receive(directory, target, place, staged)
                if blob is None:
                    continue
                if target.extension == "pom" and not target.classifier:
                    pom = await self._read_pom(staged, target, blob) or pom
                taken.append(new_file(target, blob))
            return bool(taken) and await self._publish(some[0][0], taken, pom, staged)

    async def _publish(self, first: ArtifactFile, taken: Sequence[NewFile], pom: Pom | None, staged: Staged) -> bool:
        repository = self._target.repository

        def guard(tx: Transaction) -> None:
            for each in taken:
                if files.find_file(tx, repository.id, each.path) is None:
                    check_place(tx, repository.id, each.path)

        meta = None if pom is None else pom.meta()
        release = make_release(first.coordinates, taken, meta, reuse=True, kind="imported", guard=guard)
        try:
            published = await self._target.publisher.publish(repository, release, staged, SYSTEM, self._target.indexer)
        except (Conflict, FileExists, FileBurned, Invalid) as error:
            self._refuse(f"{first.coordinates.directory}: {error}", len(taken))
            return False
        self._count(taken)
        return published.changed

    async def _take_other(self, directory: SourceDirectory, target: FilePath, place: str) -> None:
        if isinstance(target, Metadata):
            await self._take_metadata(target, place)
            return
        publisher, repository = self._target.publisher, self._target.repository
        async with publisher.stage(repository) as staged:
            blob = await self._receive(directory, target, place, staged)
            if blob is None:
                return
            new = NewFile(path=target.path, blob=blob, media_type=media_type(target.path))
            put = partial(put_plain_file, kind="imported")
            try:
                await publisher.change_with_blobs(put, repository, staged, [blob], new, False, SYSTEM, None)
            except (Conflict, FileExists) as error:
                self._refuse(f"{target.path}: {error}", 1)
                return
            self._report.plain_files += 1
            self._count([new])

    async def _take_metadata(self, target: Metadata, place: str) -> None:
        """
        Take in what metadata say beside versions, which follow from the files: plugins, and elements of extensions.

        Their versions are not claimed: of those that are no more in the folder, clients would find nothing.
        """
        try:
            content = await self._target.pools.disk(self._read, place, METADATA_SIZE + 1)
            read = await self._target.pools.cpu(read_metadata, content)
            if not read.plugins and not read.others:
                self._report.skipped += 1
                self._progress.step()
                return
            said = render_upload(evolve(read, versions=(), latest="", release=""), read.plugins)
            async with self._target.publisher.stage(self._target.repository) as staged:
                blob = await staged.store(said, ALGORITHMS)
                await store_metadata(self._target, self._target.repository, target, staged, blob, SYSTEM)
        except (Invalid, TooLarge, Conflict, OSError) as error:
            self._refuse(f"{target.path}: {_reason(error)}")
        else:
            self._report.metadata += 1
            self._progress.step()

    async def _receive(self, source: SourceDirectory, target: FilePath, place: str, staged: Staged) -> BlobInfo | None:
        """A file as a staged blob; None if it is there already, or something is wrong with it."""
        try:
            check_push_policy(self._rules, target)
            expected = await self._target.pools.disk(self._read_sums, source, target.path)
            descriptor = await self._target.pools.disk(partial(open_source, place, follow_links=self._follow_links))
            try:
                if await self._is_present(target.path, descriptor):
                    return None
                size = os.fstat(descriptor).st_size
                pieces = self._pieces(descriptor)
                return await staged.receive(pieces, expect_size=size, algorithms=ALGORITHMS, expected=expected)
            finally:
                os.close(descriptor)
        except (StorageFull, StorageFailed):
            raise
        except (PkgrepoError, Refusal, OSError) as error:
            self._refuse(f"{target.path}: {_reason(error)}", 1)
        return None

    async def _is_present(self, path: str, descriptor: int) -> bool:
        """Whether the same file is stored. :raises FileExists: another one is"""
        stored: File | None = await self._target.catalog.look(files.find_file, self._target.repository.id, path)
        if stored is None:
            return False
        if os.fstat(descriptor).st_size == stored.size:
            with os.fdopen(os.dup(descriptor), "rb") as file:
                digest = await self._target.pools.disk(hashlib.file_digest, file, "sha256")
            if digest.hexdigest() == stored.sha256:
                self._report.present += 1
                self._progress.step()
                return True
        raise FileExists(path.rpartition("/")[2], stored.sha256)

    async def _pieces(self, descriptor: int) -> AsyncIterator[bytes]:
        at = 0
        while piece := await self._target.pools.disk(os.pread, descriptor, PIECE, at):
            at += len(piece)
            yield piece

    def _read(self, place: str, limit: int) -> bytes:
        with os.fdopen(open_source(place, follow_links=self._follow_links), "rb") as file:
            return file.read(limit)

    def _read_sums(self, directory: SourceDirectory, path: str) -> dict[str, str]:
        """The digests that lie beside a file. :raises Invalid: one is malformed"""
        places = {each: directory.sums[path, each] for each in ALGORITHMS if (path, each) in directory.sums}
        return {each: parse_checksum(self._read(place, CHECKSUM_SIZE), each) for each, place in places.items()}

    async def _read_pom(self, staged: Staged, target: ArtifactFile, blob: BlobInfo) -> Pom | None:
        """What a POM says. One that is malformed is taken in all the same: builds may have lived with it."""
        try:
            return await staged.inspect(self._target.pools.cpu, blob, read_pom_file)
        except Invalid as error:
            self._tell(f"{target.path}: {error}; it is taken in, and describes nothing")
            return None

    def _count(self, taken: Sequence[NewFile]) -> None:
        self._report.files += len(taken)
        self._report.size += sum(each.blob.size for each in taken)
        self._progress.step(len(taken))

    def _refuse(self, sentence: str, count: int = 1) -> None:
        self._report.problems += count
        self._progress.step(count)
        self._tell(sentence)
