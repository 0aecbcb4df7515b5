"""The files of packages: kept in a repository, or listed by an upstream and still to be fetched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from attrs import frozen

from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.interfaces import ICatalog, IProxiedFormat, Reader
from pkgrepo.model import File, Repository, RepositoryType
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.pools import Pools

from .documents import Documents
from .held import Held
from .parts.values import Entry, FileSource
from .resolver import Resolver, UpstreamMember
from .trace import Trace


@frozen(eq=False)
class RemoteFile:
    """A file that an upstream lists and that is not kept yet, in the proxy that serves it."""

    repository: Repository
    key: str
    route: str
    source: FileSource
    entry: Entry


@frozen(eq=False)
class FoundFile:
    """
    A file, kept or still to be fetched.

    ``fresh`` is a query that tells whether this is still the file at its path; None if that is not to be cached. The
    answer is also to be asked for again at ``ends_s`` (Unix seconds; 0 for never).
    """

    file: File | RemoteFile
    fresh: Callable[[Reader], bool] | None = None
    ends_s: int = 0


class PackageFiles:
    """Finds the files of packages in repositories of any type."""

    def __init__(
        self,
        *,
        catalog: ICatalog,
        resolver: Resolver,
        documents: Documents,
        pools: Pools,
        clock: Clock,
        formats: Mapping[str, IProxiedFormat],
    ) -> None:
        self._catalog = catalog
        self._resolver = resolver
        self._documents = documents
        self._pools = pools
        self._clock = clock
        self._formats = formats

    async def find(self, repository: Repository, key: str, path: str, trace: Trace | None = None) -> FoundFile:
        """
        The file of a package at a path.

        A kept file is served also if its upstream fails or does not list it any more.

        :raises NotFound: there is no such file; :raises UpstreamFailed, RepositoryInactive: see L{Resolver.state}
        :raises TooYoung: a rule refuses it until later
        """
        trace = trace or Trace()
        if repository.type is not RepositoryType.VIRTUAL:
            kept = await self._find_kept(repository, [repository], key, path, trace)
            if kept is not None:
                return FoundFile(kept, same_file(kept))
            if repository.type is RepositoryType.HOSTED:
                raise _no_file(path)
        try:
            members = await self._resolver.members(repository, key, trace)
        except (NotFound, UpstreamFailed):
            active = [each for each in self._resolver.leaves(repository) if each.active]
            kept = await self._find_kept(repository, active, key, path, trace)
            if kept is None:
                raise
            return FoundFile(kept)
        for member in members.serving:
            kept = await self._find_kept(repository, [member.repository], key, path, trace)
            if kept is not None:
                return FoundFile(kept, same_file(kept, partial(members.fresh, key=key)), members.expires_s)
            if isinstance(member, UpstreamMember):
                remote = await self._find_remote(repository, member, key, path, trace)
                if remote is not None:
                    return FoundFile(remote)
        raise _no_file(path)

    async def _find_kept(
        self, repository: Repository, holders: Sequence[Repository], key: str, path: str, trace: Trace
    ) -> File | None:
        for holder in holders:
            file: File | None = await self._catalog.look(files.find_file, holder.id, path)
            if file is not None:
                if holder.type is RepositoryType.PROXY:
                    origin = file.origin
                    published_ms = None if origin is None else origin.published_ms
                    self._check_age(repository, holder, key, path, published_ms)
                trace.add("kept", repository=holder.path, path=path)
                return file
        return None

    def _check_age(
        self, repository: Repository, proxy: Repository, key: str, path: str, published_ms: int | None
    ) -> None:
        rule = self._resolver.age_rule(repository, proxy, key)
        if rule is not None:
            rule.check(path.rsplit("/", 1)[-1], published_ms, self._clock.now_ms())

    async def _find_remote(
        self, repository: Repository, member: UpstreamMember, key: str, path: str, trace: Trace
    ) -> RemoteFile | None:
        found = await self._find_source(member.repository, key, path, member.held)
        if found is None:
            # It may be of a version that is younger than the answer: a lock file can be ahead of it.
            request = self._formats[repository.format].document_request(key)
            held = await self._documents.get(member.repository, request, trace, revalidate=True)
            if held.document.fetched_ms != member.held.document.fetched_ms:
                found = await self._find_source(member.repository, key, path, held)
        if found is None:
            trace.add("does not list the file", repository=member.repository.path, path=path)
            return None
        entry, source = found
        self._check_age(repository, member.repository, key, path, entry.published_ms)
        trace.add("lists the file", repository=member.repository.path, route=member.held.document.route, path=path)
        return RemoteFile(member.repository, key, member.held.document.route, source, entry)

    async def _find_source(self, proxy: Repository, key: str, path: str, held: Held) -> tuple[Entry, FileSource] | None:
        with await self._resolver.open(proxy, key, held) as parts:
            return await self._pools.cpu(parts.find_path, path)


def same_file(file: File, condition: Callable[[Reader], bool] | None = None) -> Callable[[Reader], bool]:
    """A query that tells whether a file is still the one at its path, and a condition is met."""

    def same(reader: Reader) -> bool:
        now = files.find_file(reader, file.repository_id, file.path)
        if now is None or (now.sha256, now.locator) != (file.sha256, file.locator):
            return False
        return condition is None or condition(reader)

    return same


def _no_file(path: str) -> NotFound:
    return NotFound("file", path.rsplit("/", 1)[-1])
