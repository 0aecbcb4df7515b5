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

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from types import MappingProxyType
from typing import Any, Final

from attrs import Factory, define, evolve, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import PkgrepoError
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.repositories.advisories.known import Knowledge, KnownAdvisories
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.context import MaintenanceContext, MaintenanceWork
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.archive_addresses import ArchiveAddresses
from pkgrepo.repositories.policy.conditions import CACHED, DAY_MS, HOSTED, SERVER, TRUST, Facts, Placed
from pkgrepo.repositories.policy.effective import CompanionRules, is_companion, origin_of
from pkgrepo.repositories.policy.facts import advisories_on, facts_of_image, known_contents, order_of
from pkgrepo.repositories.policy.histories import wanted_history
from pkgrepo.repositories.policy.image_judge import ImageJudge
from pkgrepo.repositories.policy.judge import Judge, Origins, with_stored
from pkgrepo.repositories.policy.rules import SERVED, PackageRules, RuleSet, Verdict
from pkgrepo.repositories.policy.schema import PolicyRule
from pkgrepo.repositories.policy.trust import History
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog.images.relations import Relations, find_relations
from pkgrepo.storage.catalog.images.retained import manifest_ages
from pkgrepo.storage.catalog.logged_requests import (
    Requests,
    clients_of_items,
    requests_of_package,
    requests_of_removed,
)
from pkgrepo.storage.catalog.packages.retained import page_of_names

Histories = Callable[[Repository, str], Awaitable[History | None]]  # of a package (a key); raises PkgrepoError

KIND: Final = "rehearsal"  # of the job
BATCH: Final = 50  # packages that are read together
GONE: Final = 500  # items of the log that are looked at together
MOST_ROWS: Final = 200  # of each list
MOST_KEPT: Final = 50_000  # versions that are told apart; all are counted
MOST_USERS: Final = 20  # of one row
COUNTED: Final = (
    "requests",
    "versions",
    "missing_requests",
    "missing_versions",
    "passed_requests",
    "passed_versions",
)


@define
class Refused:
    """The fetches of a version that a rule would have refused; ``items`` are those of the log."""

    rule: PolicyRule
    repository: str
    package: str
    version: str
    file: str
    missing: str
    requests: int = 0
    first_ms: int = 0
    last_ms: int = 0
    items: set[int] = Factory(set)

    def add(self, each: Requests) -> None:
        """Count the fetches of a day."""
        self.first_ms = min(self.first_ms, each.first_ms) if self.requests else each.first_ms
        self.last_ms = max(self.last_ms, each.last_ms)
        self.requests += each.count
        self.items.add(each.item_id)


@frozen
class Judgement:
    """
    What is decided, and what each rule says of itself.

    ``met`` are the names of the rules that match, ``by_missing`` of those for which data that are not known decided, so
    that they match, and ``passed`` of those that do not match since data are not known.
    """

    verdict: Verdict = SERVED
    met: Set[str] = frozenset()
    by_missing: frozenset[str] = frozenset()
    passed: frozenset[str] = frozenset()


Decide = Callable[[Facts, int], Verdict]  # over facts, at a time


class Trials:
    """
    What rules say of something at some time. ``decide`` is the decision that serving asks.

    Between two times at which a rule begins or ends to match, which are days apart, that is the same, and is not worked
    out for each fetch. With ``each`` it is: the decision asks for other things, too, which have times of their own.
    """

    def __init__(self, rules: PackageRules, decide: Decide, *, each: bool = False) -> None:
        self._each = each
        self._rules = rules
        self._decide = decide
        self._days = {each.placed.rule.match.age_days for each in rules.rules} - {None}
        self._ends = [each.ends_ms for each in rules.rules if each.ends_ms is not None]
        self._kept: dict[tuple[int, int], tuple[Facts, Judgement]] = {}

    def __call__(self, facts: Facts, at_ms: int) -> Judgement:
        """The judgement over facts at a time."""
        changes = list(self._ends)
        if facts.published_ms is not None:
            changes += [facts.published_ms + days * DAY_MS for days in self._days if days is not None]
        key = id(facts), at_ms if self._each else sum(each <= at_ms for each in changes)
        if key not in self._kept:
            found = [(each.placed.rule.name, each.matches(facts, at_ms)) for each in self._rules.rules]
            verdict = self._decide(facts, at_ms)
            of_origin = set() if verdict.by is None else {verdict.by.rule.name}  # by what it is made of
            judgement = Judgement(
                verdict,
                of_origin.union(name for name, match in found if match.met),
                frozenset(name for name, match in found if match.met and match.missing),
                frozenset(name for name, match in found if match.missing and not match.met),
            )
            self._kept[key] = facts, judgement  # with them, an id stays theirs
        return self._kept[key][1]


@frozen
class Stored:
    """A version that is stored and would be refused; ``opens_ms`` is when that ends by itself."""

    rule: PolicyRule
    repository: str
    package: str
    version: str
    file: str
    missing: str
    opens_ms: int | None


@define
class Found:
    """What was found so far: sums by the names of rules and what is counted, and the versions."""

    sums: Counter[tuple[str, str]] = Factory(Counter)
    refused: dict[tuple[str, int, str, str, str], Refused] = Factory(dict)
    stored: list[Stored] = Factory(list)
    refused_requests: int = 0
    refused_stored: int = 0
    packages: int = 0
    checked_requests: int = 0
    left_out: int = 0

    def add_requests(self, each: Requests, judgement: Judgement, file: str = "") -> None:
        """Count the fetches of an item on a day; ``file`` is its name, if other files of the version are served."""
        self.checked_requests += each.count
        self._count("requests", [judgement], each.count)
        verdict = judgement.verdict
        if verdict.by is None:
            return
        self.refused_requests += each.count
        rule = verdict.by.rule
        key = rule.name, each.repository_id, each.package_key, each.version_key, file
        if key not in self.refused:
            if len(self.refused) >= MOST_KEPT:
                self.left_out += 1
                return
            self.refused[key] = Refused(rule, each.repository, each.package, each.version, file, verdict.missing)
        self.refused[key].add(each)

    def add_version(
        self, repository: Repository, package: str, version: str, judgements: Mapping[str, Judgement]
    ) -> None:
        """Count a version that is stored; the judgements are those of its files, by their names."""
        self._count("versions", judgements.values(), 1)
        refused = {file: each.verdict for file, each in judgements.items() if not each.verdict.served}
        if not refused:
            return
        self.refused_stored += 1
        if len(refused) == len(judgements):
            refused = {"": next(iter(refused.values()))}
        for file, verdict in refused.items():
            if len(self.stored) < MOST_ROWS and verdict.by is not None:
                rule, missing = verdict.by.rule, verdict.missing
                self.stored.append(Stored(rule, repository.path, package, version, file, missing, verdict.opens_ms))

    def _count(self, what: str, judgements: Collection[Judgement], count: int) -> None:
        for kind, names in (
            ("", {name for each in judgements for name in each.met}),
            ("missing_", {name for each in judgements for name in each.by_missing}),
            ("passed_", {name for each in judgements for name in each.passed}),
        ):
            for name in names:
                self.sums[name, f"{kind}{what}"] += count


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
        rows = await self._catalog.scan(_refused_rows, refused[:MOST_ROWS])
        return _result(found, rows, len(refused), self._rules, self._days)

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
                        judgement = Trials(of_package, of_package.decide)(_named(each, ""), each.first_ms)
                    found.add_requests(each, judgement)
                else:
                    found.left_out += 1


@frozen(eq=False)
class Trial:
    """Tries rules on the packages of one repository."""

    found: Found
    repository: Repository
    format: StoredFormat
    rules: RuleSet
    origins: Origins | None
    from_day: int
    now_ms: int
    advisories: Knowledge | None
    histories: Mapping[str, History] = MappingProxyType({})
    archives: ArchiveAddresses | None = None

    def read_packages(self, r: Reader, after: str) -> str | None:
        """Try them on ``BATCH`` packages with keys above ``after``; the last of these keys, None at the end."""
        gil = GilReleaser()
        names = page_of_names(r, self.repository.id, after, BATCH)
        for each in names:
            self.found.packages += 1
            rules = self.rules.of(each.key)
            if rules is not None:
                self._try(r, rules, each.id, each.key, each.name)
            gil.release_if_due()
        return names[-1].key if len(names) == BATCH else None

    def _try(self, r: Reader, rules: PackageRules, package_id: int, key: str, name: str) -> None:
        if self.format.images is not None:
            return self._try_image(r, rules, package_id, key, name)
        state, known = self.advisories, None
        if state is not None and state.stored and "advisories" in rules.needs:
            known = advisories_on(r, self.format, key)
        complete = state is not None and state.complete
        judge = Judge(
            self.format,
            rules,
            self.repository,
            self.now_ms,
            known=known,
            complete=complete,
            origins=self.origins,
            facts=known_contents(r, self.format, key, rules.needs),
            history=self.histories.get(key) or wanted_history(r, self.format, self.repository, key, rules.needs),
            believes=True,
            archives=self.archives,
        )
        judge = with_stored(judge, r)
        # what a file is made of has rules and times of its own, and so have the versions before it
        each_time = self.origins is not None or "differs" in rules.needs
        trials, gil = Trials(rules, judge.decide, each=each_time), GilReleaser()
        by_digest: dict[str, tuple[Facts, str]] = {}
        by_version: dict[str, Facts] = {}
        for stored in judge.stored(r, package_id):
            files = [(file.path.rpartition("/")[2], facts) for file, facts in stored.files] or [("", stored.facts)]
            judgements = {file: trials(facts, self.now_ms) for file, facts in files}
            self.found.add_version(self.repository, name, stored.version.text, judgements)
            by_version[stored.version.key] = files[0][1] if len(files) == 1 else stored.facts
            names = {id(facts): file for file, facts in files} if len(files) > 1 else {}
            by_digest |= {sha256: (facts, names.get(id(facts), "")) for sha256, facts in stored.by_digest().items()}
            gil.release_if_due()

        def facts_of(each: Requests) -> tuple[Facts, str]:
            digest = "" if each.sha256 is None else each.sha256.hex()
            found = by_digest.get(digest)
            if found is not None and each.version in found[0].versions:
                return found
            return by_version.get(each.version_key) or _named(each, self._source), ""

        self._try_requests(r, key, facts_of, trials)
        return None

    def _try_image(self, r: Reader, rules: PackageRules, package_id: int, key: str, name: str) -> None:
        known: dict[str, Facts] = {}
        relations: dict[int, Relations] = {}
        gil = GilReleaser()

        def decide(facts: Facts, at_ms: int) -> Verdict:
            found = relations.get(id(facts))
            if found is None:
                return rules.decide(facts, at_ms)
            return ImageJudge(rules, self.repository, key, at_ms).of_manifest(r, found)

        trials = Trials(rules, decide, each=True)
        for digest in manifest_ages(r, package_id):
            found = find_relations(r, self.repository.id, key, digest)
            facts = known[digest] = facts_of_image(self.repository, key, found)
            relations[id(facts)] = found
            self.found.add_version(self.repository, name, facts.versions[0], {"": trials(facts, self.now_ms)})
            gil.release_if_due()

        def facts_of(each: Requests) -> tuple[Facts, str]:
            digest = "" if each.sha256 is None else f"sha256:{each.sha256.hex()}"
            facts = known.get(each.version_key) or known.get(digest)
            if facts is None:
                return _named(each, self._source), ""
            if each.version in facts.versions:
                return facts, ""
            found = relations[id(facts)]  # a tag that was moved since
            moved = known[f"{digest} {each.version}"] = evolve(facts, versions=(each.version, *facts.versions))
            relations[id(moved)] = evolve(found, tags=(each.version, *found.tags))
            return moved, ""

        self._try_requests(r, key, facts_of, trials)

    def _try_requests(
        self, r: Reader, key: str, facts_of: Callable[[Requests], tuple[Facts, str]], trials: Trials
    ) -> None:
        of_items: dict[int, tuple[Facts, str]] = {}
        gil = GilReleaser()
        for each in requests_of_package(r, self.repository.id, key, self.from_day):
            if each.item_id not in of_items:
                of_items[each.item_id] = facts_of(each)
            facts, file = of_items[each.item_id]
            self.found.add_requests(each, trials(facts, each.first_ms), file)
            gil.release_if_due()

    @property
    def _source(self) -> str:
        return CACHED if self.repository.type is RepositoryType.PROXY else HOSTED


def _named(each: Requests, source: str) -> Facts:
    """What is known of something that is not stored any more."""
    digests = frozenset[str]() if each.sha256 is None else frozenset({f"sha256:{each.sha256.hex()}"})
    return Facts(package=each.package_key, versions=(each.version,), source=source or HOSTED, digests=digests)


def _refused_rows(r: Reader, refused: Iterable[Refused]) -> list[dict[str, Any]]:
    rows = []
    for each in refused:
        days = each.first_ms // DAY_MS, each.last_ms // DAY_MS
        users = clients_of_items(r, sorted(each.items)[:BATCH], *days, MOST_USERS + 1)
        rows.append(
            {
                "rule": each.rule.name,
                "action": each.rule.action,
                "repository": each.repository,
                "package": each.package,
                "version": each.version,
                "file": each.file,
                "requests": each.requests,
                "users": users[:MOST_USERS],
                "more_users": len(users) > MOST_USERS,
                "first_at": _text(each.first_ms),
                "last_at": _text(each.last_ms),
                "missing": each.missing,
            }
        )
    return rows


def _result(
    found: Found, rows: list[dict[str, Any]], versions: int, rules: Sequence[PolicyRule], days: int
) -> Mapping[str, Any]:
    return {
        "refused": rows,
        "refused_requests": found.refused_requests,
        "refused_versions": versions,
        "stored": [
            {
                "rule": each.rule.name,
                "action": each.rule.action,
                "repository": each.repository,
                "package": each.package,
                "version": each.version,
                "file": each.file,
                "missing": each.missing,
                "opens_at": None if each.opens_ms is None else _text(each.opens_ms),
            }
            for each in found.stored
        ],
        "refused_stored": found.refused_stored,
        "rules": [
            {
                "rule": each.name,
                "action": each.action,
                "missing": each.missing,
                **{what: found.sums[each.name, what] for what in COUNTED},
            }
            for each in rules
        ],
        "days": days,
        "packages": found.packages,
        "requests": found.checked_requests,
        "truncated": found.left_out > 0,
    }


def _text(ms: int) -> str:
    return from_ms(ms).isoformat().replace("+00:00", "Z")
