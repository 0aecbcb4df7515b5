"""The conditions of rules, as tests of what is known of a version, a file or a manifest: pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase, translate
from functools import cached_property
from typing import Any, Final

from attrs import define, frozen

from pkgrepo.archives.explained import Explained
from pkgrepo.archives.inside import NO_SHAPE, Difference, Shape, Word
from pkgrepo.archives.licence_texts import names_in
from pkgrepo.errors import Invalid
from pkgrepo.model.advisories import SEVERITIES, Advisory, MalwareNames
from pkgrepo.repositories.version_ranges import Test

from .differences import MOST_NAMED, NO_LINE, Compared, printed
from .schema import MALWARE, Action, Datum, Order, PolicyRule, needs_of, time_ms, until_ms, version_of
from .trust import Trust

DAY_MS: Final = 24 * 3600 * 1000
SERVER: Final = "the server"  # the owner of rules for all repositories
HOSTED: Final = "hosted"
CACHED: Final = "cached"
DECLARED: Final[frozenset[Datum]] = frozenset({"licences", "install_scripts"})  # what only metadata tell
CONTENTS: Final[frozenset[Datum]] = frozenset({"contents"})
TRUST: Final[frozenset[Datum]] = frozenset({"trust"})
SHAPE: Final[frozenset[Datum]] = frozenset({"differs", "licences_inside"})  # what else files have inside
INSIDE: Final[frozenset[Datum]] = CONTENTS | SHAPE  # for which archives are looked into
OF_BYTES: Final[frozenset[Datum]] = INSIDE | {"digests"}  # what is read of the bytes of a file
METADATA: Final[frozenset[Datum]] = DECLARED | TRUST | {"differs"}  # for which the metadata of versions are read
PUBLICATION: Final = "the time of publication"
CALLED: Final[Mapping[Datum, str]] = {  # in sentences
    "age": PUBLICATION,
    "licences": "the licence",
    "advisories": "whether it has vulnerabilities",
    "install_scripts": "whether it runs a program when it is installed",
    "contents": "what it has inside",
    "licences_inside": "which licences its files have",
    "trust": "whether it comes with less trust",
    "labels": "labels",
    "differs": "how it differs from the version before",
}


@frozen(kw_only=True)
class Facts:
    """
    What is known of a version, a file or a manifest.

    ``package`` is a key. ``versions`` are the texts by which it may be called: one, or the tags of a manifest and its
    digest. ``published_ms``, ``licences``, ``install_scripts`` and ``advisories`` are None if they are not known. With
    ``first_seen`` the upstream gives no date, and ``published_ms`` is when this server first saw it. There may be
    further ``advisories`` unless they are ``complete``. ``contents`` are what its bytes have inside, None if
    these were not read, or could not be; ``shape`` is what else they say that is compared between versions; they
    were ``looked_into`` if both were read, or cannot be.
    ``told`` is what the metadata of the version say of that, and ``explained`` what the archive of its source does not
    explain. ``compare`` compares these facts with those of the version
    before, at a time (ms); None if there is nothing to compare with. ``trust`` is None if it is not known what is
    claimed. ``unread`` are data that the file tells, and which were not read for this question: whether they are
    missing is decided when the file is asked for.
    ``digests`` are those of the file, of all files of a version, or of a manifest and those around it, as
    ``sha256:<hex>``. ``source`` is ``HOSTED`` or ``CACHED``; ``route`` is the name of the upstream's route. ``labels``
    are those of an image for each of its platforms, None for one whose labels are not known.
    ``added_ms`` is when a file was added, if that may be later than the version. Of what is ``unreadable`` there are
    data, which this server cannot read: rules are about it, whatever they say of missing ones.
    What is derived from something in another repository has a ``decision`` in place of that of the rules: it is given
    these facts and a time, and returns a L{Verdict}.
    """

    package: str
    versions: tuple[str, ...] = ()
    published_ms: int | None = None
    source: str = HOSTED
    route: str = ""
    digests: frozenset[str] = frozenset()
    licences: tuple[str, ...] | None = None
    install_scripts: bool | None = None
    contents: frozenset[str] | None = None
    shape: Shape | None = None
    looked_into: bool = False
    told: Shape | None = None
    explained: Explained | None = None
    compare: Callable[[Facts, int], Compared] | None = None
    advisories: Sequence[Advisory] | None = None
    trust: Trust | None = None
    labels: Sequence[Mapping[str, str] | None] = ()
    added_ms: int | None = None
    unreadable: bool = False
    first_seen: bool = False
    complete: bool = True
    unread: frozenset[Datum] = frozenset()
    decision: Callable[[Facts, int], Any] | None = None


@frozen
class Match:
    """
    Whether a rule is ``met``, and when that ends by itself (None: never).

    ``missing`` are the data that are not known, as words: it is met by that, or is not since it lets that pass.
    ``because`` says what was found, as a clause, where the rule alone does not tell. ``before`` is the version from
    which something is different, if it is met by that.
    """

    met: bool
    missing: str = ""
    opens_ms: int | None = None
    because: str = ""
    before: str = ""


NOT_MET: Final = Match(False)


@frozen
class Placed:
    """
    A rule, and whose it is: the path of a repository, or ``SERVER``.

    That of a dated view hides what was published after ``later_ms``, or at an unknown time. The one that the server has
    of its own is about packages that ``malware`` may have.
    """

    rule: PolicyRule
    owner: str
    block: str = ""  # the id of the block that it stands for
    short: bool = False  # it stands for ``minimum_release_age``
    frozen: bool = False  # it stands for a freeze
    wide: bool = False  # it is a block or a freeze of several repositories, which only system managers remove
    later_ms: int | None = None
    malware: MalwareNames | None = None


@define(eq=False, slots=False)
class CompiledRule:
    """A rule with its conditions as tests of facts."""

    placed: Placed
    order: Order

    @property
    def action(self) -> Action:
        """What it does with what it is about."""
        return self.placed.rule.action

    def acts(self, match: Match) -> Action:
        """What it does by a match: where data are missing, it may say something else."""
        by_missing = bool(match.missing) and self.placed.rule.missing == "quarantine"
        return "quarantine" if by_missing else self.action

    @property
    def refuses(self) -> bool:
        """Whether it may refuse anything."""
        return self.action != "warn" or self.placed.rule.missing == "quarantine"

    @cached_property
    def ends_ms(self) -> int | None:
        """When it ends; None for never."""
        return until_ms(self.placed.rule)

    @cached_property
    def after_ms(self) -> int | None:
        """After which time what it is about was published; None if that does not matter."""
        return time_ms(self.placed.rule.match.published_after)

    @cached_property
    def _packages(self) -> Callable[[str], object] | None:
        globs = [self.order.folded(each) for each in self.placed.rule.match.packages]
        return re.compile("|".join(map(translate, globs))).match if globs else None

    @cached_property
    def _exempt(self) -> list[tuple[str, Test | None]]:
        """Patterns of names, each with a test of versions; None: all versions."""
        found = []
        for each in self.placed.rule.exempt:
            name, version = version_of(each)
            found.append((self.order.folded(name), self._test(version, unknown=False) if version else None))
        return found

    @cached_property
    def _versions(self) -> Test:
        """
        A test of a version. A version that is none for this format is within every range: what is not understood is not
        let through. Only tags such as latest are in no range: an image is judged by all tags that point to it.
        """
        return self._test(self.placed.rule.match.versions, unknown=not self.order.tags)

    def _test(self, text: str, *, unknown: bool) -> Test:
        """A test of a version. A range that means nothing in this format is about no version of it."""
        try:
            return self.order.ranges.test(text, unknown=unknown)
        except Invalid:
            return lambda _version: False

    @cached_property
    def _digests(self) -> frozenset[str]:
        return frozenset(each.lower() for each in self.placed.rule.match.digests)

    @cached_property
    def needs(self) -> frozenset[Datum]:
        """What it asks for beside names, versions and sources."""
        return needs_of(self.placed.rule.match)

    @cached_property
    def _asked(self) -> Sequence[tuple[Datum, Callable[[Facts, int], bool | None]]]:
        """The conditions about data, as tests: whether it is met, or None if the datum is not known."""
        tests: dict[Datum, Callable[[Facts, int], bool | None]] = {
            "age": self._fits_age,
            "licences": lambda facts, _now_ms: self._fits_licence(facts),
            "advisories": lambda facts, _now_ms: self._fits_advisory(facts),
            "install_scripts": lambda facts, _now_ms: self._fits_scripts(facts),
            "contents": lambda facts, _now_ms: self._fits_contents(facts),
            "licences_inside": lambda facts, _now_ms: self._fits_licences_inside(facts),
            "trust": lambda facts, _now_ms: self._fits_trust(facts),
            "labels": lambda facts, _now_ms: self._fits_labels(facts),
            "differs": self._fits_differs,  # the last one: where another is not met, nothing is compared
        }
        return [(datum, test) for datum, test in tests.items() if datum in self.needs]

    def takes_package(self, package: str) -> bool:
        """Whether it may be about some version of a package (a key)."""
        if not self._can_be_met:
            return False
        malware = self.placed.malware
        if malware is not None and not malware.may_have(self.order.ecosystem, package):
            return False
        name = self.order.folded(package)
        if self._packages is not None and not self._packages(name):
            return False
        return not any(version is None and fnmatchcase(name, glob) for glob, version in self._exempt)

    def matches(self, facts: Facts, now_ms: int) -> Match:
        """
        Whether it is about something of a package that it takes.

        A condition about what the format does not have at all is not met.
        """
        if (self.ends_ms is not None and self.ends_ms <= now_ms) or not self._can_be_met:
            return NOT_MET
        if not self._fits_names(facts):
            return NOT_MET
        missing = list[Datum]()
        for datum, test in self._asked:
            met = test(facts, now_ms)
            if met is False:
                return NOT_MET
            if met is None:
                missing.append(datum)
        words = " and ".join(CALLED[each] for each in missing)
        if all(self._counts_missing(each, facts, now_ms) for each in missing):
            opens = [each for each in (self.ends_ms, self._old_ms(facts)) if each is not None]
            return Match(
                True, words, min(opens, default=None), self._because(facts, now_ms), self._before(facts, now_ms)
            )
        return Match(False, words)

    @cached_property
    def _can_be_met(self) -> bool:
        match, order = self.placed.rule.match, self.order
        inside = not match.contents or bool(self._looked_for)
        return self.needs <= order.tells and inside and (not match.differs or bool(self._compared))

    @cached_property
    def _compared(self) -> frozenset[Difference]:
        return self.order.differs & {*self.placed.rule.match.differs}

    @cached_property
    def _looked_for(self) -> frozenset[Word]:
        return self.order.contents & {*self.placed.rule.match.contents}

    def _fits_differs(self, facts: Facts, now_ms: int) -> bool | None:
        found = NO_LINE if facts.compare is None else facts.compare(facts, now_ms)
        if self._compared & found.words.keys():
            return True
        return None if self._compared & found.unknown else False

    def _old_ms(self, facts: Facts) -> int | None:
        """When something is old enough; None for never, and if nothing says when it was published."""
        days = self.placed.rule.match.age_days
        if days is None or facts.published_ms is None or (facts.first_seen and self.placed.rule.missing == "allow"):
            return None
        return facts.published_ms + days * DAY_MS

    def _fits_age(self, facts: Facts, now_ms: int) -> bool | None:
        found: list[bool | None] = []
        if self.placed.rule.match.age_days is not None:
            old_ms = self._old_ms(facts)
            found.append(None if old_ms is None else old_ms > now_ms)
        if self.after_ms is not None:
            times = [each for each in (facts.published_ms, facts.added_ms) if each is not None]
            undated = not times or (facts.first_seen and self.placed.rule.missing == "allow")
            found.append(None if undated else max(times) > self.after_ms)
        return False if False in found else None if None in found else True

    def _counts_missing(self, datum: Datum, facts: Facts, now_ms: int) -> bool:
        if datum in facts.unread and (datum != "differs" or self._lacks(facts, now_ms)):
            return False
        if facts.unreadable and datum in METADATA:
            return True
        stated = self.placed.rule.missing
        return stated != "allow" if stated is not None else datum == "age"

    @staticmethod
    def _lacks(facts: Facts, now_ms: int) -> bool:
        """Whether something that is compared was not read yet."""
        return facts.compare is None or facts.compare(facts, now_ms).is_open

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
        exempt = [version for glob, version in self._exempt if version is not None and fnmatchcase(name, glob)]
        return not any(test(each) for test in exempt for each in facts.versions)

    def fits_versions(self, facts: Facts) -> bool:
        """Whether it is about these versions."""
        return not self.placed.rule.match.versions or any(map(self._versions, facts.versions))

    def _fits_licence(self, facts: Facts) -> bool | None:
        if not facts.licences:
            return None
        said = [each for text in facts.licences for each in _licences(text)]
        return bool(_like(said, self.placed.rule.match.licences))

    def _fits_licences_inside(self, facts: Facts) -> bool | None:
        """Whether one fits; a file that has none at all is as one whose licences are not known."""
        said = None if facts.shape is None else facts.shape.licences
        return bool(_like(said, self.placed.rule.match.licences_inside)) if said else None

    def _fits_advisory(self, facts: Facts) -> bool | None:
        if facts.advisories is None:
            return None
        if any(map(self._asks_for, facts.advisories)):
            return True
        return False if facts.complete else None

    def _asks_for(self, advisory: Advisory) -> bool:
        wanted = self.placed.rule.match.advisories
        if wanted in SEVERITIES:
            return SEVERITIES.index(advisory.severity) >= SEVERITIES.index(wanted)
        if wanted == MALWARE:
            return advisory.is_malware
        return wanted in ("any", advisory.id, advisory.shown_as, *advisory.aliases)

    def _fits_scripts(self, facts: Facts) -> bool | None:
        return (
            None if facts.install_scripts is None else self.placed.rule.match.install_scripts == facts.install_scripts
        )

    def _fits_contents(self, facts: Facts) -> bool | None:
        return None if facts.contents is None else not facts.contents.isdisjoint(self._looked_for)

    def _fits_trust(self, facts: Facts) -> bool | None:
        wanted = self.placed.rule.match.trust
        return None if facts.trust is None or wanted is None else facts.trust.is_below(wanted)

    def _before(self, facts: Facts, now_ms: int) -> str:
        """The version from which something is different that it asks for."""
        if not self._compared or facts.compare is None:
            return ""
        return facts.compare(facts, now_ms).before(self._compared)

    def _because(self, facts: Facts, now_ms: int) -> str:
        """What was found: known malware, what is inside, why it is trusted less, and what is different."""
        wanted, found = self.placed.rule.match.trust, list[str]()
        if self.placed.rule.match.advisories == MALWARE:
            found = sorted(each.id for each in facts.advisories or () if each.is_malware)
        inside = self._looked_for & (facts.contents or frozenset())
        if inside:
            found.append(_inside(sorted(inside), facts.shape or NO_SHAPE))
        licences = () if facts.shape is None else facts.shape.licences or ()
        if matching := _like(licences, self.placed.rule.match.licences_inside):
            found.append(f"{', '.join(map(printed, matching[:MOST_NAMED]))} inside")
        if (
            wanted is not None
            and (trust := facts.trust) is not None
            and (trust.is_below(wanted) or trust.is_lacking(wanted))
        ):
            found.append(trust.why(wanted))
        if self._compared and facts.compare is not None:
            found.append(facts.compare(facts, now_ms).sentence(self._compared))
        return ", ".join(filter(None, found))

    def _fits_labels(self, facts: Facts) -> bool | None:
        """Whether the labels of some platform fit; all that the rule names have to be there."""
        globs = [(key, glob.casefold()) for key, glob in self.placed.rule.match.labels.items()]
        known = [each for each in facts.labels if each is not None]
        if any(all(key in each and fnmatchcase(each[key].casefold(), glob) for key, glob in globs) for each in known):
            return True
        return False if facts.labels and len(known) == len(facts.labels) else None


class LaterRule(CompiledRule):
    """That of a view of the past: it hides what was published after its ``later_ms``, or at an unknown time."""

    def matches(self, facts: Facts, now_ms: int) -> Match:  # noqa: ARG002 - that is no matter
        """See the base class."""
        later_ms = self.placed.later_ms
        assert later_ms is not None
        published = [each for each in (facts.published_ms, facts.added_ms) if each is not None]
        return Match(not published or max(published) > later_ms, "" if published else PUBLICATION)


def _like(said: Sequence[str], globs: Sequence[str]) -> list[str]:
    """Those of some texts that are like a pattern; case does not matter."""
    folded = [glob.casefold() for glob in globs]
    return [each for each in said if any(fnmatchcase(each.casefold(), glob) for glob in folded)]


def _inside(words: Sequence[str], shape: Shape) -> str:
    """What is inside, with the first of the programs with setuid, and what root runs."""
    programs, runs = shape.programs, f" running {printed(' '.join(shape.runs))}" if shape.runs else ""
    more = {"setuid": " ".join(("", *map(printed, programs[:MOST_NAMED]))), "root_user": runs}
    shown = [f"{each}{more.get(each, '')}" for each in words]
    rest = len(programs) - MOST_NAMED
    return f"{', '.join(shown)}{f' and {rest} more' if rest > 0 and 'setuid' in words else ''} inside"


def _licences(text: str) -> list[str]:
    """The licences in an SPDX expression, or in a free text, and the whole of it."""
    return [text.strip(), *names_in(text)]
