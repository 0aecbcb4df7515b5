"""
When the packages that a version newly needs were first published, for rules that compare versions.

==============================  ====================================================================================
the member is                   it is told by
==============================  ====================================================================================
a hosted repository             the versions of that package in the same repository
a proxy that has kept a file    the time of that, if it is long enough ago
of it
a proxy                         the document of its upstream, as for clients: its cache, its routes and its limits
==============================  ====================================================================================

Nothing judges that package for it, so that repositories cannot wait for each other. What is found is noted with the
package that needs it, for this repository: another one may have another upstream. What cannot be asked now, or has no
dates, is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from attrs import define, evolve, field

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.concurrency.together import together
from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.caching.documents import Documents
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.policy.differences import YOUNG_MS
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.storage.catalog.file_facts import FileFacts, dependency_name, note_facts
from pkgrepo.storage.catalog.packages import packages, versions
from pkgrepo.storage.catalog.rows import to_ms

_UNKNOWN: Final = FileFacts(unreadable=True)


@define(eq=False, kw_only=True)
class DependencyAges:
    """Asks for them; ``proxied`` are by name of the format."""

    _catalog: ICatalog
    _clock: Clock
    _proxied: Mapping[str, Proxied]
    _documents: Documents
    _in_flight: SingleFlight[tuple[int, str, str, int], FileFacts] = field(factory=SingleFlight)

    async def of(self, judge: Judge, names: Sequence[str], published_ms: int | None) -> Judge:
        """
        The judge, with what is known of some packages that a version needs, which was published then (ms).

        :raises StorageFull, StorageFailed: a document cannot be stored
        """
        before_ms = (judge.now_ms if published_ms is None else published_ms) - YOUNG_MS
        keys = sorted({judge.format.package_key(each) for each in names})
        found = await together(self._of(judge, each, before_ms) for each in keys)
        facts = {dependency_name(judge.member.id, key): each for key, each in zip(keys, found, strict=True)}
        return evolve(judge, facts={**judge.facts, **facts})

    async def _of(self, judge: Judge, key: str, before_ms: int) -> FileFacts:
        place = (judge.member.id, judge.rules.package, key, before_ms)
        return await self._in_flight.run(place, partial(self._ask, judge, key, before_ms))

    async def _ask(self, judge: Judge, key: str, before_ms: int) -> FileFacts:
        first_ms = await self._first_ms(judge.member, key, before_ms)
        if first_ms is None:
            return _UNKNOWN
        facts = FileFacts(published_ms=first_ms)
        place = (judge.member.format, judge.rules.package, dependency_name(judge.member.id, key))
        await self._catalog.write(note_facts, *place, facts, self._clock.now_ms(), shown=False)
        return facts

    async def _first_ms(self, member: Repository, key: str, before_ms: int) -> int | None:
        kept_ms: int | None = await self._catalog.look(_first_stored, member.id, key)
        if member.type is RepositoryType.HOSTED or (kept_ms is not None and kept_ms <= before_ms):
            return kept_ms
        if member.type is not RepositoryType.PROXY:
            return None
        request = self._proxied[member.format].document_request(key)
        try:
            held = await self._documents.get(member, request, Trace())
            return await self._documents.read(member, request, held, partial(_first_in, request.section, before_ms))
        except (NotFound, UpstreamFailed):
            return None


def _first_stored(r: Reader, repository_id: int, key: str) -> int | None:
    """When the first version of a package (a key) was published here, or first kept; None if there is none."""
    package = packages.find_package(r, repository_id, key)
    found = () if package is None else versions.list_versions(r, package.id)
    if package is None or not found:
        return None
    return to_ms(package.created_at)


def _first_in(section: bytes, before_ms: int, parts: PartsFile) -> int | None:
    """
    The time of the first publication (ms) in a document, None if it does not tell that.

    What was seen first at a time was published then, or before.
    """
    entries = [*parts.entries((), section)]
    first_ms = min((each.published_ms for each in entries if each.published_ms is not None), default=None)
    dated = all(each.published_ms is not None and not each.first_seen for each in entries)
    return first_ms if first_ms is not None and (dated or first_ms <= before_ms) else None
