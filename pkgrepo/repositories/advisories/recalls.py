"""
Opens a recall for known malware that is, or was, in repositories, and notes when its record is withdrawn.

What is stored now and what the log says was fetched are compared with the records, whenever those have changed: after
each refresh, after each record that was sent, and once a minute, of what a process did not finish that was killed. The
rule that refuses it does not wait for this: it holds from the commit on that stores a record.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Final

from attrs import define
from twisted.logger import Logger

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import Reader
from pkgrepo.repositories.context import MaintenanceContext, MaintenanceWork
from pkgrepo.repositories.fetched import FetchedNames
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.storage.catalog import recalls
from pkgrepo.storage.catalog.advisories import find_load
from pkgrepo.storage.catalog.fetches import Question, count_fetches
from pkgrepo.storage.catalog.recalls import MOST_PLACES, MOST_RECALLS, MOST_VERSIONS, Hit, Key, Place, Recall

LATE_MS: Final = 30_000  # after which downloads that other processes had in memory are in the log
NAMED: Final = 3  # repositories in a line of the log

log = Logger()
Flush = Callable[[], Awaitable[object]]


async def nothing_to_write() -> None:
    """Write no downloads."""


@define
class _Found:
    """What is known of one record about one package: versions by repository."""

    hit: Hit
    versions: dict[tuple[int, str], dict[str, None]]


class MalwareRecalls(MaintenanceWork):
    """Compares what is in repositories with records of malware, those of the export ``source``."""

    def __init__(self, context: MaintenanceContext, source: str, flush: Flush) -> None:
        super().__init__(context)
        self.source = source
        self._flush = flush

    async def check(self) -> None:
        """Open and clear recalls, if the records have changed since the last time."""
        loaded = await self._catalog.look(find_load)
        if loaded is None or loaded.source != self.source:
            return
        stored = await self._catalog.look(recalls.read_recalls)
        if stored.checked == loaded.changes:
            await self._count_again(stored.recalls)
            return
        await self._registry.refresh()
        await self._flush()
        found = await self._find()
        known = [each.key for each in stored.recalls if each.is_open]
        new = [each for key, each in found.items() if key not in known]
        if len(known) + len(new) > MOST_RECALLS:
            log.warn(
                "more than {most} recalls would be open: some of {count} are not", most=MOST_RECALLS, count=len(new)
            )
        left = await self._catalog.scan(recalls.still_known, known)
        cleared = [each for each in known if each not in left]
        opened = [await self._recall(each) for each in new[:MOST_RECALLS]]
        now_ms = self._clock.now_ms()
        for each in await self._catalog.write(recalls.put_recalls, loaded.changes, opened, cleared, now_ms):
            log.warn(
                "malware: {advisory} names {package} {versions} of {repositories}; fetched by {clients} users and "
                "tokens, and {anonymous} times without",
                advisory=each.advisory,
                package=each.package,
                versions=", ".join(dict.fromkeys(one for place in each.places for one in place.versions)),
                repositories=", ".join([place.repository for place in each.places][:NAMED]),
                clients=each.clients,
                anonymous=each.anonymous,
            )
        for key in cleared:
            log.warn("malware: {advisory} about {package} was withdrawn", advisory=key[0], package=key[2])

    async def _count_again(self, every: Sequence[Recall]) -> None:
        """Count once more who fetched what recalls are about: other processes write downloads seconds later."""
        before_ms = self._clock.now_ms() - LATE_MS
        counts = {
            each.key: await self._count(
                each.ecosystem, each.package_key, [one for place in each.places for one in place.versions]
            )
            for each in every
            if each.is_open and not each.counted and each.opened_ms < before_ms
        }
        if counts:
            await self._catalog.write(recalls.put_counts, counts)

    async def _find(self) -> dict[Key, _Found]:
        """The records of malware about what is stored, or was fetched."""
        formats = {each.ecosystem.name: each for each in self._context.formats.values() if each.ecosystem is not None}
        places = {
            (each.id, ecosystem): each.path
            for each in self._registry.all()
            for ecosystem, format_ in formats.items()
            if each.format == format_.name and each.stage is None
        }
        hits: list[Hit] = await self._catalog.scan(recalls.stored_malware, places)
        for ecosystem, format_ in formats.items():
            fetched: Sequence[Hit] = await self._catalog.scan(recalls.fetched_malware, format_.name, ecosystem)
            hits += [each for each in fetched if _affects(format_, each)]
        found: dict[Key, _Found] = {}
        for each in hits:
            key = each.advisory.id, each.advisory.ecosystem, each.advisory.package
            one = found.setdefault(key, _Found(each, {}))
            one.versions.setdefault((each.repository_id, each.repository), {})[each.version] = None
        return found

    async def _recall(self, found: _Found) -> Recall:
        advisory = found.hit.advisory
        versions = {one for some in found.versions.values() for one in some}
        totals = await self._count(advisory.ecosystem, advisory.package, versions)
        return Recall(
            advisory=advisory.id,
            ecosystem=advisory.ecosystem,
            package_key=advisory.package,
            package=found.hit.package,
            title=advisory.title,
            opened_ms=self._clock.now_ms(),
            places=[
                Place(id_, path, [*some][:MOST_VERSIONS], len(some))
                for (id_, path), some in [*found.versions.items()][:MOST_PLACES]
            ],
            clients=totals[0],
            anonymous=totals[1],
            blocked=self._registry.policy.malware is not None,
        )

    async def _count(self, ecosystem: str, package: str, versions: Collection[str]) -> tuple[int, int]:
        """How many users and tokens have fetched versions of a package (a key), and how often anonymous clients."""
        format_ = next(
            each
            for each in self._context.formats.values()
            if each.ecosystem is not None and each.ecosystem.name == ecosystem
        )
        names = FetchedNames(self._context.formats, self._registry.all())
        question = Question(
            format=format_.name,
            packages=[package],
            versions=names.versions([format_.name], versions),
            copies=names.copies(names.every, [package], versions),
        )
        found: tuple[int, int] = await self._catalog.scan(partial(_count, question))
        return found


def _affects(format_: StoredFormat, hit: Hit) -> bool:
    """Whether a fetched version is one that the record names; one without a place in the order is."""
    assert format_.versions is not None, "it has an ecosystem"
    try:
        return hit.advisory.affects(format_.versions.sort(hit.version))
    except Invalid:
        return True


def _count(question: Question, r: Reader) -> tuple[int, int]:
    found = count_fetches(r, question)
    return found.clients, found.anonymous
