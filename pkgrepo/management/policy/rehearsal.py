"""Rehearsals of rules about what is served, before they are saved."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import SYSTEM_MANAGERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import (
    FirstFetch,
    JobId,
    LastFetch,
    PackageName,
    RepositoryPath,
    RuleName,
    VersionName,
)
from pkgrepo.management.api.names import get_repository
from pkgrepo.management.api.route import Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.management.jobs.maintenance import STILL_RUNNING, WAIT, answer_job
from pkgrepo.model import RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.policy.effective import own_rules, server_rules
from pkgrepo.repositories.policy.facts import order_of
from pkgrepo.repositories.policy.schema import Rules, check_rules, stamped
from pkgrepo.repositories.rehearsal.work import KIND, Rehearsal

RuleAction = Annotated[str, meaning("What the rule does.")]

table = Table("policy")
DAYS = 30


class RehearsalWish(Body):
    """
    Rules in the form of policy.rules, and for how many days of the log of downloads they are tried.

    With a repository, its id or storage/name, only there; of a virtual one, on its members.
    """

    rules: Annotated[Rules, meaning("The rules that are tried, in the form of policy.rules.")]
    days: Annotated[int, Meta(ge=1, le=366), meaning("How many days of the log of downloads they are tried on.")] = DAYS
    repository: Annotated[
        str, meaning("Only this repository, by its id or as storage/name; of a virtual one, its members.")
    ] = ""


class RefusedRecord(Record):
    """
    Fetches of a version that a rule would have refused, or held back.

    users are at most 20, each with the name of the token; more_users if there were others; anonymous clients are in
    requests alone.
    """

    rule: RuleName
    action: RuleAction
    repository: RepositoryPath
    package: PackageName
    version: VersionName
    file: Annotated[str, meaning("The file, if only some of the version would be refused; empty for all of it.")]
    requests: Annotated[int, meaning("How many requests there were.")]
    users: Annotated[list[str], meaning("At most 20 users, each with the name of the token.")]
    more_users: Annotated[bool, meaning("Whether there were other users.")]
    first_at: FirstFetch
    last_at: LastFetch
    missing: Annotated[str, meaning("The data that are not known and by which the rule decided.")]


class RefusedVersionRecord(Record):
    """A version that is stored and would be refused; opens_at is when that ends by itself, null for never."""

    rule: RuleName
    action: RuleAction
    repository: RepositoryPath
    package: PackageName
    version: VersionName
    file: Annotated[str, meaning("The file, if only some of the version would be refused; empty for all of it.")]
    missing: Annotated[str, meaning("The data that are not known and by which the rule decided.")]
    opens_at: Annotated[datetime | None, meaning("When that ends by itself; null for never.")]


class TriedRuleRecord(Record):
    """
    How many fetches a rule would have matched, and how many stored versions; also those of rules that warn.

    Of these, missing_requests and missing_versions are those for which data that are not known decided.
    """

    rule: RuleName
    action: RuleAction
    missing: Annotated[str | None, meaning("What the rule says of data that are not known.")]
    requests: Annotated[int, meaning("How many requests it matched.")]
    versions: Annotated[int, meaning("How many stored versions it matched.")]
    missing_requests: Annotated[int, meaning("How many of the requests data that are not known decided.")]
    missing_versions: Annotated[int, meaning("How many of the versions data that are not known decided.")]
    passed_requests: Annotated[int, meaning("How many other requests it lets pass as data are not known.")]
    passed_versions: Annotated[int, meaning("How many other versions it lets pass as data are not known.")]


class Rehearsed(Record):
    """What rules would have done with the requests of the last days, and would do with what is stored."""

    job_id: JobId
    refused: Annotated[
        list[RefusedRecord], meaning("The 200 versions with the most requests that would have been refused.")
    ]
    refused_requests: Annotated[int, meaning("How many requests would have been refused.")]
    refused_versions: Annotated[int, meaning("How many versions would have been refused.")]
    stored: Annotated[list[RefusedVersionRecord], meaning("The first 200 stored versions that would be refused.")]
    refused_stored: Annotated[int, meaning("How many stored versions would be refused.")]
    rules: Annotated[list[TriedRuleRecord], meaning("What each rule matched.")]
    days: Annotated[int, meaning("How many days the rules were tried on.")]
    packages: Annotated[int, meaning("How many packages the rules were tried on.")]
    requests: Annotated[int, meaning("How many requests the rules were tried on.")]
    truncated: Annotated[bool, meaning("Whether some could not be told apart, and are in the sums alone.")]
    problem: Annotated[str, meaning("Why requests are not known; empty if they are.")]


@table.post(
    "/policy/rehearse",
    SYSTEM_MANAGERS,
    "Try rules on what was fetched and on what is stored",
    query=(WAIT,),
    audit="policy.rehearse",
    asks=True,
    further=STILL_RUNNING,
    every_format=True,
)
async def rehearse(call: Call, body: RehearsalWish) -> Rehearsed | Response:
    """
    Nothing is refused. A job of the kind rehearsal reads the log of downloads and the catalog; one runs at a time.

    A fetch is judged by the age that the version had then, and by what is known now of its licence, its advisories and
    its digests. Of what is not stored any more only names and digests are known.
    """
    if not body.rules:
        raise Invalid("name at least one rule", "/rules")
    everywhere = not body.repository
    repositories = [each for each in call.registry.all() if each.stage is None]
    if not everywhere:
        chosen = await get_repository(call.registry, body.repository, "/repository")
        repositories = [chosen]
        if chosen.type is RepositoryType.VIRTUAL:
            repositories = list(call.shared.proxy.resolver.flat_members(chosen))
    stored = server_rules(call.registry.policy) if everywhere else [each.rule for each in own_rules(chosen)]
    check_rules(body.rules, [order_of(each) for each in call.services.formats.values()], "/rules", stored)
    downloads = call.shared.downloads
    await downloads.flush()
    work = Rehearsal(
        call.services.maintenance,
        call.shared.advisories,
        stamped(body.rules, stored),
        repositories,
        days=body.days,
        everywhere=everywhere,
        histories=call.shared.proxy.judges.history,
        archives=call.shared.proxy.judges.archives,
    )
    call.object = body.repository or "all repositories"
    data = {"on": f"rules for {call.object}", "by": call.actor.name}
    job = await answer_job(call, partial(call.services.jobs.begin, KIND, KIND, data, work.run))
    if isinstance(job, Response):
        return job
    problem = ""
    if not downloads.log_days:
        problem = "this server logs no downloads (downloads.log_days is 0): only what is stored was looked at"
    elif downloads.log_days < body.days:
        problem = f"this server keeps its log of downloads for {downloads.log_days} days (downloads.log_days)"
    return msgspec.convert({**job.result, "job_id": job.uid, "problem": problem}, Rehearsed)
