"""Versions in quarantine, and the decisions on them; they hold from the commit on, in every process."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from pkgrepo.errors import Invalid, existing
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import ObjectId, PackageName, RuleName, VersionName
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.management.explanations.routes import verdict_on
from pkgrepo.model import Action, Repository
from pkgrepo.model.structs import meaning
from pkgrepo.storage.catalog.server import policy
from pkgrepo.storage.catalog.server.policy import Quarantined
from pkgrepo.untrusted.patterns import pattern

table = Table("policy")

STATES = ("waiting", "approved", "denied", "all")


_BATCH = 200


class QuarantinedRecord(Record):
    """A version that a rule holds in quarantine, in the repository that has it; of an image it is a tag or digest."""

    id: ObjectId
    repository: Annotated[str, meaning("The repository that has it, as storage/name.")]
    package: PackageName
    version: VersionName
    rule: RuleName
    reason: Annotated[str, meaning("The reason of the rule.")]
    state: Annotated[str, meaning("waiting, approved or denied.")]
    since: Annotated[datetime, meaning("Since when it is held.")]
    decided_at: Annotated[datetime | None, meaning("When it was decided; null while it waits.")]
    decided_by: Annotated[str, meaning("The user who decided.")]
    comment: Annotated[str, meaning("Why it was approved or denied.")]

    @classmethod
    def of(cls, repository: Repository, found: Quarantined) -> Self:
        """The record of a version in a repository."""
        return cls(
            id=found.uid,
            repository=repository.path,
            package=found.package_key,
            version=found.version,
            rule=found.rule,
            reason=found.reason,
            state=found.state,
            since=found.since,
            decided_at=found.decided_at,
            decided_by=found.decided_by,
            comment=found.comment,
        )


class Decision(Body):
    """Why a version is approved or denied."""

    reason: Annotated[
        str,
        Meta(max_length=500, pattern=pattern(r"^[^\x00-\x1f\x7f]*$", "one line without control characters")),
        meaning("Why it is approved or denied."),
    ] = ""


class QuarantinedDetail(QuarantinedRecord):
    """
    The same with what the rule found: because says it, and before is the version from which something is different.

    Both are empty where the rule does not hold the version any more, or compares nothing.
    """

    because: Annotated[str, meaning("What the rule found, such as first install_script since 1.0.0.")] = ""
    before: Annotated[str, meaning("The version from which something is different; empty if none was compared.")] = ""


STATE = Parameter("state", "Only those in this state; waiting by default.", choices=STATES)


@table.command(
    "quarantine list",
    options="state",
    columns="ID: id | REPOSITORY: repository | PACKAGE: package | VERSION: version | RULE: rule | "
    "STATE: state | SINCE: since:ago | REASON: comment or reason",
    nothing="nothing is in quarantine",
    more="The newest first.",
)
@table.get("/policy/quarantine", ACCOUNT_HOLDERS, "List the versions in quarantine", query=(STATE,), paged=True)
async def list_quarantine(call: Call) -> Page[QuarantinedRecord]:
    """
    The newest first: those of repositories in which the caller has the action admin.

    A version is listed when a client has asked for it, or for a document that would show it.
    """
    state = call.query("state") or "waiting"
    if state not in STATES:
        raise Invalid(f"state is one of {', '.join(STATES)}", "state")
    wanted = call.page_request
    after = wanted.after(2**62)
    found: list[tuple[Repository, Quarantined]] = []
    while len(found) <= wanted.limit:
        some = await call.catalog.scan(policy.list_quarantined, "" if state == "all" else state, after, _BATCH)
        found += [pair for each in some if (pair := await _seen(call, each)) is not None]
        if len(some) < _BATCH:
            break
        after = some[-1].id
    return wanted.page(found[: wanted.limit + 1], lambda pair: pair[1].id, lambda pair: QuarantinedRecord.of(*pair))


@table.command(
    "quarantine show ID",
    fields="id: id | repository: repository | package: package | version: version | rule: rule | state: state | "
    "since: since:time | reason: comment or reason | because: because | compared with: before",
    more="What is different in the files is told by: pkgrepo package diff REPOSITORY PACKAGE BEFORE VERSION.",
)
@table.get("/policy/quarantine/<quarantined>", ACCOUNT_HOLDERS, "Show a version in quarantine")
async def show(call: Call, quarantined: str) -> QuarantinedDetail:
    """With what the rule found, and the version that it was compared with; the rules are asked again for that."""
    found = await call.catalog.look(policy.find_quarantined, quarantined)
    pair = None if found is None else await _seen(call, found)
    repository, version = existing(pair, "quarantined version", quarantined)
    verdict = await verdict_on(call, repository, version.package_key, version.version)
    record = QuarantinedDetail.of(repository, version)
    if verdict is None:
        return record
    return msgspec.structs.replace(record, because=verdict.because, before=verdict.before)


@table.command(
    "quarantine approve ID",
    "{package} {version} of {repository} is {state}",
    options="reason",
    more="Rules with the action quarantine let it pass.",
)
@table.post(
    "/policy/quarantine/<quarantined>/approve",
    ACCOUNT_HOLDERS,
    "Approve a version in quarantine",
    audit="policy.approve",
)
async def approve(call: Call, body: Decision, quarantined: str) -> QuarantinedRecord:
    """Rules with the action quarantine let it pass from now on; those that block still hold."""
    return await _decide(call, quarantined, body.reason, approved=True)


@table.command(
    "quarantine deny ID",
    "{package} {version} of {repository} is {state}",
    options="reason",
    more="It stays refused, also without the rule.",
)
@table.post(
    "/policy/quarantine/<quarantined>/deny", ACCOUNT_HOLDERS, "Deny a version in quarantine", audit="policy.deny"
)
async def deny(call: Call, body: Decision, quarantined: str) -> QuarantinedRecord:
    """It is refused from now on, also if the rule that held it is removed. It can still be approved later."""
    return await _decide(call, quarantined, body.reason, approved=False)


async def _decide(call: Call, uid: str, comment: str, *, approved: bool) -> QuarantinedRecord:
    found = await call.catalog.look(policy.find_quarantined, uid)
    pair = None if found is None else await _seen(call, found)
    repository, version = existing(pair, "quarantined version", uid)
    name = f"{repository.path}/{version.package_key}@{version.version}"
    decided = await call.write(
        call.entry(name, {"reason": comment}),
        policy.decide_quarantined,
        uid,
        approved=approved,
        comment=comment,
        actor=call.actor,
        now_ms=call.now_ms,
    )
    return QuarantinedRecord.of(repository, decided)


async def _seen(call: Call, found: Quarantined) -> tuple[Repository, Quarantined] | None:
    """The repository of a version, if the caller may decide about it."""
    repository, authorizer = call.registry.find_id(found.repository_id), call.services.callers.authorizer
    if repository is None:
        return None
    manages = await authorizer.may_use(call.identity, "system")
    return (repository, found) if manages or await authorizer.may(call.identity, Action.ADMIN, repository) else None
