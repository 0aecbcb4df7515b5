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

A rule matches if all of its conditions are met, none of its exemptions is, and it has not ended. A condition of which
nothing is known is met if the rule says so by ``missing``: by default that of the age is, and others are not.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase, translate
from functools import cached_property
from typing import Final, Literal

import msgspec
from attrs import define, frozen

from pkgrepo.errors import Invalid
from pkgrepo.model.advisories import SEVERITIES, Advisory
from pkgrepo.repositories.version_ranges import Sort, is_range, pattern_test, range_test

from .schema import ALTERNATIVE, Action, PolicyRule, until_ms

DAY_MS: Final = 24 * 3600 * 1000
SERVER: Final = "the server"  # the owner of rules for all repositories
HOSTED: Final = "hosted"
CACHED: Final = "cached"
MOST_KEPT: Final = 1024  # packages whose rules are kept, of one set
_WILD: Final = frozenset("*?[")
_SEPARATORS: Final = re.compile(r"[-_.]+")  # PEP 503

Datum = Literal["age", "licences", "advisories", "install_scripts", "digests"]


@frozen(kw_only=True)
class Facts:
    """
    What is known of a version, a file or a manifest.

    ``package`` is a key. ``versions`` are the texts by which it may be called: one, or the tags of a manifest and its
    digest. ``published_ms``, ``licences``, ``install_scripts`` and ``advisories`` are None if they are not known.
    ``digests`` are those of the file, of all files of a version, or of a manifest and those around it, as
    ``sha256:<hex>``. ``source`` is ``HOSTED`` or ``CACHED``; ``route`` is the name of the upstream's route.
    """

    package: str
    versions: tuple[str, ...] = ()
    published_ms: int | None = None
    source: str = HOSTED
    route: str = ""
    digests: frozenset[str] = frozenset()
    licences: tuple[str, ...] | None = None
    install_scripts: bool | None = None
    advisories: Sequence[Advisory] | None = None


@frozen
class Placed:
    """A rule, and whose it is: the path of a repository, or ``SERVER``."""

    rule: PolicyRule
    owner: str
    block: str = ""  # the id of the block that it stands for
    short: bool = False  # it stands for ``minimum_release_age``


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
    change: None for never, and if it is served. ``warned`` are the rules that count it. ``version`` is what it is
    called.
    """

    by: Placed | None = None
    waits: bool = False
    denied: Ruling | None = None
    missing: str = ""
    opens_ms: int | None = None
    warned: tuple[Placed, ...] = ()
    version: str = ""

    @property
    def served(self) -> bool:
        """Whether it is served."""
        return self.by is None


SERVED: Final = Verdict()


@frozen
class Order:
    """
    What rules need of a format: the order of its versions (None for images), and how names are compared.

    With ``folds`` dashes, underscores and dots are the same in a name.
    """

    sort: Sort | None
    folds: bool = False

    @classmethod
    def of(cls, sort: Sort | None, package_key: Callable[[str], str]) -> Order:
        """That of a format, whose ``package_key`` makes the key of a name, or raises ``Invalid``."""
        try:
            return cls(sort, package_key("a_b") == package_key("a-b"))
        except Invalid:
            return cls(sort)

    def folded(self, name: str) -> str:
        """A name, or a pattern of names, as it is compared."""
        return _SEPARATORS.sub("-", name).casefold() if self.folds else name.casefold()


@define(eq=False, slots=False)
class CompiledRule:
    """A rule with its conditions as tests of facts."""

    placed: Placed
    order: Order

    @property
    def action(self) -> Action:
        """What it does with what it is about."""
        return self.placed.rule.action

    @cached_property
    def ends_ms(self) -> int | None:
        """When it ends; None for never."""
        return until_ms(self.placed.rule)

    @cached_property
    def _packages(self) -> Callable[[str], object] | None:
        globs = [self.order.folded(each) for each in self.placed.rule.match.packages]
        return re.compile("|".join(map(translate, globs))).match if globs else None

    @cached_property
    def _exempt(self) -> list[tuple[str, str]]:
        """Patterns of names, each with one of versions; empty: all versions."""
        found = []
        for each in self.placed.rule.exempt:
            name, sign, version = each.rpartition("@")
            found.append((self.order.folded(name), version) if sign and name else (self.order.folded(each), ""))
        return found

    @cached_property
    def _versions(self) -> list[Callable[[str], object]]:
        return [self._version_test(each.strip()) for each in self.placed.rule.match.versions.split(ALTERNATIVE)]

    @cached_property
    def _digests(self) -> frozenset[str]:
        return frozenset(each.lower() for each in self.placed.rule.match.digests)

    @cached_property
    def needs(self) -> frozenset[Datum]:
        """What it asks for beside names, versions and sources."""
        match = self.placed.rule.match
        asked: dict[Datum, bool] = {
            "age": match.age_days is not None,
            "licences": bool(match.licences),
            "advisories": bool(match.advisories),
            "install_scripts": match.install_scripts is not None,
            "digests": bool(match.digests),
        }
        return frozenset(name for name, wanted in asked.items() if wanted)

    def takes_package(self, package: str) -> bool:
        """Whether it may be about some version of a package (a key)."""
        name = self.order.folded(package)
        if self._packages is not None and not self._packages(name):
            return False
        return not any(not version and fnmatchcase(name, glob) for glob, version in self._exempt)

    def matches(self, facts: Facts, now_ms: int) -> tuple[bool, str, int | None]:
        """
        Whether it is about something of a package that it takes.

        With the data that were missing for that, if any, and when that ends by itself (None: never).
        """
        match, missing, opens_ms = self.placed.rule.match, list[str](), self.ends_ms
        if self.ends_ms is not None and self.ends_ms <= now_ms:
            return False, "", None
        if not self._fits_names(facts):
            return False, "", None
        if match.age_days is not None:
            if facts.published_ms is None:
                if not self._counts_missing("age"):
                    return False, "", None
                missing.append("the time of publication")
            else:
                old_ms = facts.published_ms + match.age_days * DAY_MS
                if old_ms <= now_ms:
                    return False, "", None
                opens_ms = old_ms if opens_ms is None else min(opens_ms, old_ms)
        for datum, known, name in (
            ("licences", self._fits_licence(facts), "the licence"),
            ("advisories", self._fits_advisory(facts), "whether it has vulnerabilities"),
            ("install_scripts", self._fits_scripts(facts), "whether it runs a program when it is installed"),
        ):
            if known is False or (known is None and not self._counts_missing(datum)):
                return False, "", None
            if known is None:
                missing.append(name)
        return True, " and ".join(missing), opens_ms

    def _counts_missing(self, datum: str) -> bool:
        stated = self.placed.rule.missing
        return stated == "block" if stated is not None else datum == "age"

    def _fits_names(self, facts: Facts) -> bool:
        """Whether it is about these versions, digests and this source."""
        match = self.placed.rule.match
        if not self.fits_versions(facts):
            return False
        if self._digests and self._digests.isdisjoint(facts.digests):
            return False
        if match.source and match.source not in (facts.source, facts.route):
            return False
        name = self.order.folded(facts.package)
        exempt = [version for glob, version in self._exempt if version and fnmatchcase(name, glob)]
        return not any(fnmatchcase(each, glob) for glob in exempt for each in facts.versions)

    def fits_versions(self, facts: Facts) -> bool:
        """Whether it is about these versions."""
        wanted = self.placed.rule.match.versions
        return not wanted or any(test(each) for test in self._versions for each in facts.versions)

    def _fits_licence(self, facts: Facts) -> bool | None:
        globs = self.placed.rule.match.licences
        if not globs:
            return True
        if not facts.licences:
            return None
        return any(
            fnmatchcase(each.casefold(), glob.casefold()) for text in facts.licences for each in _licences(text)
            for glob in globs
        )  # fmt: skip

    def _fits_advisory(self, facts: Facts) -> bool | None:
        wanted = self.placed.rule.match.advisories
        if not wanted:
            return True
        if facts.advisories is None:
            return None
        if wanted == "any":
            return bool(facts.advisories)
        if wanted in SEVERITIES:
            least = SEVERITIES.index(wanted)
            return any(SEVERITIES.index(each.severity) >= least for each in facts.advisories)
        return any(wanted in (each.id, each.shown_as, *each.aliases) for each in facts.advisories)

    def _fits_scripts(self, facts: Facts) -> bool | None:
        wanted = self.placed.rule.match.install_scripts
        if wanted is None or facts.install_scripts is None:
            return None if wanted is not None else True
        return wanted == facts.install_scripts

    def _version_test(self, text: str) -> Callable[[str], object]:
        """
        A test of a version. A range that means nothing in this format is about no version of it.

        A version that is none for this format is within every range: what is not understood is not let through.
        """
        sort = self.order.sort
        if is_range(text):
            try:
                return range_test(text, sort, "", unknown=True)
            except Invalid:
                return lambda _version: False
        matches = pattern_test(text)
        try:
            key = None if sort is None else sort(text)
        except Invalid:  # a pattern
            return matches
        return lambda version: matches(version) or (sort is not None and key == _sort_or_none(sort, version))


@frozen(eq=False, slots=False)
class PackageRules:
    """
    The rules that may be about a package; ``rulings`` are the decisions of admins, by version.

    ``stamp`` is the same for rules that decide alike.
    """

    package: str
    rules: Sequence[CompiledRule]
    rulings: Mapping[str, Ruling]
    needs: frozenset[Datum]
    stamp: str

    def decide(self, facts: Facts, now_ms: int) -> Verdict:
        """What they say, see the table above."""
        warned: list[Placed] = []
        refusing: list[tuple[CompiledRule, str, int | None]] = []
        for rule in self.rules:
            matched, missing, opens_ms = rule.matches(facts, now_ms)
            if matched and rule.action == "warn":
                warned.append(rule.placed)
            elif matched:
                refusing.append((rule, missing, opens_ms))
        ruling = next((self.rulings[each] for each in facts.versions if each in self.rulings), None)
        if ruling is not None and ruling.approved:
            refusing = [each for each in refusing if each[0].action != "quarantine"]
        if ruling is not None and not ruling.approved and all(each[0].action != "block" for each in refusing):
            version = facts.versions[0] if facts.versions else ""
            named = PolicyRule(name="quarantine", reason=ruling.reason)
            return Verdict(by=Placed(named, ""), denied=ruling, warned=tuple(warned), version=version)
        if not refusing:
            return Verdict(warned=tuple(warned)) if warned else SERVED
        first, missing, _ = max(refusing, key=_weight)
        opens = [each[2] for each in refusing]
        return Verdict(
            version=facts.versions[0] if facts.versions else "",
            by=first.placed,
            waits=first.action == "quarantine",
            missing=missing,
            opens_ms=None if None in opens else max(each for each in opens if each is not None),
            warned=tuple(warned),
        )

    @cached_property
    def algorithms(self) -> frozenset[str]:
        """The algorithms of the digests that they name."""
        named = (digest for each in self.rules for digest in each.placed.rule.match.digests)
        return frozenset(each.partition(":")[0].lower() for each in named)

    @property
    def changes(self) -> bool:
        """Whether time alone changes verdicts, as things get older."""
        return "age" in self.needs

    @property
    def reads_metadata(self) -> bool:
        """Whether they ask for what only metadata tell."""
        return bool(self.needs & {"licences", "install_scripts"})

    def next_change_ms(self, published: Iterable[int | None], now_ms: int) -> int | None:
        """When time alone changes a verdict next, of things that were published then; None: never."""
        found = [each.ends_ms for each in self.rules if each.ends_ms is not None]
        days = {each.placed.rule.match.age_days for each in self.rules} - {None}
        if days:
            times = [each for each in published if each is not None]
            found += [each + day * DAY_MS for day in days if day is not None for each in times]
        return min((each for each in found if each > now_ms), default=None)


def _weight(refusing: tuple[CompiledRule, str, int | None]) -> tuple[bool, bool, int]:
    """Blocks come before what an admin may approve; of several the one that holds for longest is named."""
    rule, _, opens_ms = refusing
    return rule.action == "block", opens_ms is None, opens_ms or 0


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
        data: int = 0,
    ) -> None:
        self.rules = [CompiledRule(each, order) for each in rules]
        self._order = order
        self._general: list[int] = []  # the places of rules with patterns of names, or without any
        self._named: dict[str, list[int]] = {}  # those of the others, such as of thousands of blocks, by name
        for place, each in enumerate(rules):
            names = each.rule.match.packages
            if names and not any(_WILD & {*name} for name in names):
                for name in {order.folded(name) for name in names}:
                    self._named.setdefault(name, []).append(place)
            else:
                self._general.append(place)
        self._rulings: dict[str, dict[str, Ruling]] = {}
        for (package, version), ruling in (rulings or {}).items():
            self._rulings.setdefault(package, {})[version] = ruling
        self._kept: dict[str, PackageRules | None] = {}
        self._data = data

    @property
    def reads_metadata(self) -> bool:
        """Whether any rule asks for what only metadata tell."""
        return any(each.needs & {"licences", "install_scripts"} for each in self.rules)

    def of(self, package: str) -> PackageRules | None:
        """
        The rules that may be about a package (a key); None if none is.

        Of what belongs to no package, which has an empty key, only digests are asked for.
        """
        if package in self._kept:
            return self._kept[package]
        if package:
            places = sorted([*self._general, *self._named.get(self._order.folded(package), ())])
            found = [each for each in (self.rules[place] for place in places) if each.takes_package(package)]
        else:
            found = [each for each in self.rules if "digests" in each.needs]
        rulings = self._rulings.get(package, {})
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


def _sort_or_none(sort: Sort, version: str) -> bytes | None:
    try:
        return sort(version)
    except Invalid:
        return None


def _licences(text: str) -> list[str]:
    """The licences in an SPDX expression, or in a free text, and the whole of it."""
    parts = re.split(r"\s+(?:OR|AND|WITH)\s+|[()/,;]+", text)
    return [text.strip(), *(each.strip() for each in parts if each.strip())]
