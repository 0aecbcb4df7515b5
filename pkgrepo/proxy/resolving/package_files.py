"""The files of packages: kept in a repository, or listed by an upstream and still to be fetched."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from attrs import define, evolve

from pkgrepo.errors import NotFound, UpstreamDenied, UpstreamFailed
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import File, Repository, RepositoryType
from pkgrepo.proxy.caching.documents import Documents
from pkgrepo.proxy.caching.questions import DocumentRequest, Held
from pkgrepo.proxy.caching.states import FAILURES
from pkgrepo.proxy.configuration import rules_of
from pkgrepo.proxy.fetching import Fetching
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.parts.values import Entry, FileSource
from pkgrepo.proxy.remote_files import RemoteFile, is_former
from pkgrepo.proxy.resolving.rules import FileRules
from pkgrepo.proxy.resolving.serving import FoundFile, Want, same_file
from pkgrepo.proxy.trace import NameRetired, StepKind, Trace
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.packages import files

from .addressed_files import AddressedMembers
from .resolver import Resolver
from .serving import UpstreamMember
from .upstream_members import requests_of

LOST: Final = (NotFound, *FAILURES)  # when a response is read that was lost here, and cannot be had again


@define(eq=False, kw_only=True)
class PackageFiles:
    """Finds the files of packages in repositories of any type."""

    _catalog: ICatalog
    _resolver: Resolver
    _documents: Documents
    _rules: FileRules
    _addressed: AddressedMembers
    _formats: Mapping[str, Proxied]
    _on_forget: Callable[[Repository], None] = lambda _: None

    async def find(
        self,
        repository: Repository,
        key: str,
        path: str,
        trace: Trace | None = None,
        *,
        want: Want = Want.HEAD,
    ) -> FoundFile:
        """
        The file of a package at a path. An empty key is that of a file that belongs to none.

        A kept file is served also if its upstream fails, and with ``policy.keep_removed`` if that does not list it any
        more. If the document that clients have says that it is another one by now, that one is found.

        :raises NotFound: there is no such file; :raises UpstreamFailed, RepositoryInactive: see L{Resolver.state}
        :raises RuleRefused: a rule refuses it
        """
        trace = trace or Trace()
        file_request = self._formats[repository.format].file_request
        if repository.type is not RepositoryType.HOSTED and file_request is not None:
            found = await self._addressed.find(repository, file_request(key, path), trace, want)
        else:
            found = await self._find_listed(repository, key, path, trace)
        # each request is counted of what a rule warns of
        return evolve(found, fresh=None) if trace.counted else found

    async def check_kept(self, repository: Repository, holder: Repository, key: str, file: File) -> None:
        """
        Check a file that a member (``holder``) keeps, and that goes to somebody without a request for its path.

        It is what a request would be answered with, as far as that is kept. Rules are asked as for one: what they ask
        for and is not known is read first.

        :raises RuleRefused: a rule refuses it; :raises NotFound: a request would not find it either
        :raises UpstreamFailed, StorageFull, StorageFailed: see L{FileRules}
        """
        trace, flat = Trace(), self._resolver.flat_member(repository, holder)
        if await self._judged_with(repository, holder, file):
            raise _no_file(file.path)  # what it belongs to only documents of the upstream tell
        file_request = self._formats[repository.format].file_request
        if holder.type is RepositoryType.HOSTED or file_request is None:
            await self._rules.check_kept(repository, flat, key, file.path, file, trace)
        else:
            await self._addressed.check_kept(repository, flat, file_request(key, file.path), file, trace)

    async def keep_addressed(self, repository: Repository, key: str, path: str) -> File:
        """A file that is found by its path, when it is kept. It raises what L{AddressedFiles.keep} raises."""
        request = self._formats[repository.format].file_request
        assert request is not None, "files of this format are listed"
        return await self._addressed.files.keep(repository, request(key, path))

    def forget(self, repository: Repository) -> None:
        """Forget what is only in the memory of processes about the files of a proxy; what is kept stays."""
        self.forget_here(repository)
        self._on_forget(repository)

    def forget_here(self, repository: Repository) -> None:
        """Forget it in this process."""
        self._addressed.files.forget(repository)

    async def doubt(self, remote: RemoteFile) -> None:
        """Have the document asked for again that lists a file: the upstream has another file there by now."""
        for request in self._requests(remote.repository, remote.key, remote.source.path):
            await self._documents.expire(remote.repository, request, remote.checked_ms)

    async def lack(self, remote: RemoteFile) -> None:
        """Have a file listed no more that cannot be had, until its document lists another one at its path."""
        if remote.checked_ms:
            for request in self._requests(remote.repository, remote.key, remote.source.path):
                await self._documents.lack(remote.repository, request, {remote.source.path: remote.identity})

    async def judge_of(self, member: UpstreamMember, judge: Judge, entry: Entry) -> Judge:
        """
        The judge of a member, with what its rules ask of a file that is listed, short of the digests of all of it.

        :raises NotFound, UpstreamFailed, StorageFull, StorageFailed: see L{FileRules}
        """
        if not entry.files:
            return judge
        remote = _remote_of(member, judge.rules.package, entry, entry.files[0])
        return await self._rules.read_own(judge, remote, digests=False)

    async def _find_listed(self, repository: Repository, key: str, path: str, trace: Trace) -> FoundFile:
        """The file, if it is kept or an upstream's document lists it."""
        if repository.type is not RepositoryType.VIRTUAL:
            found = await self._find_alone(repository, key, path, trace)
            if found is not None:
                return found
        try:
            document = self._formats[repository.format].document_of(key, path)
            members = await self._resolver.members(repository, document, trace)
        except (NotFound, UpstreamFailed) as error:
            return await self._find_unlisted(repository, key, path, trace, error)
        for member in members.serving:
            kept = await self._find_kept(repository, [member.repository], key, path, trace)
            found = None if kept is None else FoundFile(kept)
            if isinstance(member, UpstreamMember):
                found = await self._find_listed_by(repository, member, key, path, trace, kept)
            if found is not None and isinstance(found.file, File):
                fresh = same_file(found.file, partial(members.fresh, key=key))
                return evolve(found, fresh=fresh, ends_s=members.expires_s)
            if found is not None:
                return found
        raise _no_file(path)

    async def _find_unlisted(
        self, repository: Repository, key: str, path: str, trace: Trace, error: NotFound | UpstreamFailed
    ) -> FoundFile:
        """The file as it is kept, where no document can tell of it: an upstream failed, or none has the package."""
        failed = isinstance(error, UpstreamFailed)
        members = () if isinstance(error, NameRetired | UpstreamDenied) else self._resolver.flat_members(repository)
        active = [each for each in members if each.active and (failed or _keeps_removed(each))]
        kept = await self._find_kept(repository, active, key, path, trace)
        if kept is None:
            raise error
        holder = next(each for each in active if each.id == kept.repository_id)
        if not failed:
            return self._removed(holder, kept, trace)
        if is_former(holder, kept) or await self._was_removed(holder, key, path, kept):
            raise error  # the present upstream may have another file, or it had none when it was asked last
        if await self._judged_with(repository, holder, kept):
            raise error  # by documents that are not there
        return FoundFile(kept)

    async def _was_removed(self, holder: Repository, key: str, path: str, kept: File) -> bool:
        """Whether the upstream of a proxy said, after the file was kept, that it does not have the document."""
        if holder.type is RepositoryType.HOSTED:
            return False
        for request in self._requests(holder, key, path):
            try:
                held = await self._documents.answer(holder, request, Trace())
            except FAILURES:
                return False
            if held.document.found or _may_serve(holder, kept, held):
                return False
        return True

    async def _find_alone(self, repository: Repository, key: str, path: str, trace: Trace) -> FoundFile | None:
        """
        The file that a repository keeps, if that is known without asking an upstream.

        It is not if the document that clients have of the package lists another file by now, or if there is none.

        :raises NotFound: the repository is hosted, and does not have it
        """
        kept = await self._find_kept(repository, [repository], key, path, trace)
        if repository.type is RepositoryType.HOSTED:
            if kept is None:
                raise _no_file(path)
            return FoundFile(kept, same_file(kept))
        if kept is None or await self._judged_with(repository, repository, kept):
            return None
        return await self._compare_with_documents(repository, key, path, kept)

    async def _judged_with(self, repository: Repository, holder: Repository, kept: File) -> str:
        """
        The path of a file that is not kept, with which a kept one is judged that is beside it; empty without rules.

        What that file is only documents tell.
        """
        if holder.type is RepositoryType.HOSTED or self._resolver.flat_member(repository, holder).policy is None:
            return ""
        path = self._formats[holder.format].own_facts.main_of(kept.path)
        if path == kept.path:
            return ""
        return "" if await self._catalog.look(files.find_file, holder.id, path) is not None else path

    async def _compare_with_documents(self, proxy: Repository, key: str, path: str, kept: File) -> FoundFile | None:
        responses: list[Held] = []
        for request in self._requests(proxy, key, path):
            held = await self._documents.find_served(proxy, request)
            if held is None:
                continue
            responses.append(held)
            member = UpstreamMember(proxy, request, held)
            try:
                found = await self._find_source(member, path)
            except LOST:
                return FoundFile(kept)  # what clients have is not known any more
            if found is not None and not _remote_of(member, key, *found).is_kept_as(kept):
                return None
            if found is not None or await self._is_companion(member, kept):
                break
        else:
            return None  # the upstream may have removed it
        stamps = [(each.document.key, each.document.fetched_ms) for each in responses]

        def unchanged(reader: Reader) -> bool:
            return all(upstream_documents.fetched_at(reader, proxy.id, each) == at_ms for each, at_ms in stamps)

        return FoundFile(kept, same_file(kept, unchanged))

    def _requests(self, proxy: Repository, key: str, path: str) -> Sequence[DocumentRequest]:
        """The questions whose responses may list a file."""
        format_ = self._formats[proxy.format]
        return requests_of(format_.document_request(format_.document_of(key, path)), proxy)

    async def _find_kept(
        self, repository: Repository, holders: Sequence[Repository], key: str, path: str, trace: Trace
    ) -> File | None:
        for holder in holders:
            file: File | None = await self._catalog.look(files.find_file, holder.id, path)
            if file is not None:
                flat = self._resolver.flat_member(repository, holder)
                await self._rules.check_kept(repository, flat, key, path, file, trace)
                trace.add(StepKind.FILE_KEPT, repository=holder.path, path=path)
                return file
        return None

    async def _find_listed_by(
        self,
        repository: Repository,
        member: UpstreamMember,
        key: str,
        path: str,
        trace: Trace,
        kept: File | None,
    ) -> FoundFile | None:
        """
        The file that an upstream's document lists, or that is ``kept``: the same, or one that is not listed any more.

        The latter is only served with ``policy.keep_removed``, or while it is not known what the upstream has now and
        the document is older than the file.
        """
        proxy = member.repository
        found, is_enough = await self._look_up(member, path, kept)
        if kept is not None:
            await self._check_beside(repository, member, key, kept, found, trace)
        if kept is not None and is_enough:
            return FoundFile(kept)
        if found is None:
            # It may be of a version that is younger than the response: a lock file can be ahead of it.
            held = await self._documents.get(proxy, member.request, trace, revalidate=True)
            if not held.is_of(member.held):
                member = evolve(member, held=held)
                found = await self._find_source(member, path)
            if found is None and held.stale and kept is not None and _may_serve(proxy, kept, held):
                return FoundFile(kept, stale=True)
            if found is None and held.stale:
                raise held.missing(key)  # a newer answer may list it
        if found is None and kept is not None and _keeps_removed(proxy):
            return self._removed(proxy, kept, trace)
        if found is None:
            trace.add(StepKind.FILE_UNLISTED, repository=proxy.path, path=path)
            return None
        remote = _remote_of(member, key, *found)
        if kept is not None and remote.is_kept_as(kept):
            return FoundFile(kept)
        flat = self._resolver.flat_member(repository, proxy)
        await self._rules.check_listed(repository, flat, key, remote, trace)
        trace.add(StepKind.FILE_LISTED, repository=proxy.path, route=remote.route, path=path)
        return FoundFile(remote)

    async def _check_beside(
        self,
        repository: Repository,
        member: UpstreamMember,
        key: str,
        kept: File,
        found: tuple[Entry, FileSource] | None,
        trace: Trace,
    ) -> None:
        """Check a kept file that is beside one that is not kept, which is judged by that."""
        beside = await self._judged_with(repository, member.repository, kept)
        if not beside:
            return
        source = found or await self._find_source(member, beside)
        if source is None:
            raise _no_file(kept.path)
        flat = self._resolver.flat_member(repository, member.repository)
        await self._rules.check_listed(repository, flat, key, _remote_of(member, key, *source), trace)

    def _removed(self, proxy: Repository, kept: File, trace: Trace) -> FoundFile:
        """A file that the upstream of a proxy does not list any more."""
        trace.add(StepKind.FILE_REMOVED, repository=proxy.path, path=kept.path)
        return FoundFile(kept, removed=True)

    async def _look_up(
        self, member: UpstreamMember, path: str, kept: File | None
    ) -> tuple[tuple[Entry, FileSource] | None, bool]:
        """What a document lists at a path, and whether a kept file is served although it does not list that."""
        try:
            found = await self._find_source(member, path)
        except LOST:  # nothing is known against the kept file
            if kept is None:
                raise
            return None, True
        return found, found is None and kept is not None and await self._is_companion(member, kept)

    async def _is_companion(self, member: UpstreamMember, kept: File) -> bool:
        """Whether a kept file is of one that is listed, such as metadata that were found in it."""
        return kept.role is not None and await self._find_source(member, kept.path.rpartition(".")[0]) is not None

    async def _find_source(self, member: UpstreamMember, path: str) -> tuple[Entry, FileSource] | None:
        section = member.request.section
        return await self._resolver.read(member, lambda parts: parts.find_path(path, section))


def _keeps_removed(repository: Repository) -> bool:
    """Whether what a repository keeps is served although no upstream lists it any more."""
    return repository.type is RepositoryType.HOSTED or rules_of(repository).keep_removed


def _may_serve(proxy: Repository, kept: File, held: Held) -> bool:
    """Whether a kept file is served that a stale response does not list: it has not been removed in between."""
    return _keeps_removed(proxy) or kept.created_at > from_ms(held.document.checked_ms)


def _remote_of(member: UpstreamMember, key: str, entry: Entry, source: FileSource) -> RemoteFile:
    document = member.held.document
    return RemoteFile(member.repository, key, document.route, source, entry, document.checked_ms)


def _no_file(path: str) -> NotFound:
    return NotFound("file", path.rsplit("/", 1)[-1])


async def keep_file(
    package_files: PackageFiles, fetching: Fetching, repository: Repository, key: str, path: str
) -> File:
    """
    The file of a package (a key) at a path of a proxy, when it is kept; it is verified and judged as for clients.

    :raises NotFound: there is no such file; :raises UpstreamFailed: it cannot be had; :raises RuleRefused: see there
    :raises StorageFull, StorageFailed: it cannot be stored
    """
    found = await package_files.find(repository, key, path, want=Want.DIGESTS)
    if isinstance(found.file, File):
        return found.file
    if found.file.checked_ms:  # a document lists it
        return await fetching.finish(found.file)
    return await package_files.keep_addressed(repository, key, path)
