"""
The attestations of files, read and verified before the first byte of such a file is sent.

==============================  ====================================================================================
where it is                     what becomes of it
==============================  ====================================================================================
beside the file, kept           it is read
npm registry                    it is asked for like a document of the package
another file of the upstream    it is fetched and kept, like the file itself
nowhere                         that is known for ``ABSENT_MS``, or ``UNSAID_MS``
==============================  ====================================================================================

What it was found to be is noted for all repositories, by the digest and the name of the file. Nothing is read where
what documents claim decides alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from attrs import define, evolve, field
from twisted.logger import Logger

from pkgrepo.archives.source import Source
from pkgrepo.concurrency.pools import Pool
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.concurrency.together import together
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.failure_log import FailureLog
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import File, RepositoryType
from pkgrepo.proxy.caching.documents import Documents
from pkgrepo.proxy.fetching import Fetching
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.parts.values import Entry, FileSource
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.attestations import AttestedFile, Attests
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.conditions import TRUST, Facts
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.repositories.policy.trust import Unsaid
from pkgrepo.sigstore.bundles import LARGEST
from pkgrepo.sigstore.roots import TrustedRoot
from pkgrepo.storage.catalog.file_facts import Attested, FileFacts, attested_name, name_of, note_facts, place_of
from pkgrepo.storage.catalog.packages import files

ABSENT_MS: Final = 3600 * 1000  # how long it is known that an attestation is not there
RECENT_MS: Final = 24 * 3600 * 1000  # they come with a file, and are there when it is this old
UNSAID_MS: Final = 30 * 24 * 3600 * 1000  # how long that is known of an older file, where no document claims any
MOST_BEFORE: Final = 256  # versions before whose attestations are asked for at most, for one question
BEFORE_AT_ONCE: Final = 8

# Looks at the bytes of a kept file, on a pool; see L{pkgrepo.gateway.responses.content.Files.inspect}.
Inspect = Callable[[Pool, int, File, Callable[[int | bytes], Any]], Awaitable[Any]]
_Place = tuple[int, str, str]  # repository, package, name


@define(eq=False, kw_only=True)
class AttestedFiles:
    """Reads them; ``formats`` and ``proxied`` are by name. They are verified by ``root``, in a ``pool``."""

    _catalog: ICatalog
    _clock: Clock
    _pool: Pool
    _formats: Mapping[str, StoredFormat]
    _proxied: Mapping[str, Proxied]
    _fetching: Fetching
    _documents: Documents
    _inspect: Inspect
    _root: TrustedRoot
    _in_flight: SingleFlight[_Place, FileFacts] = field(factory=SingleFlight)
    _failures: FailureLog = field(factory=lambda: FailureLog(Logger(), "the attestation of a file is not verified"))

    async def of_listed(self, judge: Judge, main: RemoteFile) -> Judge:
        """
        The judge, with what the attestation of a file that a document lists was found to be, if that decides.

        :raises UpstreamFailed: it cannot be had; :raises StorageFull, StorageFailed: it cannot be stored
        """
        if not judge.own & TRUST:
            return judge

        async def about(judge: Judge) -> Facts:
            if not self._asks_each(judge):
                return judge.facts_of_entry(main.entry, main.route)
            return await self._pool(judge.facts_of_entry, main.entry, main.route)

        judge = await self._with(judge, await about(judge), main.source.digests, main)
        return await self._with_past(judge, about)

    async def of_kept(self, judge: Judge, file: File) -> Judge:
        """The same of a kept file, or of the one that it is beside. It raises what ``of_listed`` raises."""
        if not judge.own & TRUST:
            return judge
        main: File | None = file
        if file.role is not None:
            main = await self._catalog.look(files.find_file, file.repository_id, file.path.removesuffix(file.role))
        if main is None:
            return judge

        async def about(judge: Judge) -> Facts:
            read = self._catalog.scan if self._asks_each(judge) else self._catalog.look
            facts: Facts = await read(judge.facts_of_kept, main)
            return facts

        judge = await self._with(judge, await about(judge), {**main.digests, "sha256": main.sha256}, main)
        return await self._with_past(judge, about)

    async def _with_past(self, judge: Judge, about: Callable[[Judge], Awaitable[Facts]]) -> Judge:
        """
        The judge, with the attestations of versions before one, as far as these decide: until one has any.

        What is left after ``MOST_BEFORE`` is not known. The next question goes on there: what was read is noted.
        """
        left = MOST_BEFORE
        while left and (asked := await self._unsaid_before(judge, about, min(left, BEFORE_AT_ONCE))):
            left -= len(asked)
            found = await together(
                self._run(judge, each.name, each.file, recent=self._is_recent(each.published_ms)) for each in asked
            )
            known = {each.name: facts for each, facts in zip(asked, found, strict=True)}
            judge = evolve(judge, facts={**judge.facts, **known})
        return judge

    async def _unsaid_before(
        self, judge: Judge, about: Callable[[Judge], Awaitable[Facts]], most: int
    ) -> Sequence[Unsaid]:
        if not self._asks_each(judge):
            return ()
        return await self._pool(judge.unsaid_before, await about(judge), most)

    @staticmethod
    def _asks_each(judge: Judge) -> bool:
        """Whether documents do not say what has attestations: then a history is made for each answer, on a thread."""
        return judge.format.attests is not None and judge.format.attests.unsaid_from_ms is not None

    def _is_recent(self, published_ms: int | None) -> bool:
        return published_ms is None or published_ms > self._clock.now_ms() - RECENT_MS

    async def _with(self, judge: Judge, facts: Facts, digests: Mapping[str, str], main: File | RemoteFile) -> Judge:
        if not judge.needs_attestation(facts) or not facts.versions:
            return judge
        path = main.path if isinstance(main, File) else main.source.path
        name = attested_name(name_of(digests, place_of(judge.member.id, path)), path)
        about = AttestedFile(judge.rules.package, facts.versions[0], path, digests)
        recent = self._is_recent(facts.published_ms)
        remote = None if isinstance(main, File) else main
        known = await self._run(judge, name, about, remote, recent=recent)
        return evolve(judge, facts={**judge.facts, name: known})

    async def _run(
        self,
        judge: Judge,
        name: str,
        about: AttestedFile,
        remote: RemoteFile | None = None,
        *,
        recent: bool = False,
    ) -> FileFacts:
        """What the attestation of a file is found to be, read once for all who wait."""
        read = partial(self._attest, judge, name, about, remote, recent=recent)
        return await self._in_flight.run((judge.member.id, judge.rules.package, name), read)

    async def _attest(
        self, judge: Judge, name: str, about: AttestedFile, remote: RemoteFile | None, *, recent: bool
    ) -> FileFacts:
        """Verify the attestation of a file, and note what it was found to be."""
        attests = self._formats[judge.member.format].attests
        assert attests is not None, "rules ask for what there is"
        try:
            found = await self._verify(judge, attests, about, remote)
        except Invalid as error:
            self._failures.failed(error, reason=f"{judge.member.path}/{about.path}: its attestation: {error}")
            found = Attested(root=self._root.id, why=str(error))
        if found is None:
            short = recent or attests.unsaid_from_ms is None
            until_ms = self._clock.now_ms() + (ABSENT_MS if short else UNSAID_MS)
            found = Attested(root=self._root.id, why="the attestation is not there", until_ms=until_ms)
        facts = FileFacts(attested=found)
        place, now_ms = (judge.member.format, judge.rules.package, name), self._clock.now_ms()
        await self._catalog.write(note_facts, *place, facts, now_ms, shown=found.verified)
        return facts

    async def _verify(
        self, judge: Judge, attests: Attests, about: AttestedFile, remote: RemoteFile | None
    ) -> Attested | None:
        """What an attestation is found to be; None if there is none. :raises Invalid: it is not verified"""
        proxy, path = judge.member, f"{about.path}{attests.suffix}"
        kept: File | None = await self._catalog.look(files.find_file, proxy.id, path)
        own = self._proxied[proxy.format].own_facts
        try:
            if kept is None and proxy.type is RepositoryType.PROXY and own.attestations is not None:
                request = own.attestations(about.package, about.version)
                held = await self._documents.get(proxy, request, Trace())
                read = own.attestations_in
                text = await self._documents.read(proxy, request, held, lambda parts: read(parts.top))
                if not text:
                    return None
                found: Attested = await self._pool(attests.verify, text, about, self._root)
                return found
            if kept is None and proxy.type is RepositoryType.PROXY:
                listed = await self._listed(judge, about.path) if remote is None else remote
                source = None if listed is None else beside(listed, path)
                kept = None if source is None else await self._fetching.finish(source)
        except NotFound:
            return None
        if kept is None:
            return None
        if kept.size > LARGEST:
            raise Invalid(f"it has more than {LARGEST} bytes")
        size = kept.size
        verified: Attested = await self._inspect(
            self._pool,
            kept.storage_id,
            kept,
            lambda content: attests.verify(Source(content, path).read(0, size), about, self._root),
        )
        return verified

    async def _listed(self, judge: Judge, path: str) -> RemoteFile | None:
        """A file of a package at a path, as the document lists it that clients have got."""
        request = self._proxied[judge.member.format].document_request(judge.rules.package)
        held = await self._documents.find_served(judge.member, request)
        if held is None:
            return None
        found: tuple[Entry, FileSource] | None = await self._documents.read(
            judge.member, request, held, lambda parts: parts.find_path(path, request.section)
        )
        if found is None:
            return None
        document = held.document
        entry, source = found
        return RemoteFile(judge.member, judge.rules.package, document.route, source, entry, document.checked_ms)


def beside(remote: RemoteFile, path: str) -> RemoteFile | None:
    """Another file of the same entry, if it has one at a path."""
    found: Iterator[FileSource] = (each for each in remote.entry.files if each.path == path)
    source = next(found, None)
    return None if source is None else evolve(remote, source=source)
