"""Drills: published incidents, played with the rules of the server, of a repository, or with such as are given."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import JobId, RuleName
from pkgrepo.management.api.names import get_repository
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.management.jobs.maintenance import STILL_RUNNING, WAIT, answer_job
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.proxy.drill.drills import KIND, Drill, Seat, seat_of, stand_in
from pkgrepo.proxy.drill.suggested import suggested_rules
from pkgrepo.proxy.incidents.corpus import get_incident, incidents
from pkgrepo.repositories.policy.facts import order_of
from pkgrepo.repositories.policy.schema import PolicyRule, Rules, check_rules, stamped

table = Table("policy")
DAYS = 30

Outcome = Annotated[
    str,
    meaning(
        "held: refused from the first minute until it was removed; opened: refused at first, and served before it was "
        "removed; served: served from the first minute."
    ),
]
Missing = Annotated[str, meaning("The data that are not known and by which the rule decided; empty if there are none.")]
RuleAction = Annotated[str, meaning("What the rule does: block or quarantine.")]


class DrillWish(Body):
    """
    Which incident is played, and with which rules.

    Without rules, those of the server hold, or with a repository all that hold for it: its own, those of the server,
    and those of a virtual one for its members.
    """

    incident: Annotated[
        Annotated[str, Meta(max_length=100)], meaning("The name of an incident; empty for all of them.")
    ] = ""
    repository: Annotated[
        str, meaning("A proxy or virtual repository, by its id or as storage/name: only incidents of its format.")
    ] = ""
    rules: Annotated[
        Rules | None, meaning("Rules in the form of policy.rules that are tried in place of all that hold.")
    ] = None
    days: Annotated[
        int, Meta(ge=1, le=366), meaning("For how many days the log of downloads is asked about the packages.")
    ] = DAYS


class HoldingRecord(Record):
    """A rule that would have held versions of an incident."""

    rule: RuleName
    owner: Annotated[str, meaning("The repository whose rule it is; the server for its rules.")]
    action: RuleAction
    missing: Missing
    versions: Annotated[int, meaning("How many versions it held in their first minute.")]
    throughout: Annotated[int, meaning("How many of them it alone would have held until they were removed.")]
    of: Annotated[int, meaning("How many versions count.")]


class SpanRecord(Record):
    """A time in which a version was served, or held by a rule."""

    from_at: Annotated[datetime, meaning("When it begins.")]
    until_at: Annotated[datetime, meaning("When it ends.")]
    served: Annotated[bool, meaning("Whether the version would have been served.")]
    rule: Annotated[str, meaning("The rule that held it; empty if it was served.")]
    action: Annotated[str, meaning("What the rule does; empty if it was served.")]
    missing: Missing


class DrilledVersion(Record):
    """What would have become of a version that did harm."""

    package: Annotated[str, meaning("The name of the package.")]
    version: Annotated[str, meaning("The version.")]
    outcome: Outcome
    spans: Annotated[list[SpanRecord], meaning("From its publication until it was removed, without gaps.")]


class FetchedPackage(Record):
    """What was fetched of a package of the incident, of any version."""

    package: Annotated[str, meaning("The name of the package.")]
    requests: Annotated[int, meaning("How many requests there were.")]
    clients: Annotated[int, meaning("By how many pairs of user and token; anonymous clients are one.")]


class Recalled(Record):
    """Who fetched the versions that did harm, as far as the log of downloads goes back."""

    requests: Annotated[int, meaning("How many requests there were.")]
    clients: Annotated[int, meaning("By how many pairs of user and token, without anonymous clients.")]


class DrilledIncident(Record):
    """What rules would have done in an incident, and what it would have met here."""

    incident: Annotated[str, meaning("The name of the incident.")]
    title: Annotated[str, meaning("What happened, in a sentence.")]
    format: Annotated[str, meaning("The format of its packages.")]
    changed: Annotated[str, meaning("What the versions had that those before did not.")]
    precision: Annotated[str, meaning("How exactly reports give its times: minute, hour or day.")]
    ids: Annotated[list[str], meaning("Its names in databases of vulnerabilities.")]
    sources: Annotated[list[str], meaning("Titles of reports.")]
    packages: Annotated[list[str], meaning("The packages that are known here to have been affected.")]
    package_count: Annotated[int, meaning("How many there were in all.")]
    published_at: Annotated[datetime, meaning("When the first version that did harm was published.")]
    removed_at: Annotated[datetime, meaning("When the last of them was removed.")]
    repository: Annotated[str, meaning("The repository whose rules were asked; empty for those of the server.")]
    outcome: Outcome
    served_s: Annotated[int, meaning("For how many seconds the version would have been served that was for longest.")]
    rules: Annotated[
        list[HoldingRecord],
        meaning(
            "The rules that would have held versions in their first minute; dependencies by which harm was done do not "
            "count while the versions that need them are held."
        ),
    ]
    versions: Annotated[list[DrilledVersion], meaning("Each version that did harm.")]
    fetched: Annotated[list[FetchedPackage], meaning("What was fetched here of its packages in the last days.")]
    taken: Annotated[
        int,
        meaning("How many requests there would have been while it was served, if there are as many as in these days."),
    ]
    recalled: Annotated[Recalled, meaning("What a recall of these versions finds.")]


class Drilled(Record):
    """What rules would have done in published incidents."""

    job_id: JobId
    incidents: Annotated[list[DrilledIncident], meaning("The incidents, the oldest first, for each repository.")]
    held: Annotated[int, meaning("How many of them were held until they were removed.")]
    opened: Annotated[int, meaning("How many were held at first only.")]
    served: Annotated[int, meaning("How many were served from the first minute.")]
    days: Annotated[int, meaning("How many days of the log of downloads were asked about.")]
    problem: Annotated[str, meaning("Why requests are not known; empty if they are.")]


@table.post(
    "/policy/drill",
    SYSTEM_MANAGERS,
    "Play published incidents with rules",
    query=(WAIT,),
    audit="policy.drill",
    asks=True,
    further=STILL_RUNNING,
    every_format=True,
)
async def drill(call: Call, body: DrillWish) -> Drilled | Response:
    """
    A job of the kind drill makes harmless packages of the shape of each incident, with the times that they had, and
    asks the rules at each moment, as serving does. Nothing is stored or fetched, and nothing is refused; one runs at a
    time.

    Advisories are those of the incident, from their publication on, if the server has a source of advisories.
    """
    chosen, seats, ids = await _seats(call, body)
    formats = {each.flat.repository.format for each in seats}
    played = (
        [get_incident(body.incident)] if body.incident else [each for each in incidents() if each.format in formats]
    )
    if not all(each.format in formats for each in played):
        raise Invalid("this incident is about packages of another format", "/incident")
    downloads = call.shared.downloads
    await downloads.flush()
    work = Drill(
        call.services.maintenance,
        call.shared.advisories,
        {name: each.proxied for name, each in call.services.formats.items() if each.proxied is not None},
        played,
        seats,
        days=body.days,
        repositories=ids,
    )
    call.object = "the server" if chosen is None else chosen.path
    data = {"on": f"rules of {call.object}", "by": call.actor.name}
    job = await answer_job(call, partial(call.services.jobs.begin, KIND, KIND, data, work.run))
    if isinstance(job, Response):
        return job
    problem = ""
    if not downloads.log_days:
        problem = "this server logs no downloads (downloads.log_days is 0)"
    elif downloads.log_days < body.days:
        problem = f"this server keeps its log of downloads for {downloads.log_days} days (downloads.log_days)"
    return msgspec.convert({**job.result, "job_id": job.uid, "problem": problem}, Drilled)


class SuggestedRules(Record):
    """Rules to begin with, in the form of policy.rules."""

    rules: Annotated[list[PolicyRule], meaning("The rules, in the form of policy.rules.")]


@table.get(
    "/policy/suggested",
    ACCOUNT_HOLDERS,
    "Suggest rules",
    query=(
        Parameter("format", "For repositories of this format; without it, for all repositories."),
        Parameter("exempt", "Patterns of names that are served from the first minute, with blanks between them."),
    ),
    every_format=True,
)
async def suggest_rules(call: Call) -> SuggestedRules:
    """
    Rules to begin with, about what comes from upstreams. What they do in published incidents, a drill tells.

    Those for all repositories do not ask for the age: what upstreams do not date, such as images, is as old as it is
    known here.
    """
    name = call.query("format")
    formats = [each for each in call.services.formats.values() if not name or name in (each.name, *each.aliases)]
    if not formats:
        raise Invalid(f"there is no format {name!r}", "format")
    exempt = call.query("exempt").split()
    rules = suggested_rules([(each, each.proxied) for each in formats], exempt)
    if not rules:
        raise Invalid(f"no rules are suggested for {name}: no incident is about such packages", "format")
    check_rules(rules, [order_of(each) for each in formats], "/rules")
    return SuggestedRules(rules=rules)


async def _seats(call: Call, body: DrillWish) -> tuple[Repository | None, list[Seat], Sequence[int] | None]:
    """The repository that is asked about, whose rules are tried, and the ids of those whose log counts."""
    formats = {name: each for name, each in call.services.formats.items() if _can_be_drilled(call, name)}
    if body.rules is not None:
        check_rules(body.rules, [order_of(each) for each in call.services.formats.values()], "/rules")
    rules = None if body.rules is None else stamped(body.rules, ())
    if not body.repository:
        await call.registry.refresh()
        return None, [stand_in(each, call.registry.policy, rules) for each in formats.values()], None
    chosen = await get_repository(call.registry, body.repository, "/repository")
    if chosen.type is RepositoryType.HOSTED:
        raise Invalid("this is a hosted repository: it has nothing of upstreams", "/repository")
    if chosen.format not in formats:
        raise Invalid("no incident is about packages of this format", "/repository")
    ways = [*call.shared.proxy.resolver.ways(chosen)]
    ids = [each.repository.id for each in ways]
    if rules is not None:
        return chosen, [stand_in(formats[chosen.format], call.registry.policy, rules)], ids
    proxies = [each for each in ways if each.repository.type is RepositoryType.PROXY]
    if not proxies:
        raise Invalid("this repository has no proxy among its members", "/repository")
    await call.registry.refresh()
    format_ = formats[chosen.format]
    return chosen, [seat_of(each, call.registry.policy, format_) for each in proxies], ids


def _can_be_drilled(call: Call, format: str) -> bool:
    proxied = call.services.formats[format].proxied
    return proxied is not None and proxied.drilled is not None
