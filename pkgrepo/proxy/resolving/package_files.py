"""The files of packages: kept in a repository, or listed by an upstream and still to be fetched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from attrs import evolve, frozen

from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import File, Repository, RepositoryType
from pkgrepo.proxy.documents.freshness import Documents
from pkgrepo.proxy.parts.values import Entry, FileSource
from pkgrepo.proxy.refusals import NameReserved
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.packages import files

from .release_age import TooYoung, find_age_rule
from .resolver import Resolver
from .serving import UpstreamMember


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
        clock: Clock,
    ) -> None:
        self._catalog = catalog
        self._resolver = resolver
        self._documents = documents
        self._clock = clock

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
                    self._check_reserved(repository, holder, key, trace)
                    published_ms = await self._catalog.look(_find_published, file)
                    self._check_age(repository, holder, key, path, published_ms, trace)
                trace.add(StepKind.FILE_KEPT, repository=holder.path, path=path)
                return file
        return None

    def _check_reserved(self, repository: Repository, proxy: Repository, key: str, trace: Trace) -> None:
        """Check that a kept file may be served, whose name may have been reserved later."""
        for owner, rules in self._resolver.leaf(repository, proxy).rules:
            pattern = rules.reserved_by(key)
            if pattern is not None:
                trace.add(StepKind.RESERVED, repository=proxy.path, pattern=pattern, rule=owner.path)
                raise NameReserved("package", key, pattern)

    def _check_age(
        self, repository: Repository, proxy: Repository, key: str, path: str, published_ms: int | None, trace: Trace
    ) -> None:
        rule = find_age_rule(self._resolver.leaf(repository, proxy), key)
        if rule is None:
            return
        try:
            rule.check(path.rsplit("/", 1)[-1], published_ms, self._clock.now_ms(), repository)
        except TooYoung as error:
            trace.add(StepKind.FILE_REFUSED, repository=proxy.path, rule=rule.repository, path=path, why=str(error))
            raise

    async def _find_remote(
        self, repository: Repository, member: UpstreamMember, key: str, path: str, trace: Trace
    ) -> RemoteFile | None:
        proxy = member.repository
        found = await self._find_source(member, path)
        if found is None:
            # It may be of a version that is younger than the answer: a lock file can be ahead of it.
            held = await self._documents.get(proxy, member.request, trace, revalidate=True)
            if not held.is_of(member.held):
                member = evolve(member, held=held)
                found = await self._find_source(member, path)
        if found is None:
            trace.add(StepKind.FILE_UNLISTED, repository=proxy.path, path=path)
            return None
        entry, source = found
        self._check_age(repository, proxy, key, path, entry.published_ms, trace)
        route = member.held.document.route
        trace.add(StepKind.FILE_LISTED, repository=proxy.path, route=route, path=path)
        return RemoteFile(proxy, key, route, source, entry)

    async def _find_source(self, member: UpstreamMember, path: str) -> tuple[Entry, FileSource] | None:
        return await self._resolver.read(member, lambda parts: parts.find_path(path))


def _find_published(reader: Reader, file: File) -> int | None:
    """When the upstream published a kept file; of a companion that was found in another file, when that was."""
    found: File | None = file
    if file.origin is None and file.role is not None:
        found = files.find_file(reader, file.repository_id, file.path.removesuffix(file.role))
    return None if found is None or found.origin is None else found.origin.published_ms


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
