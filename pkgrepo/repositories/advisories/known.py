"""
What is known of vulnerabilities, and whether that is enough to say that something has none.

==========================================  ======================================================================
state of the data                           what may be said
==========================================  ======================================================================
no source, or nothing was loaded of it yet  nothing: no version was checked
no record of the ecosystem was loaded       nothing of its packages: the export is one of other ecosystems
the export is older than                    what is found holds; that nothing is found means nothing
``advisories.max_age``
otherwise                                   what is found, and that nothing is found
==========================================  ======================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

from attrs import frozen

from pkgrepo.interfaces import ICatalog
from pkgrepo.model.advisories import Advisory, distinct
from pkgrepo.repositories.clock import Clock, from_ms
from pkgrepo.storage.catalog import advisories
from pkgrepo.storage.catalog.advisories import AdvisoryLoad

DAY_MS: Final = 24 * 3600 * 1000
NO_SOURCE: Final = "this server was given no advisories (advisories.source)"


@frozen(kw_only=True)
class Knowledge:
    """
    The state of the data: ``problem`` is a sentence about why "nothing found" means nothing, empty if it means that.

    ``loaded`` tells whether there are data that what is found may be said of, and ``stored`` whether there are any of
    whatever ecosystem. ``exported_at`` is the time of the export. ``records`` are their numbers by ecosystem.
    """

    problem: str = ""
    loaded: bool = True
    stored: bool = True
    exported_at: datetime | None = None
    loaded_at: datetime | None = None
    records: Mapping[str, int] = {}
    unreadable: int = 0

    @property
    def complete(self) -> bool:
        """Whether "nothing found" may be said."""
        return not self.problem

    @property
    def has_source(self) -> bool:
        """Whether the server was given an export."""
        return self.problem != NO_SOURCE


@frozen
class OnPackage:
    """The advisories on a package; ``complete`` tells whether that no other affects a version means something."""

    advisories: Sequence[Advisory]
    complete: bool

    def affecting(self, sort: bytes) -> Sequence[Advisory]:
        """Those that affect the version with a sort key: one for each vulnerability, the worst first."""
        return distinct(each for each in self.advisories if each.affects(sort))


class KnownAdvisories:
    """The advisories of ``source`` in the catalog, which are too old after ``max_age_s``."""

    def __init__(self, catalog: ICatalog, clock: Clock, *, source: str, max_age_s: float) -> None:
        self.source = source
        self._catalog = catalog
        self._clock = clock
        self._max_age_s = max_age_s

    async def knowledge(self, ecosystem: str | None = None) -> Knowledge:
        """The state of the data, on the whole or of one ecosystem."""
        if not self.source:
            return Knowledge(problem=NO_SOURCE, loaded=False, stored=False)
        last = await self._catalog.look(advisories.find_load)
        return judge(last, self.source, self._max_age_s, self._clock.now_ms(), ecosystem)

    async def of(self, ecosystem: str, packages: Collection[str]) -> Mapping[str, Sequence[Advisory]]:
        """The advisories on some packages, by key, whatever the state of the data; see ``knowledge``."""
        found: Mapping[str, Sequence[Advisory]] = await self._catalog.scan(
            advisories.advisories_of, ecosystem, packages
        )
        return found

    async def on_package(self, ecosystem: str, package: str) -> OnPackage | None:
        """What is known of a package; None if nothing is known of any package of the ecosystem."""
        found = await self.on_packages(ecosystem, [package])
        return None if found is None else found[package]

    async def on_packages(self, ecosystem: str, packages: Collection[str]) -> Mapping[str, OnPackage] | None:
        """What is known of some packages, by key; None if nothing is known of any package of the ecosystem."""
        state = await self.knowledge(ecosystem)
        if not state.loaded:
            return None
        found = await self.of(ecosystem, packages)
        return {each: OnPackage(found.get(each, ()), state.complete) for each in packages}


def judge(
    last: AdvisoryLoad | None, source: str, max_age_s: float, now_ms: int, ecosystem: str | None = None
) -> Knowledge:
    """The state of the data of which ``last`` was the last load, if there was any; the table above."""
    if last is None or last.source != source:
        problem = "the advisories of this server have not been loaded yet; its jobs say more"
        return Knowledge(problem=problem, loaded=False, stored=False)
    age_ms = now_ms - last.exported_ms
    problem = ""
    if age_ms > max_age_s * 1000:
        problem = (
            f"the advisories of this server are {age_ms // DAY_MS} days old (of {from_ms(last.exported_ms):%Y-%m-%d}), "
            "which is more than advisories.max_age allows"
        )
    loaded = ecosystem is None or ecosystem in last.records
    if not loaded:
        problem = f"the advisories of this server have no record of {ecosystem}"
    return Knowledge(
        problem=problem,
        loaded=loaded,
        exported_at=from_ms(last.exported_ms),
        loaded_at=from_ms(last.loaded_ms),
        records=last.records,
        unreadable=last.unreadable,
    )
