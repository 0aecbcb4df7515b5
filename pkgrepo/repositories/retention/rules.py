"""
Which versions the rules of a repository select: pure, over the units of one list.

A unit is a version, a build of a Java snapshot, a tag of an image, or a manifest without one. The units of a list are
in their order, the newest last: the versions of a package, the builds of one snapshot, or the tags of an image by their
time.

=========  ============================================================================================================
a unit     if
=========  ============================================================================================================
is held    a rule that matches it keeps it by any of its clauses; or, of those that no rule may take (``fixed``)
goes       a rule matches it, and none holds it; the first of these rules says how
stays      no rule matches it
=========  ============================================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import translate
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.repositories.configuration import Retention, RetentionKeep, RetentionRule, is_expression
from pkgrepo.repositories.format import VersionKinds
from pkgrepo.repositories.version_ranges import Ranges, is_plain

Action = Literal["trash", "delete", "untag", "evict"]
_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
DAY_MS: Final = 24 * 3600 * 1000


@frozen
class Unit:
    """
    Something that a rule may select. ``text`` is matched with patterns of versions, and is a version or a tag.

    ``used_day`` is the day of the last download as far as it was asked for, numbered since the epoch. ``fixed`` says
    why no rule may take the unit, if that is so.
    """

    id: int
    text: str
    published_ms: int
    tags: Sequence[str] = ()
    used_day: int | None = None
    snapshot: bool = False
    in_use: bool = False
    pinned: bool = False
    fixed: str = ""


@frozen
class Selected:
    """A unit that goes: its place in the list, the action, and the reason. ``tags`` are those the rule is about."""

    index: int
    action: Action
    rule: str
    reason: str
    tags: tuple[str, ...]


class Rules:
    """
    The rules of a repository, ready to decide. ``kinds`` are None for images; ``ranges`` are those of the format.

    With ``cached`` they are about what a proxy keeps, which is evicted whatever their action is.

    :raises Invalid: what a rule says of versions cannot be read, with its JSON pointer
    """

    def __init__(
        self,
        retention: Retention,
        kinds: VersionKinds | None,
        now_ms: int,
        *,
        ranges: Ranges,
        cached: bool = False,
    ) -> None:
        self.cached = cached
        self.rules = [
            _Rule(each, kinds, ranges, now_ms, cached, f"/retention/rules/{index}/match/versions")
            for index, each in enumerate(rules_of(retention))
            if each.enabled and each.match.cached in (None, cached)
        ]

    @property
    def used_since_day(self) -> int | None:
        """The first day of which a rule asks for downloads; None if none does."""
        return min((each.used_day for each in self.rules if each.used_day is not None), default=None)

    def takes_package(self, name: str) -> bool:
        """Whether any rule is about a package."""
        return any(each.takes_package(name) for each in self.rules)

    def select(self, package: str, units: Sequence[Unit]) -> list[Selected]:
        """The units of a list that go, in their order."""
        held: set[int] = set()
        taken: dict[int, _Rule] = {}
        for rule in self.rules:
            if not rule.takes_package(package):
                continue
            matched = [index for index, unit in enumerate(units) if rule.takes(unit)]
            held.update(rule.holds(units, matched))
            for index in matched:
                taken.setdefault(index, rule)
        return [
            Selected(
                index,
                "evict" if self.cached else rule.action,
                rule.name,
                rule.reason(units[index]),
                rule.tags_of(units[index]),
            )
            for index, rule in sorted(taken.items(), key=itemgetter(0))
            if index not in held and not units[index].fixed
        ]


class _Rule:
    def __init__(
        self,
        rule: RetentionRule,
        kinds: VersionKinds | None,
        ranges: Ranges,
        now_ms: int,
        cached: bool,
        pointer: str,
    ) -> None:
        self.name = rule.name
        self.action: Action = rule.action
        self._match, self._keep, self._kinds = rule.match, rule.keep, kinds
        self._packages = _patterns(rule.match.packages)
        self._tags, self._kept_tags = _patterns(rule.match.tags), _patterns(rule.keep.tagged)
        self._version = _version_test(rule.match.versions, ranges, pointer)
        keep = rule.keep
        self._newer_ms = None if keep.newer_than_days is None else now_ms - keep.newer_than_days * DAY_MS
        days = keep.downloaded_within_days
        # imported downloads, which are counted before the epoch, are none of the last days, however many these are
        self.used_day = None if days is None else max(0, now_ms // DAY_MS - days)
        # what a dist-tag of a hosted repository stands for goes only by a rule that is about tags
        about_tags = self._tags is not None or rule.match.tagged is not None
        self._keeps_tagged = kinds is not None and not cached and not about_tags
        self._why = self._clauses()

    def takes_package(self, name: str) -> bool:
        return self._packages is None or bool(self._packages(name))

    def takes(self, unit: Unit) -> bool:
        match, kinds = self._match, self._kinds
        if match.tagged is not None and match.tagged != bool(unit.tags):
            return False
        if self._tags is not None and not any(map(self._tags, unit.tags)):
            return False
        if match.snapshot is not None and match.snapshot != unit.snapshot:
            return False
        if match.prerelease is not None and kinds is not None and match.prerelease != kinds.prerelease(unit.text):
            return False
        return self._version is None or bool(self._version(unit))

    def holds(self, units: Sequence[Unit], matched: Sequence[int]) -> Iterator[int]:
        """The matched units that the rule keeps."""
        keep = self._keep
        if keep.last:
            yield from matched[-keep.last :]
        for index in matched:
            unit = units[index]
            if (
                (self._keeps_tagged and unit.tags)
                or (self._newer_ms is not None and unit.published_ms >= self._newer_ms)
                or (self.used_day is not None and unit.used_day is not None and unit.used_day >= self.used_day)
                or (self._kept_tags is not None and any(map(self._kept_tags, unit.tags)))
                or (keep.in_use and unit.in_use)
                or (keep.pinned and unit.pinned)
            ):
                yield index

    def tags_of(self, unit: Unit) -> tuple[str, ...]:
        return tuple(each for each in unit.tags if self._tags is None or self._tags(each))

    def reason(self, unit: Unit) -> str:
        return f"{self.name}: published {_date(unit.published_ms // DAY_MS)}{self._why}"

    def _clauses(self) -> str:
        keep, found = self._keep, ""
        if keep.last is not None:
            found += f", not among the last {keep.last}"
        if keep.newer_than_days is not None:
            found += f", more than {keep.newer_than_days} days ago"
        if keep.downloaded_within_days is not None:
            found += f", not downloaded for {keep.downloaded_within_days} days"
        if keep.tagged:
            found += f", without a tag {' or '.join(keep.tagged)}"
        return found


@lru_cache(maxsize=4096)
def _date(day: int) -> str:
    """The date of a day since the epoch; victims of a preview share most of theirs."""
    return f"{datetime.fromtimestamp(day * DAY_MS / 1000, UTC):%Y-%m-%d}"


def rules_of(retention: Retention) -> list[RetentionRule]:
    """The rules, with the one that the short form stands for, if it is used."""
    if retention.max_age_days is None and retention.keep_latest_per_package is None:
        return retention.rules
    keep = RetentionKeep(newer_than_days=retention.max_age_days, last=retention.keep_latest_per_package)
    return [*retention.rules, RetentionRule(name="age", keep=keep)]


def together(own: Retention | None, server: Retention | None, *, cached: bool = False) -> Retention | None:
    """
    The retention of a repository: its own rules, and in addition those of the server, whose names say so.

    With ``cached`` it is a proxy, and of the rules of the server those with ``match.cached`` apply.
    While one of the two is enabled, the rules of the other apply only if it is enabled, too. The schedule and the limit
    are the repository's own, if that is enabled. None: nothing goes by itself.
    """
    if cached and server is not None:
        some = [each for each in server.rules if each.match.cached]
        server = msgspec.structs.replace(server, rules=some, max_age_days=None, keep_latest_per_package=None)
        server = server if some else None
    if own is None or server is None or not server.enabled:
        return own if own is not None else None if server is None else _named(server)
    if not own.enabled:
        return _named(server)
    return msgspec.structs.replace(
        own, rules=[*rules_of(own), *_named(server).rules], max_age_days=None, keep_latest_per_package=None
    )


def _named(server: Retention) -> Retention:
    rules = [msgspec.structs.replace(each, name=f"server: {each.name}") for each in rules_of(server)]
    return msgspec.structs.replace(server, rules=rules, max_age_days=None, keep_latest_per_package=None)


def _patterns(globs: Sequence[str]) -> Callable[[str], object] | None:
    """A test whether a text matches one of the patterns; None without any."""
    return re.compile("|".join(map(translate, globs))).match if globs else None


def _version_test(text: str, ranges: Ranges, pointer: str) -> Callable[[Unit], object] | None:
    """A test of the version of a unit: by a regular expression, or a range. :raises Invalid: it is neither"""
    if not text:
        return None
    if is_expression(text):
        search = re.compile(text[1:-1]).search
        return lambda unit: search(unit.text)
    try:
        is_meant = ranges.test(text, pointer)
    except Invalid:
        if not is_plain(text):
            raise
        return lambda unit: unit.text == text  # a rule of the server about versions of another format
    return lambda unit: is_meant(unit.text)


def check_versions(settings: Mapping[str, Any], ranges: Ranges, stored: Mapping[str, Any] = _EMPTY) -> None:
    """
    Check what the rules in the settings of a repository say of versions, unless they are in its ``stored`` ones.

    :raises Invalid: it cannot be read, with the JSON pointer
    """
    before = (stored.get("retention") or {}).get("rules") or []
    for index, rule in enumerate((settings.get("retention") or {}).get("rules") or []):
        text = (rule.get("match") or {}).get("versions") or ""
        if rule not in before and text and not is_expression(text):
            ranges.test(text, f"/retention/rules/{index}/match/versions")
