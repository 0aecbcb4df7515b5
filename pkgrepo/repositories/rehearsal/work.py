"""
Rehearsals: what rules would have refused of what was fetched, and what they would refuse of what is stored.

=============================  =====================================================================================
what is looked at              facts
=============================  =====================================================================================
a version that is stored       those that the rules decide over when it is served, of each of its files
a fetch of one of its files    the same, at the time of the first fetch of the day: it was younger then
a fetch of what is gone        its names and its digest; nothing else is known, and the rules say what that means
=============================  =====================================================================================

Versions, packages and repositories are read a few at a time on a reader thread. Decisions of admins on what waits, and
rules that hold already, are left out: the question is what the given rules do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from pkgrepo.errors import PkgrepoError
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.repositories.advisories.known import Knowledge, KnownAdvisories
from pkgrepo.repositories.context import MaintenanceContext, MaintenanceWork
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.archive_addresses import ArchiveAddresses
from pkgrepo.repositories.policy.conditions import DAY_MS, SERVER, TRUST, Placed
from pkgrepo.repositories.policy.effective import CompanionRules, is_companion, origin_of
from pkgrepo.repositories.policy.facts import order_of
from pkgrepo.repositories.policy.origins import Origins
from pkgrepo.repositories.policy.rules import RuleSet
from pkgrepo.repositories.policy.schema import PolicyRule
from pkgrepo.repositories.policy.trust import History
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog.logged_requests import (
    requests_of_removed,
)
from pkgrepo.storage.catalog.packages.retained import page_of_names

from .found import BATCH, MOST_ROWS, Found, Judgement, refused_rows, result_of
from .trial import Trial, Trials, named

Histories = Callable[[Repository, str], Awaitable[History | None]]  # of a package (a key); raises PkgrepoError

KIND: Final = "rehearsal"  # of the job
GONE: Final = 500  # items of the log that are looked at together


async def no_history(_repository: Repository, _key: str) -> None:
    """Nothing tells what versions of upstreams were trusted."""


class Rehearsal(MaintenanceWork):
    """
    Tries ``rules`` on the fetches of some days and on what ``repositories`` have stored.

    ``histories`` are what versions of upstreams were trusted.
    """

    def __init__(
        self,
        context: MaintenanceContext,
        advisories: KnownAdvisories,
        rules: Sequence[PolicyRule],
        repositories: Sequence[Repository],
        *,
        days: int,
        everywhere: bool,
        histories: Histories = no_history,
        archives: ArchiveAddresses | None = None,
    ) -> None:
        super().__init__(context)
        self._formats = context.formats
        self._advisories = advisories
        self._rules = rules
        self._placed = [Placed(each, SERVER) for each in rules]
        self._repositories = repositories
        self._everywhere = everywhere
        self._days = days
        self._histories = histories
        self._archives = archives

    async def run(self, progress: Progress) -> Mapping[str, Any]:
        """Do the work as a job; it may be cancelled at any await."""
        now_ms = self._clock.now_ms()
        from_day = now_ms // DAY_MS - self._days + 1
        found = Found()
        for repository in self._repositories:
            format_ = self._formats[repository.format]
            if repository.type is RepositoryType.VIRTUAL:
                continue
            state = await self._knowledge(format_)
            rules, origins = await self._rules_for(repository, now_ms)
            progress.begin(repository.path, repository.package_count)
            after: str | None = ""
            while after is not None:
                histories = await self._histories_of(repository, format_, rules, after)
                trial = Trial(
                    found, repository, format_, rules, origins, from_day, now_ms, state, histories, self._archives
                )
                after = await self._catalog.scan(trial.read_packages, after)
                progress.step(BATCH)
            progress.end()
        if self._everywhere:
            await self._try_removed(found, from_day)
        refused = sorted(found.refused.values(), key=lambda each: (-each.requests, each.repository, each.package))
        rows = await self._catalog.scan(refused_rows, refused[:MOST_ROWS])
        return result_of(found, rows, len(refused), self._rules, self._days)

    async def _histories_of(
        self, repository: Repository, format_: StoredFormat, rules: RuleSet, after: str
    ) -> Mapping[str, History]:
        """What the versions of the next packages of a proxy were trusted, by their keys, as far as rules ask for it."""
        if format_.attests is None or repository.type is not RepositoryType.PROXY:
            return {}
        found: dict[str, History] = {}
        for each in await self._catalog.scan(page_of_names, repository.id, after, BATCH):
            of_package = rules.of(each.key)
            if of_package is not None and of_package.needs & TRUST:
                with suppress(PkgrepoError):  # then it is not known what its upstream has
                    history = await self._histories(repository, each.key)
                    found |= {} if history is None else {each.key: history}
        return found

    async def _rules_for(self, repository: Repository, now_ms: int) -> tuple[RuleSet, Origins | None]:
        """The rules for a repository; of what a companion is made of, its parent is asked, as in serving."""
        format_ = self._formats[repository.format]
        rules = RuleSet(self._placed, order_of(format_))
        if format_.companion is None or not is_companion(repository):
            return rules, None
        parent = origin_of(repository)
        beyond = self._formats[parent.format]
        of_parent = RuleSet(self._placed, order_of(beyond))
        policy = CompanionRules(rules, of_parent, rules, format_.companion.origins)
        state = await self._knowledge(beyond)
        known = (False, False) if state is None else (state.stored, state.complete)
        return policy, Origins(format_.companion, policy, parent, beyond, now_ms, *known, archives=self._archives)

    async def _knowledge(self, format_: StoredFormat) -> Knowledge | None:
        """The state of the advisories of a format; None if there are none of it."""
        return None if format_.ecosystem is None else await self._advisories.knowledge(format_.ecosystem.name)

    async def _try_removed(self, found: Found, from_day: int) -> None:
        rules = {name: RuleSet(self._placed, order_of(each)) for name, each in self._formats.items()}
        after: int | None = 0
        while after is not None:
            rows, after = await self._catalog.scan(requests_of_removed, after, from_day, GONE)
            for each in rows:
                if each.format in rules:
                    of_package = rules[each.format].of(each.package_key)
                    judgement = Judgement()
                    if of_package is not None:
                        judgement = Trials(of_package, of_package.decide)(named(each, ""), each.first_ms)
                    found.add_requests(each, judgement)
                else:
                    found.left_out += 1
