"""
The decision whether something is served, and by which rule it is not: pure, over facts.

==========================  ========================================  ===============================================
rules that match            decision of an admin on the version       what happens
==========================  ========================================  ===============================================
one with ``block``          any                                       it is refused
none, or other ones         denied                                    it is refused
one with ``quarantine``     none                                      it is refused, and waits for a decision
one with ``quarantine``     approved                                  it is served
only ``warn``               none, or approved                         it is served, and counted for each rule
none                        none, or approved                         it is served
==========================  ========================================  ===============================================

A rule matches if all of its conditions are met, none of its exemptions is, and it has not ended. What a condition asks
for has one of three states:

==========================  ===========================================================================================
state                       the condition
==========================  ===========================================================================================
known                       is met or not
not known                   is met if the rule says so by ``missing``, which may turn it into one with
                            ``quarantine``. Of a rule that says nothing, which is of an
                            earlier release, that of the age is, and others are not
the format has no such      is not met: labels of what is no image, advisories of a format without a database; a rule
thing                       of a repository with such a condition is not accepted
==========================  ===========================================================================================

What the file tells and was not read for a list (``Facts.unread``) is decided when the file is asked for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec
from attrs import frozen

from pkgrepo.model import DatedView, Repository
from pkgrepo.repositories.version_ranges import WILD
from pkgrepo.storage.catalog.server.judged import Judged

from .conditions import DAY_MS, METADATA, NOT_MET, OF_BYTES, CompiledRule, Facts, LaterRule, Match, Placed
from .schema import Action, Datum, Order, PolicyRule

MOST_KEPT: Final = 1024  # packages whose rules are kept, of one set
MOST_VERSIONS: Final = 20_000  # that are known to be hidden or not, by one rule


@frozen(kw_only=True)
class Ruling:
    """A decision of an admin on a version in quarantine, with the reason."""

    approved: bool
    reason: str = ""


@frozen(kw_only=True)
class Verdict:
    """
    What rules say of something.

    ``by`` is the rule that refuses it, None if it is served. It ``waits`` if an admin may approve it. ``missing`` names
    the data that are not known and by which the rule decided. ``opens_ms`` is when it will be served without any
    change: None for never, and if it is served. ``warned`` are the rules that count it. ``passed`` are those that did
    not refuse or count it since data are not known, with these. ``version`` is what it is called. ``of`` is the
    repository, and the package there, of what something is derived from, if that was decided on. ``because`` says what
    was found, as a clause, where the rule alone does not tell, and ``before`` is the version from which something is
    different.
    """

    by: Placed | None = None
    waits: bool = False
    denied: Ruling | None = None
    missing: str = ""
    opens_ms: int | None = None
    warned: tuple[Placed, ...] = ()
    passed: tuple[tuple[Placed, str], ...] = ()
    version: str = ""
    of: tuple[Repository, str] | None = None
    because: str = ""
    before: str = ""

    @property
    def served(self) -> bool:
        """Whether it is served."""
        return self.by is None

    @property
    def why(self) -> str:
        """What was found, or is not known, and the reason of the rule; empty if there is nothing to say."""
        reason = "" if self.by is None else self.by.rule.reason
        missing = f"{self.missing} is not known" if self.missing else ""
        return ": ".join(filter(None, (self.because, reason, missing)))


SERVED: Final = Verdict()


@frozen(eq=False, slots=False)
class PackageRules:
    """
    The rules that may be about a package; ``rulings`` are the decisions of admins, by version.

    ``stamp`` is the same for rules that decide alike. ``at_ms`` is the time of the dated view that they are for.
    ``beyond`` are those of the parent of a companion, of what its files are made of.
    """

    package: str
    rules: Sequence[CompiledRule]
    rulings: Mapping[str, Ruling]
    needs: frozenset[Datum]
    stamp: str
    at_ms: int | None = None
    beyond: Sequence[PackageRules] = ()

    def decide(self, facts: Facts, now_ms: int) -> Verdict:
        """What they say, see the table above."""
        warned: list[Placed] = []
        passed: list[tuple[Placed, str]] = []
        refusing: list[tuple[CompiledRule, Match, Action]] = []
        for rule in self.rules:
            found = rule.matches(facts, now_ms)
            action = rule.acts(found)
            if found.met and action == "warn":
                warned.append(rule.placed)
            elif found.met:
                refusing.append((rule, found, action))
            elif found.missing:
                passed.append((rule.placed, found.missing))
        decided = [self.rulings[each] for each in facts.versions if each in self.rulings]
        ruling = min(decided, key=lambda each: each.approved, default=None)  # an image has several names: denials first
        if ruling is not None and ruling.approved:
            refusing = [each for each in refusing if each[2] != "quarantine"]
        if ruling is not None and not ruling.approved and all(each[2] != "block" for each in refusing):
            version = facts.versions[0] if facts.versions else ""
            named = PolicyRule(name="quarantine", reason=ruling.reason)
            return Verdict(
                by=Placed(named, ""), denied=ruling, warned=tuple(warned), passed=tuple(passed), version=version
            )
        if not refusing:
            return Verdict(warned=tuple(warned), passed=tuple(passed)) if warned or passed else SERVED
        first, match, action = max(refusing, key=_weight)
        opens = [each.opens_ms for _, each, _ in refusing]
        return Verdict(
            version=facts.versions[0] if facts.versions else "",
            by=first.placed,
            waits=action == "quarantine",
            missing=match.missing,
            because=match.because,
            before=match.before,
            opens_ms=None if None in opens else max(each for each in opens if each is not None),
            warned=tuple(warned),
            passed=tuple(passed),
        )

    def may_ask(self, facts: Facts, now_ms: int) -> frozenset[Datum]:
        """The data for which those rules ask that are not ruled out by what is known already."""
        asking = (each for each in self.rules if each.matches(facts, now_ms) is not NOT_MET)
        return frozenset[Datum]().union(*(each.needs for each in asking))

    @cached_property
    def asks_ages(self) -> bool:
        """Whether they ask when packages that a version needs were first published."""
        return any("young_dependency" in each.placed.rule.match.differs for each in self.rules)

    @cached_property
    def asks_sources(self) -> bool:
        """Whether they ask for what archives of the source do not explain."""
        return any("unexplained" in each.placed.rule.match.differs for each in self.rules)

    @cached_property
    def algorithms(self) -> frozenset[str]:
        """The algorithms of the digests that they name, also those beyond them."""
        named = (digest for each in self.rules for digest in each.placed.rule.match.digests)
        own = frozenset(each.partition(":")[0].lower() for each in named)
        return own.union(*(each.algorithms for each in self.beyond))

    @property
    def reads_digests(self) -> bool:
        """Whether they name digests that may not be known of a stored file: its sha256 always is."""
        return bool(self.algorithms - {"sha256"})

    @property
    def changes(self) -> bool:
        """Whether time alone changes verdicts, as things get older."""
        return "age" in self.needs

    @property
    def reads_metadata(self) -> bool:
        """Whether they ask for what only metadata tell."""
        return bool(self.needs & METADATA)

    def next_change_ms(self, published: Iterable[int | None], now_ms: int) -> int | None:
        """When time alone changes a verdict next, of things that were published then; None: never."""
        found = [each.ends_ms for each in self.rules if each.ends_ms is not None]
        days = {each.placed.rule.match.age_days for each in self.rules} - {None}
        if days:
            times = [each for each in published if each is not None]
            found += [each + day * DAY_MS for day in days if day is not None for each in times]
        return min((each for each in found if each > now_ms), default=None)


def _weight(refusing: tuple[CompiledRule, Match, Action]) -> tuple[bool, bool, int]:
    """Blocks come before what an admin may approve; of several the one that holds for longest is named."""
    _, match, action = refusing
    return action == "block", match.opens_ms is None, match.opens_ms or 0


class RuleSet:
    """
    The rules that hold for a repository, in one format; ``rulings`` are by package key and version.

    ``data`` differs whenever other advisories are known. There is no empty set: a repository without rules has none.
    """

    def __init__(
        self,
        rules: Sequence[Placed],
        order: Order,
        rulings: Mapping[tuple[str, str], Ruling] | None = None,
        data: tuple[int, int] = (0, 0),
    ) -> None:
        self.rules = [CompiledRule(each, order) for each in rules]
        self.order = order
        self._general: list[int] = []  # the places of rules with patterns of names, or without any
        self._named: dict[str, list[int]] = {}  # those of the others, such as of thousands of blocks, by name
        for place, each in enumerate(rules):
            names = each.rule.match.packages
            if names and not any(WILD & {*name} for name in names):
                for name in {order.folded(name) for name in names}:
                    self._named.setdefault(name, []).append(place)
            else:
                self._general.append(place)
        self.rulings: dict[str, dict[str, Ruling]] = {}
        for (package, version), ruling in (rulings or {}).items():
            self.rulings.setdefault(package, {})[version] = ruling
        self._kept: dict[str, PackageRules | None] = {}
        self._data = data

    def at(self, view: DatedView) -> RuleSet:
        """The same rules, and one more for documents of a view: what came later is hidden."""
        return _ViewRules(self, view)

    @property
    def reads_metadata(self) -> bool:
        """Whether any rule asks for what only metadata tell."""
        return any(each.needs & METADATA for each in self.rules)

    @property
    def reads_bytes(self) -> bool:
        """Whether any rule names a digest, or asks for what files have inside."""
        return any(each.needs & OF_BYTES for each in self.rules)

    def rules_about(self, package: str) -> list[CompiledRule]:
        """The rules that may be about some version of a package (a key)."""
        places = sorted([*self._general, *self._named.get(self.order.folded(package), ())])
        return [each for each in (self.rules[place] for place in places) if each.takes_package(package)]

    @property
    def decides_on_facts(self) -> bool:
        """Whether any rule hides something by more than names, versions and sources."""
        return any(each.needs and each.refuses for each in self.rules)

    def named(self, source: str, now_ms: int, judged: Iterable[Judged] = (), serial: int = 0) -> NamedRules | None:
        """
        The rules for lists of what comes from a source; None if nothing is left out by them.

        ``judged`` is what they were found to hide by facts, at a ``serial``.
        """
        found = NamedRules(self, source, now_ms, judged, serial)
        return found if found.count else None

    def of(self, package: str) -> PackageRules | None:
        """
        The rules that may be about a package (a key); None if none is.

        Of what belongs to no package, which has an empty key, only digests are asked for.
        """
        if package in self._kept:
            return self._kept[package]
        found = self.rules_about(package) if package else [each for each in self.rules if "digests" in each.needs]
        rulings = self.rulings.get(package, {})
        made = None
        if found or any(not each.approved for each in rulings.values()):
            needs = frozenset[Datum]().union(*(each.needs for each in found))
            made = PackageRules(package, found, rulings, needs, self._stamp(found, rulings, needs))
        if len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        self._kept[package] = made
        return made

    def _stamp(self, rules: Sequence[CompiledRule], rulings: Mapping[str, Ruling], needs: frozenset[Datum]) -> str:
        said = [
            [(each.placed.owner, each.placed.rule) for each in rules],
            sorted((version, ruling.approved, ruling.reason) for version, ruling in rulings.items()),
            self._data if "advisories" in needs else 0,
        ]
        return hashlib.sha256(msgspec.json.encode(said)).hexdigest()[:16]

    def decide(self, facts: Facts, now_ms: int) -> Verdict:
        """What the rules say of something; see ``PackageRules.decide``."""
        rules = self.of(facts.package)
        return SERVED if rules is None else rules.decide(facts, now_ms)


class _ViewRules(RuleSet):
    """The rules ``base`` for what a view shows. Views are many, and made again for each request: nothing is kept."""

    def __init__(self, base: RuleSet, view: DatedView) -> None:
        self._base = base
        self.order = base.order
        self._at_ms = view.at_ms
        placed = Placed(PolicyRule(name=view.text), "", later_ms=view.at_ms)
        self._later = LaterRule(placed, Order())

    @property
    def reads_metadata(self) -> bool:
        """See the base class."""
        return self._base.reads_metadata

    @property
    def reads_bytes(self) -> bool:
        """See the base class."""
        return self._base.reads_bytes

    def of(self, package: str) -> PackageRules | None:
        """Those about a package. What belongs to no package has no date."""
        found = self._base.of(package)
        if not package:
            return found
        stamp = f"{'' if found is None else found.stamp}@{self._at_ms}"
        if found is None:
            return PackageRules(package, [self._later], {}, frozenset(), stamp, self._at_ms)
        return PackageRules(package, [*found.rules, self._later], found.rulings, found.needs, stamp, self._at_ms)

    @property
    def decides_on_facts(self) -> bool:
        """See the base class."""
        return self._base.decides_on_facts

    def named(self, source: str, now_ms: int, judged: Iterable[Judged] = (), serial: int = 0) -> NamedRules | None:
        """The rules for lists: the same as at present."""
        return self._base.named(source, now_ms, judged, serial)


class NamedRules:
    """
    What lists over all packages leave out: what rules refuse by name, version and source alone, or what was denied.

    Of the other data a list does not tell anything, and nobody looks at each of 200,000 packages for it: by these they
    leave out what was ``judged``, which is what clients have asked for. The rules are those that hold at ``now_ms``;
    ``ends_ms`` is when the next of them ends, None for never. Those with equal ``stamp`` leave out the same.
    """

    def __init__(
        self, rules: RuleSet, source: str, now_ms: int, judged: Iterable[Judged] = (), serial: int = 0
    ) -> None:
        self._rules = rules
        self._source = source
        self._now_ms = now_ms
        self._known: dict[tuple[int, str, str, str], bool] = {}
        holding = [
            each
            for each in rules.rules
            if each.action != "warn" and not each.needs and (each.ends_ms is None or each.ends_ms > now_ms)
        ]
        self._holding = {id(each) for each in holding}
        denied = sum(not each.approved for found in rules.rulings.values() for each in found.values())
        self._judged: dict[str, set[str]] = {}
        ends = [each.ends_ms for each in holding if each.ends_ms is not None]
        for each in judged:
            hidden = {text: opens for text, opens in each.versions.items() if opens is None or opens > now_ms}
            about = rules.of(each.package_key) if hidden else None
            if about is not None and about.stamp == each.stamp:
                self._judged[each.package_key] = {*hidden}
                ends += [opens for opens in hidden.values() if opens is not None]
        self.count = len(holding) + denied + len(self._judged)
        self.stamp = len(holding) + denied, serial
        self.ends_ms = min(ends, default=None)

    def hides(self, package: str, versions: Sequence[str], route: str = "") -> set[str]:
        """The versions, of some of a package (a key), that the rules leave out."""
        rulings = self._rules.rulings.get(package, {})
        rules = [each for each in self._rules.rules_about(package) if id(each) in self._holding]
        hidden = self._judged.get(package, set()) & {*versions}
        if not rules and not rulings:
            return hidden
        for version in versions:
            ruling = rulings.get(version)
            if ruling is not None and not ruling.approved:
                hidden.add(version)
                continue
            held = rules if ruling is None else [each for each in rules if each.action == "block"]
            if any(self._fits(each, package, version, route) for each in held):
                hidden.add(version)
        return hidden

    def _fits(self, rule: CompiledRule, package: str, version: str, route: str) -> bool:
        """Whether a rule that takes the package is about a version: many packages have the same ones."""
        key = id(rule), version, route, package if rule.placed.rule.exempt else ""
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_VERSIONS:
                self._known.clear()
            facts = Facts(package=package, versions=(version,), source=self._source, route=route)
            known = self._known[key] = rule.matches(facts, self._now_ms).met
        return known
