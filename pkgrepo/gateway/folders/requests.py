"""
Answers GET and HEAD of folders: a page with the entries, or an archive of all that is below.

=======================  ===========================================================================================
entry                    is left out
=======================  ===========================================================================================
the folder of a version  where rules hide the version, or other members serve its package; one that upstreams list
                         is there without files, too
a file of a package      where rules hide it, or other members serve its package
a file of none           never
=======================  ===========================================================================================

An archive has what clients get that ask for each file: rules may refuse one by what is only read then.

The folder of a version that rules hide in every member is refused. Where all below the folder of a package belongs to
that, one of which nothing is shown does not exist.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence, Set
from functools import partial
from typing import Final, TypeVar

from attrs import evolve, field, frozen

from pkgrepo.concurrency.fair_semaphore import QueueFull
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.gateway.folders.archives import KINDS, MOST_ZIPPED, answer_archive
from pkgrepo.gateway.folders.levels import Folder, FolderFormat, Level, Meaning, Member, entries_of, list_level, look
from pkgrepo.gateway.folders.pages import Cursor, Entry, ListingTurns, answer_directory, busy
from pkgrepo.gateway.services import Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Identity, Repository, RepositoryType
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.repositories.policy.refusals import RuleRefused, refusal
from pkgrepo.repositories.policy.rules import Verdict
from pkgrepo.storage.catalog.packages import packages, versions
from pkgrepo.storage.catalog.packages.summaries import package_and_version_of_file
from pkgrepo.storage.catalog.packages.tree import count_below, file_or_folder

T = TypeVar("T")
ARCHIVE: Final = b"archive"  # the parameter of a query with the kind of an archive
PAGE: Final = 250  # entries that are read at once for an archive
MOST_KNOWN: Final = 100  # packages whose hidden files are kept while an archive is made

Hidden = tuple[Mapping[str, Verdict], Mapping[str, Verdict]]  # versions by text, and files by path
NOTHING: Final[Hidden] = ({}, {})


@frozen(kw_only=True, eq=False)
class Folders:
    """The folders of a repository."""

    services: Services
    repository: Repository
    format: FolderFormat
    _known: dict[tuple[int, str], Hidden] = field(factory=dict, init=False)

    def members(self) -> Mapping[int, Repository]:
        """The repository alone, or those with packages of their own behind a virtual one, by id."""
        if self.repository.type is not RepositoryType.VIRTUAL:
            return {self.repository.live.id: self.repository.live}
        found = self.services.proxy.resolver.flat_members(self.repository)
        return {each.id: each for each in found if each.active}

    async def is_folder(self, path: str) -> bool:
        """Whether there is anything below a path."""
        found: bool = await self.services.catalog.scan(_is_folder, [*self.members()], path)
        return found

    async def answer(self, request: Request, path: str, identity: Identity, turns: ListingTurns) -> Response:
        """
        The page of a folder, or with ``?archive=`` an archive of what is kept below it, for a caller who may read it.

        :raises NotFound: there is none; :raises Invalid: there is no such kind of archive; :raises UpstreamFailed: it
            is not known which versions of a package there are; :raises Refusal: too many are asked for at a time
        """
        try:
            async with turns.whole.hold():
                folder = await self.find(path)
        except QueueFull:
            raise busy() from None
        if folder is None:
            raise NotFound("folder", path)
        kind = request.parameter(ARCHIVE)
        if not kind:
            return await answer_directory(request, self.repository, path, partial(self.read, folder), turns)
        if kind not in KINDS:
            raise Invalid(f"an archive is one of {', '.join(KINDS)}", "archive")
        if kind == "zip" and await self.services.catalog.scan(_count, folder) > MOST_ZIPPED:
            raise Invalid(f"a zip file has at most {MOST_ZIPPED} files here; take tar.gz", "archive")
        services, client, cut = self.services, request.client_address, len(path) + bool(path)

        async def walk() -> AsyncIterator[tuple[str, File]]:
            async for file in self._walk(folder, turns):
                yield file.path[cut:], file
                services.downloads.record(file, identity, client)

        return answer_archive(services.files, services.pools.cpu, kind, walk, turns.archives, client)

    async def find(self, path: str, *, with_listed: bool = True) -> Folder | None:
        """
        The folder at a path; None if no member has it, or nothing of its package is shown.

        :raises RuleRefused: it is that of a version, and rules hide that in every member
        """
        members, meaning = self.members(), self.format.meaning(self.repository, path)
        key, (package, text) = meaning.package, meaning.files_of or (None, None)
        listed: Sequence[str] = ()
        if key is not None and with_listed:
            listed = await self.format.listed(self.services, self.repository, key)
        serving = {each: await self._serving(each) for each in {key, package} if each is not None}
        every = [
            Member(each, key is None or each in serving[key], package is None or each in serving[package])
            for each in members
        ]
        found: Folder | None = await self.services.catalog.scan(look, self.format, path, meaning, every, listed)
        if found is None or not serving:
            return found
        shown: list[Member] = []
        refused: RuleRefused | None = None
        for each in found.members:
            member = members[each.repository_id]
            hidden_versions, _ = await self._hidden(member, key)
            of_package, hidden_files = await self._hidden(member, package)
            if text is not None and text in of_package:
                refused = refusal(f"{package} {text}", of_package[text], self.repository, member)
            else:
                shown.append(evolve(each, hidden_folders=hidden_versions.keys(), hidden_files=hidden_files.keys()))
        if refused is not None and not shown:
            raise refused
        found = evolve(found, members=shown)
        if key is None or listed or not self.format.whole or not any(each.hidden_folders for each in shown):
            return found
        return found if await self.services.catalog.scan(_has_shown, found, key) else None

    async def read(
        self, folder: Folder, cursor: Cursor, size: int, render: Callable[[Sequence[Entry]], T]
    ) -> tuple[T, Cursor | None]:
        """The entries after a position, of up to ``size`` folders or files, rendered, and the next position."""
        level = await self._read_level(folder, cursor, size)
        return await self.services.pools.cpu(_render, self.format, folder, level, render), level.following

    async def _read_level(self, folder: Folder, cursor: Cursor, size: int) -> Level:
        level: Level = await self.services.catalog.scan(list_level, self.format, folder, cursor, size)
        if folder.meaning.files_of is not None or not level.files:
            return level
        with_packages = await self._with_packages(folder, level.files)
        members, found = self.members(), list[tuple[File, Judge | None]]()
        serving = {key: await self._serving(key) for key in {key for _, key in with_packages} if key is not None}
        for file, key in with_packages:
            if key is None:
                found.append((file, None))
            elif file.repository_id in serving[key]:
                found.append((file, await self._judge(members[file.repository_id], key)))
        return evolve(level, files=await self.services.catalog.scan(_shown, found))

    async def _walk(self, folder: Folder, turns: ListingTurns) -> AsyncIterator[File]:
        """All files that are kept below a folder."""
        cursor: Cursor | None = Cursor()
        while cursor is not None:
            async with turns.pages.hold():
                level = await self._read_level(evolve(folder, listed=()), cursor, PAGE)
            cursor = level.following
            for file, key in await self._with_packages(folder, level.files):
                if await self._is_served(file, key):
                    yield file
            for name in level.folders:
                inner = await self._inner(folder, f"{folder.path}/{name}" if folder.path else name)
                if inner is not None:
                    async for each in self._walk(inner, turns):
                        yield each

    async def _with_packages(self, folder: Folder, listed: Sequence[File]) -> Sequence[tuple[File, str | None]]:
        """Files of a folder with the keys of their packages; None for a file of none."""
        if folder.meaning.files_of is not None:
            return [(each, folder.meaning.files_of[0]) for each in listed]
        keys: Sequence[str | None] = await self.services.catalog.scan(_packages_of, listed)
        return [*zip(listed, keys, strict=True)]

    async def _is_served(self, file: File, key: str | None) -> bool:
        """
        Whether a client gets a kept file that asks for it: a list shows also what rules refuse by what is not read yet.

        :raises UpstreamFailed, StorageFull, StorageFailed: that is not known
        """
        holder = self.members()[file.repository_id]
        try:
            await self.services.proxy.package_files.check_kept(self.repository, holder, key or "", file)
        except (RuleRefused, NotFound):
            return False
        return True

    async def _inner(self, folder: Folder, path: str) -> Folder | None:
        """A folder in another one; None for the archive without it, if rules hide all of it."""
        if self.format.whole and folder.meaning.files_of is not None:
            members = [evolve(each, hidden_folders=frozenset()) for each in folder.members]
            return Folder(path, Meaning(files_of=folder.meaning.files_of), members)
        try:
            return await self.find(path, with_listed=False)
        except RuleRefused:
            return None

    async def _serving(self, key: str) -> Set[int]:
        """The ids of the members whose files of a package (a key) are served, as of those that have any."""
        if self.repository.type is not RepositoryType.VIRTUAL:
            return {*self.members()}
        owners = await self.services.proxy.resolver.owners(self.repository, key, Trace())
        asks = owners.merges or not owners.is_taken
        proxies = [each for each in owners.proxies if owners.may_ask(each)] if asks else []
        return {each.repository.id for each in (*owners.hosted, *proxies)}

    async def _judge(self, member: Repository, key: str) -> Judge | None:
        flat = self.services.proxy.resolver.flat_member(self.repository, member)
        return await self.services.proxy.judges.of(flat, key)

    async def _hidden(self, member: Repository, key: str | None) -> Hidden:
        """What rules hide of a package (a key) that a member has."""
        if key is None:
            return NOTHING
        if (member.id, key) not in self._known:
            judge = await self._judge(member, key)
            found = NOTHING if judge is None else await self.services.catalog.scan(_find_hidden, judge, member.id, key)
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[member.id, key] = found
        return self._known[member.id, key]


def _render(format_: FolderFormat, folder: Folder, level: Level, render: Callable[[Sequence[Entry]], T]) -> T:
    return render(entries_of(format_, folder, level))


def _is_folder(r: Reader, ids: Sequence[int], path: str) -> bool:
    return any(file_or_folder(r, each, path) is True for each in ids)


def _count(r: Reader, folder: Folder) -> int:
    return sum(count_below(r, each.repository_id, folder.path, MOST_ZIPPED + 1) for each in folder.members)


def _find_hidden(r: Reader, judge: Judge, repository_id: int, key: str) -> Hidden:
    package = packages.find_package(r, repository_id, key)
    return NOTHING if package is None else judge.hidden_files(r, package.id)


def _has_shown(r: Reader, folder: Folder, key: str) -> bool:
    """Whether a member has a version of a package that is not hidden in it."""
    for each in folder.members:
        package = packages.find_package(r, each.repository_id, key)
        found = () if package is None else versions.sorted_texts(r, package.id)
        if any(text not in each.hidden_folders for _, text in found):
            return True
    return False


def _packages_of(r: Reader, files: Sequence[File]) -> list[str | None]:
    found = [package_and_version_of_file(r, each.id) for each in files]
    return [None if each is None else each[0] for each in found]


def _shown(r: Reader, found: Sequence[tuple[File, Judge | None]]) -> list[File]:
    return [file for file, judge in found if judge is None or judge.of_kept(r, file).served]
