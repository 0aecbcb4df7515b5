"""
Archives of the source of packages, with which files are compared before the first byte of such a file is sent.

==============================  ====================================================================================
what is found                   what is known of the file then
==============================  ====================================================================================
an archive of one of its tags   what of the file that does not explain; noted for all repositories
no tag (404, 410)               that: noted for ``ABSENT_MS``, of an older version for ``LATER_MS``
no address for the host         that: it is not noted, since the configuration says it
another response, no response,  nothing: ``missing`` decides. What is no archive, or more than its limits allow, is not
no archive that can be read     asked for again for ``RETRY_MS``, nor one that does not come to its end
==============================  ====================================================================================

An archive is asked for without credentials, at the addresses that the configuration gives, with the guard, the proxies
and the limits of requests to upstreams. It lies in a file without a name while it is read.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from attrs import define, evolve, field
from twisted.logger import Logger

from pkgrepo.archives.explained import Explained, digests_of_files, explain_files
from pkgrepo.concurrency.lru import Lru
from pkgrepo.concurrency.pools import Pool
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import Invalid, UpstreamFailed
from pkgrepo.failure_log import FailureLog
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import File, ReadLimits
from pkgrepo.outbound.urls import parse_url, resolve_reference
from pkgrepo.proxy.upstream.instances import Upstreams
from pkgrepo.proxy.upstream.response import UpstreamResponse
from pkgrepo.proxy.upstream.routes import Route
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.archive_addresses import with_tag
from pkgrepo.repositories.policy.conditions import Facts
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.storage.catalog.file_facts import FileFacts, explained_name, note_facts

from .attested_files import Inspect

LARGEST: Final = 128 * 1024 * 1024  # bytes of an archive
LONGEST_S: Final = 60.0  # that one may take, with redirects
ABSENT_MS: Final = 3600 * 1000  # how long it is known that a tag is not there
RECENT_MS: Final = 24 * 3600 * 1000  # tags come with a version, and are there when it is this old
LATER_MS: Final = 30 * 24 * 3600 * 1000  # how long that is known of an older version
RETRY_MS: Final = 10 * 60 * 1000
MOST_KEPT: Final = 8  # archives of which is known what they have: 10 MB each at most
MOST_FAILED: Final = 1000
_ABSENT: Final = frozenset({404, 410})
_KINDS: Final = ((b"\x1f\x8b", "tar.gz"), (b"PK\x03\x04", "zip"), (b"BZh", "tar.bz2"))


@define(eq=False, kw_only=True)
class SourceArchives:
    """
    Asks for them; ``formats`` are by name. They are kept in ``folder`` while they are read, in the pool ``inside``, and
    written in ``disk``. ``inspect`` looks at the bytes of a kept file.
    """

    _catalog: ICatalog
    _clock: Clock
    _disk: Pool
    _inside: Pool
    _formats: Mapping[str, StoredFormat]
    _upstreams: Upstreams
    _inspect: Inspect
    _folder: Path
    _in_flight: SingleFlight[tuple[int, str, str], Explained | None] = field(factory=SingleFlight)
    _asking: SingleFlight[str, frozenset[bytes] | None] = field(factory=SingleFlight)
    _kept: Lru[str, frozenset[bytes]] = field(factory=lambda: Lru(MOST_KEPT))
    _failed: Lru[str, int] = field(factory=lambda: Lru(MOST_FAILED))
    _absent: Lru[str, int] = field(factory=lambda: Lru(MOST_FAILED))
    _failures: FailureLog = field(
        factory=lambda: FailureLog(Logger(), "the archive of a source cannot be had, so that it explains nothing")
    )

    async def of(self, judge: Judge, file: File, facts: Facts, names: Sequence[str]) -> Judge:
        """
        The judge, with what the archive of its source does not explain of a kept file with these facts and names.

        It stays as it is if that cannot be known now. :raises StorageFull, StorageFailed: it cannot be noted
        """
        address = judge.archive_address(facts)
        if not address or not facts.versions:
            return judge
        named = [explained_name(each, facts.versions[0]) for each in names]
        work = partial(self._explain, judge, file, facts, address, named)
        found = await self._in_flight.run((judge.member.id, judge.rules.package, named[0]), work)
        if found is None:
            return judge
        return evolve(judge, facts={**judge.facts, **dict.fromkeys(named, FileFacts(explained=found))})

    async def _explain(
        self, judge: Judge, file: File, facts: Facts, address: str, named: Sequence[str]
    ) -> Explained | None:
        sources = self._formats[judge.member.format].sources
        assert sources is not None, "rules ask for what there is"
        try:
            found = await self._find(sources.tags(judge.rules.package, facts.versions[0]), address)
            if found is None:
                explained = Explained(until_ms=self._until_ms(facts), asked=address)
            else:
                tag, archive = found
                explained = await self._inspect(
                    self._inside,
                    file.storage_id,
                    file,
                    lambda content: explain_files(sources.digests(content, file.path), archive, tag, address),
                )
        except (UpstreamFailed, Invalid) as error:
            self._failures.failed(error, reason=f"{judge.member.path}/{file.path}: {error}")
            return None
        for name in dict.fromkeys(named):
            place = (judge.member.format, judge.rules.package, name)
            noted, now_ms = FileFacts(explained=explained), self._clock.now_ms()
            await self._catalog.write(note_facts, *place, noted, now_ms, shown=False)
        return explained

    def _until_ms(self, facts: Facts) -> int:
        now_ms = self._clock.now_ms()
        recent = facts.published_ms is None or facts.published_ms > now_ms - RECENT_MS
        return now_ms + (ABSENT_MS if recent else LATER_MS)

    async def _find(self, tags: Sequence[str], address: str) -> tuple[str, frozenset[bytes]] | None:
        """
        The first of some tags that there is, and what its archive has; None if there is none.

        :raises UpstreamFailed: that cannot be known now; :raises Invalid: it is no archive that can be read
        """
        for tag in tags:
            url = with_tag(address, tag)
            found = await self._asking.run(url, partial(self._archive, url)) if url else None
            if found is not None:
                return tag, found
        return None

    async def _archive(self, url: str) -> frozenset[bytes] | None:
        """The digests of the files in the archive at an address, None if there is none; it raises as ``_find``."""
        kept = self._kept.get(url)
        if kept is not None:
            return kept
        now_ms = self._clock.now_ms()
        if now_ms < (self._absent.get(url) or 0):  # asked for another file of the version
            return None
        if now_ms < (self._failed.get(url) or 0):
            raise Invalid("it was no archive that can be read a few minutes ago")
        root = resolve_reference(parse_url(url), "/")  # its connections, health and limits are those of the host
        route = Route(name=f"archives of {root.host}:{root.port}", target=root)
        limits = ReadLimits(LARGEST, LONGEST_S)
        async with self._upstreams.of(0, route).open("GET", url, limits=limits, subject=url) as response:
            if response.status in _ABSENT:
                self._absent.put(url, now_ms + RETRY_MS)
                return None
            if response.status != 200:
                raise UpstreamFailed(route.name, f"it answers {response.status}")
            file: IO[bytes] = await self._disk(self._open)
            try:
                await self._receive(response, file)
                found: frozenset[bytes] = await self._inside(_digests_in, file)
            except (Invalid, UpstreamFailed):
                self._failed.put(url, self._clock.now_ms() + RETRY_MS)
                raise
            finally:
                await self._disk(file.close)
        self._kept.put(url, found)
        return found

    def _open(self) -> IO[bytes]:
        return tempfile.TemporaryFile(dir=self._folder)

    async def _receive(self, response: UpstreamResponse, file: IO[bytes]) -> None:
        async for chunk in response.chunks():
            await self._disk(file.write, chunk)
        await self._disk(file.flush)


def _digests_in(file: Any) -> frozenset[bytes]:
    """The digests of the files in an archive, whatever its kind is. :raises Invalid: it is none, or has no files"""
    file.seek(0)
    head = file.read(4)
    kind = next((kind for begin, kind in _KINDS if head.startswith(begin)), "tar")
    found = frozenset(digests_of_files(file.fileno(), f"the archive.{kind}").values()) - {b""}
    if not found:
        raise Invalid("the archive has no files")
    return found
