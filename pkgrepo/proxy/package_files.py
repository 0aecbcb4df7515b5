"""The files of packages: kept in a repository, or listed by an upstream and still to be fetched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.interfaces import ICatalog, IProxiedFormat
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

    async def find(self, repository: Repository, key: str, path: str, trace: Trace | None = None) -> File | RemoteFile:
        """
        The file of a package at a path, kept or still to be fetched.

        A kept file is served also if its upstream fails or does not list it any more.

        :raises NotFound: there is no such file; :raises UpstreamFailed, RepositoryInactive: see ``state``
        :raises TooYoung: a rule refuses it until later
        """
        trace = trace or Trace()
        if repository.type is not RepositoryType.VIRTUAL:
            kept = await self._find_kept(repository, [repository], key, path, trace)
            if kept is not None:
                return kept
            if repository.type is RepositoryType.HOSTED:
                raise _no_file(path)
        try:
            members = await self._resolver.members(repository, key, trace)
        except (NotFound, UpstreamFailed):
            active = [each for each in self._resolver.leaves(repository) if each.active]
            kept = await self._find_kept(repository, active, key, path, trace)
            if kept is None:
                raise
            return kept
        for member in members.serving:
            found: File | RemoteFile | None = await self._find_kept(repository, [member.repository], key, path, trace)
            if found is None and isinstance(member, UpstreamMember):
                found = await self._find_remote(repository, member, key, path, trace)
            if found is not None:
                return found
        raise _no_file(path)

    async def _find_kept(
        self, repository: Repository, holders: Sequence[Repository], key: str, path: str, trace: Trace
    ) -> File | None:
        for holder in holders:
            file: File | None = await self._catalog.look(files.find_file, holder.id, path)
            if file is not None:
                if holder.type is RepositoryType.PROXY:
                    published_ms = file.attrs.get("upstream", {}).get("published_ms")
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


def _no_file(path: str) -> NotFound:
    return NotFound("file", path.rsplit("/", 1)[-1])
