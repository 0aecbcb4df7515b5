"""
Files that are found by their paths, in repositories of any type: which of the members are asked, and in which order.

=========  =========================================================================================================
type       files
=========  =========================================================================================================
Hosted     those of the catalog
Proxy      what is kept, else what its routes have
Virtual    those of the members that own the name or may be asked for it, see L{pkgrepo.proxy.resolving.owners}: the
           first that has the file. A file that belongs to no package is the first one at its path.
=========  =========================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import takewhile

from attrs import define, evolve, frozen

from pkgrepo.errors import NotFound, PkgrepoError
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import File, Repository, RepositoryType
from pkgrepo.proxy.addressed.files import AddressedFiles
from pkgrepo.proxy.addressed.mutable import MutableFiles
from pkgrepo.proxy.addressed.request import FileRequest
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.proxy.parts.values import Entry, FileSource
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.resolving.owners import Owners
from pkgrepo.proxy.resolving.rules import FileRules
from pkgrepo.proxy.resolving.serving import FoundFile, Want, same_file
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.proxy.transfers.arriving import ArrivingBody
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.repositories.policy.refusals import RuleRefused
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.packages import files
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

from .resolver import Resolver

_Query = Callable[[Reader], bool]


@define(eq=False, kw_only=True)
class AddressedMembers:
    """Finds files by their paths; ``files`` are those that never change, ``mutable`` the others."""

    _catalog: ICatalog
    _resolver: Resolver
    _rules: FileRules
    files: AddressedFiles
    _mutable: MutableFiles

    async def find(self, repository: Repository, request: FileRequest, trace: Trace, want: Want) -> FoundFile:
        """
        The file at a path; what arrives of it with it, unless only its ``HEAD`` is wanted.

        :raises NotFound: there is no such file; :raises UpstreamFailed: that is not known, since an upstream failed
        :raises RuleRefused: a rule refuses it; :raises RepositoryInactive: see L{Resolver.state}
        """
        owners = await self._resolver.owners(repository, request.package_key, trace)
        owners.check_active()  # a retired name may have files beside its versions: that is asked after these
        places = _Places(owners)
        for each in places.hosted:
            kept: File | None = await self._catalog.look(files.find_file, each.id, request.path)
            if kept is not None:
                flat = self._resolver.flat_member(repository, each)
                await self._rules.check_kept(repository, flat, request.package_key, request.path, kept, trace)
                trace.add(StepKind.FILE_KEPT, repository=each.path, path=request.path)
                same = same_file(kept, partial(places.unchanged, request, each))
                return FoundFile(kept, same, mutable=not request.lasting)
        owners.check()
        if request.only_hosted or not owners.asks_proxies or (request.of_one_route and not places.is_alone()):
            raise NotFound("file", request.path)
        return await self._find_upstream(_Search(repository, request, trace, want), places)

    async def check_kept(
        self, repository: Repository, flat: FlatMember, request: FileRequest, kept: File, trace: Trace
    ) -> None:
        """
        Check a file that a proxy keeps as one that is asked for.

        :raises RuleRefused: a rule refuses it; :raises NotFound, UpstreamFailed: see L{FileRules}
        """
        search = _Search(repository, request, trace, Want.HEAD)
        if not request.lasting:
            await self._rules.check_kept(repository, flat, request.package_key, request.path, kept, trace)
            return
        judge = await self._rules.judge_of(flat, request)
        try:
            judge = await self._rules.described(judge, request)
            await self._kept(search, flat, judge, kept)
        except RuleRefused:
            await self._rules.note_undescribed(judge, request)
            raise

    async def _with_version(self, proxies: Sequence[FlatMember], request: FileRequest) -> Sequence[FlatMember]:
        """The proxies to ask: the one that has served the version, or all."""
        for each in proxies if len(proxies) > 1 else ():
            if await self.files.has_version(each.repository, request):
                return [each]
        return proxies

    async def _find_upstream(self, search: _Search, places: _Places) -> FoundFile:
        request, owners = search.request, places.owners
        members = await self._with_version(owners.asked(), request)

        async def read(number: int, _: bool) -> FoundFile:
            flat = members[number]
            found = await self._find_in(search, flat)
            if flat.repository.id == search.repository.id:
                return found  # no other repository decides; a change of its configuration ends all its responses
            return _while(partial(places.unchanged, request, flat.repository), found)

        async def is_kept(proxy: Repository) -> bool:
            find = self.files.find_kept if request.lasting else self._mutable.find_kept
            return await find(proxy, request) is not None

        return await owners.first(members, read, is_kept, NotFound("file", request.path))

    async def _find_in(self, search: _Search, flat: FlatMember) -> FoundFile:
        """The file in one proxy."""
        if not search.request.lasting:
            return await self._find_mutable(search, flat)
        judge = await self._rules.judge_of(flat, search.request)
        try:
            judge = await self._rules.described(judge, search.request)
            return await self._find_lasting(search, flat, judge)
        except RuleRefused:
            await self._rules.note_undescribed(judge, search.request)
            raise
        except NotFound:
            former = await self.files.find_former(flat.repository, search.request)
            if former is None:
                raise
            return await self._kept(search, flat, judge, former)

    async def _kept(
        self, search: _Search, flat: FlatMember, judge: Judge | None, kept: File, fresh: _Query | None = None
    ) -> FoundFile:
        key, path, version = search.request.package_key, search.request.path, search.request.version_text
        await self._rules.check_kept(
            search.repository, flat, key, path, kept, search.trace, version=version, judge=judge
        )
        search.trace.add(StepKind.FILE_KEPT, repository=flat.repository.path, path=path)
        return FoundFile(kept, fresh)

    async def _find_lasting(self, search: _Search, flat: FlatMember, judge: Judge | None) -> FoundFile:
        proxy, request, trace, want = flat.repository, search.request, search.trace, search.want
        kept = await self.files.find_kept(proxy, request)
        if kept is None and judge is not None and judge.rules.algorithms:  # these are to be verified
            verified = await self.files.fetch_digests(proxy, request, trace)
            if isinstance(verified, File):
                kept = verified
            elif judge.rules.algorithms - verified.source.digests.keys():  # these are read of what is kept
                kept = await self.files.keep(proxy, request)
            else:
                await self._check(search, flat, verified, judge)
        if kept is None and want is Want.HEAD:
            remote = await self.files.look(proxy, request, trace)
            await self._check(search, flat, remote, judge)
            if remote.source.size is not None:
                return FoundFile(remote)
        if kept is None and want is Want.DIGESTS:
            found = await self.files.fetch_digests(proxy, request, trace)
            if isinstance(found, RemoteFile):
                await self._check(search, flat, found, judge)
                return FoundFile(found)
            kept = found
        if kept is None:
            arriving, content = await self.files.fetch(proxy, request, trace)
            if not isinstance(content, File):
                assert arriving is not None, "only a kept file has none"
                await self._check_arriving(search, flat, arriving, content, judge)
                return FoundFile(arriving, content=content)
            kept = content
        return await self._kept(search, flat, judge, kept, same_file(kept))

    async def _find_mutable(self, search: _Search, flat: FlatMember) -> FoundFile:
        proxy, request, trace, want = flat.repository, search.request, search.trace, search.want
        kept = await self._mutable.find_kept(proxy, request)
        if kept is None and want is Want.HEAD:
            remote = await self.files.look(proxy, request, trace)
            await self._check(search, flat, remote)
            if remote.source.size is not None:
                return FoundFile(remote, mutable=True)
        found = await self._mutable.fetch(proxy, request, trace, recorded=want is not Want.BYTES)
        if not isinstance(found.content, File):
            arriving, content = found.content
            await self._check_arriving(search, flat, arriving, content)
            return FoundFile(arriving, mutable=True, content=content)
        assert found.row is not None, "it is kept with its row"
        await self._check_mutable(search, flat, found.content, found.row)
        trace.add(StepKind.FILE_KEPT, repository=proxy.path, path=request.path)
        same = partial(_is_of, found.row, proxy.id)
        return FoundFile(found.content, same, found.ends_s, mutable=True, stale=found.stale)

    async def _check(self, search: _Search, flat: FlatMember, remote: RemoteFile, judge: Judge | None = None) -> None:
        asked, key, lasting = search.repository, search.request.package_key, search.request.lasting
        await self._rules.check_listed(asked, flat, key, remote, search.trace, lasting=lasting, judge=judge)

    async def _check_mutable(self, search: _Search, flat: FlatMember, file: File, row: UpstreamDocument) -> None:
        request = search.request
        digests = {**file.digests, "sha256": file.sha256}
        source = FileSource(request.path, "", file.size, digests, file.media_type, {})
        published_ms: int | None = row.meta.get("published_ms")
        entry = Entry(request.sort, request.version_key, request.version_text, published_ms, False, {}, [])
        remote = RemoteFile(flat.repository, request.package_key, row.route, source, entry)
        await self._check(search, flat, remote)

    async def _check_arriving(
        self,
        search: _Search,
        flat: FlatMember,
        remote: RemoteFile,
        content: ArrivingBody | bytes,
        judge: Judge | None = None,
    ) -> None:
        try:
            await self._check(search, flat, remote, judge)
        except PkgrepoError:
            if isinstance(content, ArrivingBody):
                content.close()
            raise


@frozen(eq=False)
class _Search:
    """What is searched for, on behalf of which repository, and the steps so far."""

    repository: Repository
    request: FileRequest
    trace: Trace
    want: Want


@frozen(eq=False)
class _Places:
    """Where a file may be, and until when that is so."""

    owners: Owners

    @property
    def hosted(self) -> list[Repository]:
        """The hosted repositories that are active, in order."""
        return [each.repository for each in self.owners.hosted if each.repository.active]

    def is_alone(self) -> bool:
        """Whether there is one route only."""
        active = [each.repository for each in self.owners.proxies if each.repository.active]
        return not self.hosted and sum(len(proxy_config_of(each).routes) for each in active) == 1

    def unchanged(self, request: FileRequest, holder: Repository, reader: Reader) -> bool:
        """Whether the file is still that of the same repository."""
        before = self.hosted
        if holder.type is RepositoryType.HOSTED:
            if repositories.config_serial(reader) != self.owners.config_serial:
                return False
            before = [*takewhile(lambda each: each.id != holder.id, before)]
        elif not self.owners.unchanged(reader):
            return False
        elif request.package_key and not self.owners.merges:
            return True
        return all(files.find_file(reader, each.id, request.path) is None for each in before)


def _while(condition: Callable[[Reader], bool], found: FoundFile) -> FoundFile:
    """The file, which is cached only while a condition is met."""
    fresh = found.fresh
    return found if fresh is None else evolve(found, fresh=lambda reader: fresh(reader) and condition(reader))


def _is_of(row: UpstreamDocument, repository_id: int, reader: Reader) -> bool:
    """Whether a kept file that may change is still the present one."""
    return upstream_documents.fetched_at(reader, repository_id, row.key) == row.fetched_ms
