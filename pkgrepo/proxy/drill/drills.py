"""
The job that plays incidents with the rules of a repository, of the server, or such as are given.

For each incident it also asks the log of downloads: what was fetched of its packages in the last days, and who fetched
the versions that did harm, as a recall would find them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec
from attrs import evolve, frozen

from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository, RepositoryType, Visibility
from pkgrepo.model.advisories import MalwareNames
from pkgrepo.model.repositories import make_placeholder
from pkgrepo.proxy.configuration import routes_of
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.incidents.shapes import Incident
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.repositories.advisories.known import KnownAdvisories
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.context import MaintenanceContext, MaintenanceWork
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.conditions import DAY_MS
from pkgrepo.repositories.policy.effective import rule_set
from pkgrepo.repositories.policy.facts import order_of
from pkgrepo.repositories.policy.rules import RuleSet
from pkgrepo.repositories.policy.schema import PolicyRule
from pkgrepo.repositories.upkeep.jobs import Progress
from pkgrepo.storage.catalog.fetches import Question, count_fetches, packages_fetched
from pkgrepo.storage.catalog.server.policy import StoredPolicy

from .player import Holding, Played, Player, Span

KIND: Final = "drill"  # of the job
_STAND_IN: Final = "drill"  # the storage of the proxy that stands for any other


@frozen
class Seat:
    """A proxy that incidents are played for, as it is reached; one that was ``made`` stands for any other."""

    flat: FlatMember
    made: bool = False

    def route_of(self, key: str) -> str:
        """The name of the route that it would ask first for a package (a key)."""
        return "" if self.made else next((each.name for each in routes_of(self.flat.repository, key)), "")


def seat_of(flat: FlatMember, policy: StoredPolicy, format_: StoredFormat) -> Seat:
    """A member of a repository, with all rules that hold for it as it is reached."""
    return Seat(evolve(flat, policy=_rules_for(policy, flat.repository, flat.around, format_)))


def stand_in(format_: StoredFormat, policy: StoredPolicy, rules: Sequence[PolicyRule] | None = None) -> Seat:
    """
    A proxy of a format without rules of its own, with those of the server.

    With ``rules`` these hold, in place of all that people have set.
    """
    if rules is not None:
        given = [msgspec.to_builtins(each) for each in rules]
        policy = evolve(policy, rules=given, blocks=(), freezes=(), rulings={})
    made = make_placeholder(0, _STAND_IN, format_.name, format_.name)
    repository = evolve(made, type=RepositoryType.PROXY, visibility=Visibility.PUBLIC)
    return Seat(FlatMember(repository, (), _rules_for(policy, repository, (), format_)), made=True)


def _rules_for(
    policy: StoredPolicy, repository: Repository, around: Sequence[Repository], format_: StoredFormat
) -> RuleSet | None:
    """The rules that hold, as if the record of each incident had come to the server when it was published."""
    if policy.malware is not None:
        policy = evolve(policy, malware=MalwareNames())
    return rule_set(policy, repository, around, order_of(format_))


class Drill(MaintenanceWork):
    """
    Plays ``incidents`` for each seat of their formats; ``proxied`` are by name.

    The log is asked about the last ``days``, in ``repositories`` only, or in all with None.
    """

    def __init__(
        self,
        context: MaintenanceContext,
        advisories: KnownAdvisories,
        proxied: Mapping[str, Proxied],
        incidents: Sequence[Incident],
        seats: Sequence[Seat],
        *,
        days: int,
        repositories: Sequence[int] | None,
    ) -> None:
        super().__init__(context)
        self._formats = context.formats
        self._advisories = advisories
        self._proxied = proxied
        self._incidents = incidents
        self._seats = seats
        self._days = days
        self._repositories = repositories

    async def run(self, progress: Progress) -> Mapping[str, Any]:
        """Do the work as a job; it may be cancelled at any await."""
        results: list[dict[str, Any]] = []
        progress.begin("incidents", len(self._incidents))
        for incident in self._incidents:
            reach = await self._catalog.scan(self._reach, incident)
            for seat in self._seats:
                if seat.flat.repository.format == incident.format:
                    played = await self._pools.cpu((await self._player(seat)).play, incident)
                    results.append(_result(incident, seat, played, reach, self._days))
            progress.step()
        progress.end()
        counts = Counter(each["outcome"] for each in results)
        return {
            "incidents": results,
            **{name: counts[name] for name in ("held", "opened", "served")},
            "days": self._days,
        }

    async def _player(self, seat: Seat) -> Player:
        format_ = self._formats[seat.flat.repository.format]
        ecosystem = format_.ecosystem
        state = None if ecosystem is None else await self._advisories.knowledge(ecosystem.name)
        return Player(
            format=format_,
            proxied=self._proxied[format_.name],
            flat=seat.flat,
            route_of=seat.route_of,
            loaded=state is not None and state.has_source,
        )

    def _reach(self, r: Reader, incident: Incident) -> dict[str, Any]:
        """What the log of downloads has about the packages of an incident."""
        format_, from_day = self._formats[incident.format], self._clock.now_ms() // DAY_MS - self._days + 1
        names = {format_.package_key(each): each for each in incident.package_names}
        question = Question(format=format_.name, packages=[*names], repositories=self._repositories)
        found = packages_fetched(r, question, from_day)
        recalled = [
            count_fetches(
                r,
                Question(
                    format=format_.name,
                    packages=[format_.package_key(each.name)],
                    versions=[format_.version_key(version.version) for version in each.harmful],
                    repositories=self._repositories,
                ),
            )
            for each in incident.packages
            if each.harmful
        ]
        return {
            "fetched": [
                {"package": names[each.package], "requests": each.count, "clients": each.clients} for each in found
            ],
            "recalled": {
                "requests": sum(each.count for each in recalled),
                "clients": sum(each.clients for each in recalled),
            },
        }


def decisive(incident: Incident, played: Sequence[Played]) -> Sequence[Played]:
    """What decides about an incident: not a dependency of versions that are held all the time."""
    through = {each.name: each.through for each in incident.packages}
    open_ = {each.package for each in played if each.outcome != "held"}
    return [each for each in played if not through[each.package] or through[each.package] in open_]


def outcome_of(incident: Incident, played: Sequence[Played]) -> str:
    """What became of an incident: the worst of what became of the versions that decide."""
    found = {each.outcome for each in decisive(incident, played)}
    return next(each for each in ("served", "opened", "held") if each in found)


def _result(
    incident: Incident, seat: Seat, played: Sequence[Played], reach: Mapping[str, Any], days: int
) -> dict[str, Any]:
    repository = seat.flat.repository
    deciding = decisive(incident, played)
    longest_ms = max(each.served_ms for each in deciding)
    requests = sum(each["requests"] for each in reach["fetched"])
    return {
        "incident": incident.name,
        "title": incident.title,
        "format": incident.format,
        "changed": incident.changed,
        "precision": incident.precision,
        "ids": incident.ids,
        "sources": incident.sources,
        "packages": [*incident.package_names],
        "package_count": max(incident.count, len(incident.package_names)),
        "published_at": _text(incident.published_at),
        "removed_at": _text(incident.removed_at),
        "repository": "" if seat.made else repository.path,
        "outcome": outcome_of(incident, played),
        "served_s": longest_ms // 1000,
        "rules": _rules(deciding),
        "versions": [_version(each) for each in played],
        **reach,
        "taken": -(-requests * longest_ms // (days * DAY_MS)),
    }


def _rules(played: Sequence[Played]) -> list[dict[str, Any]]:
    """For each rule that holds any version in its first minute, how many it holds then, and how many all the time."""
    first = Counter(each for one in played for each in one.at_first)
    throughout = Counter(each for one in played for each in one.throughout)
    order = sorted(first, key=lambda each: (-throughout[each], -first[each], each.rule))
    return [
        {**_rule(each), "versions": first[each], "throughout": throughout[each], "of": len(played)} for each in order
    ]


def _rule(holding: Holding) -> dict[str, Any]:
    return {"rule": holding.rule, "owner": holding.owner, "action": holding.action, "missing": holding.missing}


def _version(played: Played) -> dict[str, Any]:
    return {
        "package": played.package,
        "version": played.version,
        "outcome": played.outcome,
        "spans": [_span(each) for each in played.spans],
    }


def _span(span: Span) -> dict[str, Any]:
    by = {"rule": "", "action": "", "missing": ""} if span.by is None else _rule(span.by)
    return {
        "from_at": _text(from_ms(span.from_ms)),
        "until_at": _text(from_ms(span.until_ms)),
        "served": span.by is None,
        "rule": by["rule"],
        "action": by["action"],
        "missing": by["missing"],
    }


def _text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
