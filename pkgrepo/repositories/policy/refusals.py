"""The sentences by which clients learn that a rule refuses something: by which one, why, and who can lift it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Final

from attrs import Factory, define, frozen

from pkgrepo.errors import PkgrepoError
from pkgrepo.model import Repository

from .conditions import SERVER, Placed
from .rules import Verdict
from .schema import time_ms

LONGEST_REASON: Final = 300  # characters of a line that says why versions are withheld
MOST_WITHHELD: Final = 50  # versions that are named so
MOST_REASONS: Final = 5
MOST_NAMED: Final = 3  # further versions in a line


@define
class RuleRefused(PkgrepoError):  # noqa: N818 - named for what happened
    """
    A rule refuses something. ``where`` is what the client may call its owner, ``lifted_by`` says who can lift it.

    The name of a member of a virtual repository is not said: the client may not know it.
    """

    name: str
    where: str
    lifted_by: str
    verdict: Verdict

    @property
    def placed(self) -> Placed:
        """The rule."""
        assert self.verdict.by is not None, "it is refused"
        return self.verdict.by

    @property
    def may_open(self) -> bool:
        """Whether it may be served later although nothing of it changes: by its age, or when somebody approves it."""
        return self.verdict.opens_ms is not None or self.verdict.waits

    @property
    def header_reason(self) -> str:
        """The reason for the header of a response."""
        return str(self)

    @property
    def predicate(self) -> str:
        """What is said of it: that it is held, by which rule, and why."""
        rule, verdict = self.placed.rule, self.verdict
        missing = f" ({verdict.missing} is not known)" if verdict.missing else ""
        missing = f"{missing} ({verdict.because})" if verdict.because else missing
        reason = f": {rule.reason}" if rule.reason else ""
        if verdict.denied is not None:
            return f"was denied after a quarantine{reason}"
        which = "a block" if self.placed.block else f"the rule {rule.name!r}"
        if verdict.waits:
            return f"is held in quarantine by {which} of {self.where}{missing}{reason}"
        return f"is blocked by {which} of {self.where}{missing}{_until(verdict.opens_ms)}{reason}"

    def __str__(self) -> str:
        lifts = "can lift that"
        if self.verdict.denied is not None:
            lifts = "can approve it"
        elif self.verdict.waits:
            lifts = "approves it"
        return f"{self.name} {self.predicate}; {self.lifted_by} {lifts}"


@define
class PublishedLater(RuleRefused):
    """A version was published after the time of the view that is asked for it; clients do not see it at all."""

    def __str__(self) -> str:
        if self.verdict.missing:
            return f"nothing says when {self.name} was published, so it is not in views of the past"
        return f"{self.name} was published after {self.placed.rule.name}"


@define
class Frozen(RuleRefused):
    """A version was published after the time whose versions a repository serves."""

    @property
    def predicate(self) -> str:
        """What is said of it: that it is held, by which freeze, and why."""
        rule = self.placed.rule
        reason = f": {rule.reason}" if rule.reason else ""
        at = _time(time_ms(rule.match.published_after) or 0)
        when = "nothing says when it was published" if self.verdict.missing else "it was published later"
        return f"is held, as {self.where} is frozen at {at} and {when}{reason}"

    def __str__(self) -> str:
        return f"{self.name} {self.predicate}; {self.lifted_by} can thaw it"


@define
class TooYoung(RuleRefused):
    """A release is younger than ``policy.minimum_release_age`` lets it be served."""

    days: float

    @property
    def predicate(self) -> str:
        """What is said of it: that it is too young, and until when."""
        rule = f"the {self.days:g} days that policy.minimum_release_age of {self.where} asks for"
        if self.verdict.missing:
            return f"has no publication date, so it may be younger than {rule}"
        if self.verdict.opens_ms is None:
            return f"is younger than {rule}"
        text = _time(self.verdict.opens_ms)
        if text is None:  # after the year 9999: upstreams choose the dates
            return f"has a publication date in the future, so it is younger than {rule}"
        return f"is younger than {rule}: it will be served from {text}"

    def __str__(self) -> str:
        return f"{self.name} {self.predicate}"


def refusal(name: str, verdict: Verdict, asked: Repository, repository: Repository) -> RuleRefused:
    """
    The error for something of ``repository`` that is refused, to a client that asked ``asked`` for it.

    Decisions on what is in quarantine belong to the repository that has the version.
    """
    placed = verdict.by
    assert placed is not None, "it is refused"
    repository = repository if verdict.of is None else verdict.of[0]

    def called(path: str) -> str:
        return path if path in (asked.path, asked.authority.path, SERVER) else f"a member of {asked.path}"

    where, holder = called(placed.owner or repository.path), called(repository.path)
    if verdict.waits or verdict.denied is not None:
        lifted_by = f"who has the action admin in {holder}"
    elif placed.owner == SERVER or placed.wide:
        lifted_by = "a system manager"
    else:
        lifted_by = f"who has the action admin in {where}"
    if placed.later_ms is not None:
        return PublishedLater(name, where, lifted_by, verdict)
    if placed.frozen:
        return Frozen(name, where, lifted_by, verdict)
    if placed.short:
        return TooYoung(name, where, lifted_by, verdict, placed.rule.match.age_days or 0)
    return RuleRefused(name, where, lifted_by, verdict)


@frozen
class Withheld:
    """
    Versions that rules hide, the newest first, and lines that say which of them is held by which rule, and why.

    ``lines`` say it of each version by itself, and of more than these, whatever the number of reasons.
    """

    versions: Sequence[str]
    why: str
    lines: Mapping[str, str] = Factory(dict)


def withheld(asked: Repository, package: str, hidden: Iterable[tuple[str, Verdict, Repository]]) -> Withheld | None:
    """
    Some of the versions that rules hide in members, the newest first, for a client that asks for one of them.

    They are ``MOST_WITHHELD`` at most, and held for no more than ``MOST_REASONS`` reasons. What a view of the past does
    not have is not among them. None: there is nothing to say.
    """
    said: dict[str, list[str]] = {}
    alone: dict[str, str] = {}
    for version, verdict, member in islice(hidden, MOST_WITHHELD):
        if verdict.by is None or verdict.by.later_ms is not None:
            continue
        predicate = refusal(version, verdict, asked, member).predicate
        alone.setdefault(version, _line(package, [version], predicate))
        if predicate in said or len(said) < MOST_REASONS:
            said.setdefault(predicate, []).append(version)
    lines = [_line(package, versions, predicate) for predicate, versions in said.items()]
    return Withheld([each for found in said.values() for each in found], "\n".join(lines), alone) if said else None


def _line(package: str, versions: Sequence[str], predicate: str) -> str:
    first, *others = versions
    more = [*others[:MOST_NAMED], *([f"{len(others) - MOST_NAMED} more"] if len(others) > MOST_NAMED else [])]
    also = f" (also {', '.join(more)})" if more else ""
    line = "".join(each if each.isprintable() else "?" for each in f"{package} {first}{also} {predicate}")
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 3]}..."


def _until(opens_ms: int | None) -> str:
    text = None if opens_ms is None else _time(opens_ms)
    return "" if text is None else f" until {text}"


def _time(ms: int) -> str | None:
    try:
        return f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError):
        return None
