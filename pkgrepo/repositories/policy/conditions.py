"""The conditions of rules, as tests of what is known of a version, a file or a manifest: pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase, translate
from functools import cached_property
from typing import Final, Literal

from attrs import define, frozen

from pkgrepo.errors import Invalid
from pkgrepo.model.advisories import SEVERITIES, Advisory
from pkgrepo.repositories.version_ranges import Sort, is_range, pattern_test, range_test

from .schema import ALTERNATIVE, Action, Order, PolicyRule, until_ms

DAY_MS: Final = 24 * 3600 * 1000
SERVER: Final = "the server"  # the owner of rules for all repositories
HOSTED: Final = "hosted"
CACHED: Final = "cached"
PUBLICATION: Final = "the time of publication"

Datum = Literal["age", "licences", "advisories", "install_scripts", "labels", "digests"]


@frozen(kw_only=True)
class Facts:
    """
    What is known of a version, a file or a manifest.

    ``package`` is a key. ``versions`` are the texts by which it may be called: one, or the tags of a manifest and its
    digest. ``published_ms``, ``licences``, ``install_scripts`` and ``advisories`` are None if they are not known.
    ``digests`` are those of the file, of all files of a version, or of a manifest and those around it, as
    ``sha256:<hex>``. ``source`` is ``HOSTED`` or ``CACHED``; ``route`` is the name of the upstream's route. ``labels``
    are those of an image for each of its platforms, None for one whose labels are not known.
    ``added_ms`` is when a file was added, if that may be later than the version. Of what is ``unreadable`` there are
    data, which this server cannot read: rules are about it, whatever they say of missing ones.
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
    labels: Sequence[Mapping[str, str] | None] = ()
    added_ms: int | None = None
    unreadable: bool = False


@frozen
class Placed:
    """
    A rule, and whose it is: the path of a repository, or ``SERVER``.

    That of a dated view hides what was published after ``later_ms``, or at an unknown time.
    """

    rule: PolicyRule
    owner: str
    block: str = ""  # the id of the block that it stands for
    short: bool = False  # it stands for ``minimum_release_age``
    wide: bool = False  # it is a block of several repositories, which only system managers remove
    later_ms: int | None = None


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
            "labels": bool(match.labels),
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
                missing.append(PUBLICATION)
            else:
                old_ms = facts.published_ms + match.age_days * DAY_MS
                if old_ms <= now_ms:
                    return False, "", None
                opens_ms = old_ms if opens_ms is None else min(opens_ms, old_ms)
        for datum, known, name in (
            ("licences", self._fits_licence(facts), "the licence"),
            ("advisories", self._fits_advisory(facts), "whether it has vulnerabilities"),
            ("install_scripts", self._fits_scripts(facts), "whether it runs a program when it is installed"),
            ("labels", self._fits_labels(facts), "labels"),
        ):
            if known is False or (known is None and not (facts.unreadable or self._counts_missing(datum))):
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
        said = [each.casefold() for text in facts.licences for each in _licences(text)]
        return any(fnmatchcase(each, glob.casefold()) for each in said for glob in globs)

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

    def _fits_labels(self, facts: Facts) -> bool | None:
        """Whether the labels of some platform fit; all that the rule names have to be there."""
        globs = [(key, glob.casefold()) for key, glob in self.placed.rule.match.labels.items()]
        if not globs:
            return True
        known = [each for each in facts.labels if each is not None]
        if any(all(key in each and fnmatchcase(each[key].casefold(), glob) for key, glob in globs) for each in known):
            return True
        return False if facts.labels and len(known) == len(facts.labels) else None

    def _version_test(self, text: str) -> Callable[[str], object]:
        """
        A test of a version. A range that means nothing in this format is about no version of it.

        A version that is none for this format is within every range: what is not understood is not let through. Only
        tags such as latest are in no range: an image is judged by all tags that point to it.
        """
        sort = self.order.sort
        if is_range(text):
            try:
                return range_test(text, sort, "", unknown=not self.order.tags)
            except Invalid:
                return lambda _version: False
        matches = pattern_test(text)
        if sort is None or self.order.tags:
            return matches
        try:
            key = sort(text)
        except Invalid:  # a pattern
            return matches
        return lambda version: matches(version) or key == _sort_or_none(sort, version)


class LaterRule(CompiledRule):
    """That of a view of the past: it hides what was published after its ``later_ms``, or at an unknown time."""

    def matches(self, facts: Facts, now_ms: int) -> tuple[bool, str, int | None]:  # noqa: ARG002 - that is no matter
        """See the base class."""
        later_ms = self.placed.later_ms
        assert later_ms is not None
        published = [each for each in (facts.published_ms, facts.added_ms) if each is not None]
        return not published or max(published) > later_ms, "" if published else PUBLICATION, None


def _sort_or_none(sort: Sort, version: str) -> bytes | None:
    try:
        return sort(version)
    except Invalid:
        return None


def _licences(text: str) -> list[str]:
    """The licences in an SPDX expression, or in a free text, and the whole of it."""
    parts = re.split(r"\s+(?:OR|AND|WITH)\s+|[()/,;]+", text)
    return [text.strip(), *(each.strip() for each in parts if each.strip())]
