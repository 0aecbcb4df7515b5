"""What rules say of the packages of one repository: of what is stored, and of each fetch at its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from attrs import evolve, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.repositories.advisories.known import Knowledge
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.archive_addresses import ArchiveAddresses
from pkgrepo.repositories.policy.conditions import CACHED, DAY_MS, HOSTED, Facts
from pkgrepo.repositories.policy.facts import advisories_on, facts_of_image, known_contents
from pkgrepo.repositories.policy.histories import wanted_history
from pkgrepo.repositories.policy.image_judge import ImageJudge
from pkgrepo.repositories.policy.judge import Judge, with_stored
from pkgrepo.repositories.policy.origins import Origins
from pkgrepo.repositories.policy.rules import PackageRules, RuleSet, Verdict
from pkgrepo.repositories.policy.trust import History
from pkgrepo.storage.catalog.images.relations import Relations, find_relations
from pkgrepo.storage.catalog.images.retained import manifest_ages
from pkgrepo.storage.catalog.logged_requests import (
    Requests,
    requests_of_package,
)
from pkgrepo.storage.catalog.packages.retained import page_of_names

from .found import BATCH, Found, Judgement

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
            return by_version.get(each.version_key) or named(each, self._source), ""

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
                return named(each, self._source), ""
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


def named(each: Requests, source: str) -> Facts:
    """What is known of something that is not stored any more."""
    digests = frozenset[str]() if each.sha256 is None else frozenset({f"sha256:{each.sha256.hex()}"})
    return Facts(package=each.package_key, versions=(each.version,), source=source or HOSTED, digests=digests)
