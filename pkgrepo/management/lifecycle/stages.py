"""Stages: releases that wait for an approval before clients get them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final

from pkgrepo.errors import Invalid
from pkgrepo.gateway.publishing import stages as gateway
from pkgrepo.gateway.publishing.stages import StageContents, address_of, find_stage, may_approve
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import READERS_OF_SOME, VIEWERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import FormatName, ObjectId, PackageName, RepositoryId, RepositoryPath
from pkgrepo.management.api.names import get_repository
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Created, Parameter, Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.model import RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.proxy.virtual import publish_target
from pkgrepo.storage.catalog.orders import Order
from pkgrepo.storage.catalog.packages import packages, versions
from pkgrepo.storage.catalog.server import stages
from pkgrepo.storage.catalog.server.audit import Entry
from pkgrepo.storage.catalog.server.stages import STATES, Stage, StageItem

SHOWN: Final = 20  # things of a stage that lists name
ORDER: Order[Stage] = Order("-created_at", "", "", (int, str), stages.position)
STATE = Parameter("state", "Only stages in this state.", choices=STATES)

table = Table("stages")


class NewStage(Body):
    """A stage to be opened, with a description for those who approve it."""

    description: Annotated[str, meaning("A text for those who approve it.")] = ""


class StageApproval(Body):
    """
    An approval; serial is that of the stage as it was looked at.

    If it is given, the answer is 409 if something was published to the stage since.
    """

    serial: Annotated[
        int | None, meaning("The serial of the stage as it was looked at; 409 if something was published to it since.")
    ] = None


class StageRejection(Body):
    """Why a stage is rejected, for those who opened it."""

    reason: Annotated[str, meaning("Why it is rejected, for those who opened it.")] = ""


class StagedRecord(Record):
    """Something that is staged."""

    kind: Annotated[str, meaning("version, tag, manifest or file.")]
    package: PackageName
    name: Annotated[str, meaning("The version, the tag, the digest of a manifest without tag, or the path of a file.")]
    size: Annotated[int, meaning("The size in bytes; of an image, that of its manifest.")]
    present: Annotated[
        str | None, meaning("The highest version that the repository has of the package; null in lists.")
    ] = None


class StageRecord(Record):
    """A stage."""

    id: ObjectId
    repository: RepositoryPath
    repository_id: RepositoryId
    format: FormatName
    state: Annotated[str, meaning("open, approved, rejected or expired.")]
    description: Annotated[str, meaning("A text for people.")]
    by: Annotated[str, meaning("The user who opened it.")]
    created_at: Annotated[datetime, meaning("When it was opened.")]
    expires_at: Annotated[datetime | None, meaning("When it ends by itself; null for never.")]
    ended_at: Annotated[datetime | None, meaning("When it ended; null while it is open.")]
    ended_by: Annotated[str, meaning("The user who approved or rejected it.")]
    reason: Annotated[str, meaning("Why it was rejected.")]
    url: Annotated[
        str | None, meaning("The address to install from, with the content of the repository; null once it has ended.")
    ]
    staged: Annotated[
        str | None, meaning("The path of the repository that has what is staged; null once it has ended.")
    ]
    items: Annotated[int, meaning("How many things are staged.")]
    size: Annotated[int, meaning("The size of what is staged, in bytes.")]
    serial: Annotated[int, meaning("A number that grows with each change of what is staged.")]
    content: Annotated[list[StagedRecord], meaning("What the caller may see of it; in lists the first 20.")]
    may_approve: Annotated[bool | None, meaning("Whether the caller may approve it; null in lists.")]


@table.command(
    "stage list [STORAGE/REPOSITORY]",
    options="state, limit 50",
    columns="ID: id | REPOSITORY: repository | STATE: state | WHAT: :staged | SIZE: size:size | "
    "OPENED: created_at:ago | BY: by | ENDED BY: ended_by",
    nothing="there are no stages that you may see",
    about="List stages, the newest first.",
)
@table.get(
    "/stages",
    VIEWERS,
    "List stages",
    query=[STATE, Parameter("repository", "Only of this repository: its id, or storage/name.")],
)
async def list_stages(call: Call) -> Page[StageRecord]:
    """
    The newest first: those of which the caller may see something, as a member.

    Readers by a grant, a role or their default actions are members; that a repository is public makes nobody one.
    Stages that ended are kept for 400 days.
    """
    name = call.query("repository")
    if not name:
        return await _list(call, None)
    repository = await get_repository(call.registry, name, "repository", call.knows)
    return await _list(call, _target_id(call, repository.uid))


@table.get("/repository/<repository>/stages", READERS_OF_SOME, "List the stages of a repository", query=[STATE])
async def list_stages_of_repository(call: Call) -> Page[StageRecord]:
    """As in the list of all; of a virtual repository those of the one to which it publishes."""
    return await _list(call, _target_id(call, call.repository.uid))


@table.command(
    "stage open STORAGE/REPOSITORY",
    "opened stage {id}; publish to, and install from, {url}",
    options="description",
    more="It prints the address to publish to.",
)
@table.post("/repository/<repository>/stages", READERS_OF_SOME, "Open a stage", audit="stage.create", status=201)
async def create_stage(call: Call, body: NewStage) -> Created[StageRecord]:
    """
    What is published to the address of the stage waits there for an approval.

    Needs the action write. A stage of a virtual repository is for the member to which that publishes, and shows what is
    staged on top of all members.
    """
    call.object = call.repository.path
    entry = call.entry()
    opening = await gateway.prepare_stage(call.shared, call.identity, call.repository, body.description)
    staged = await gateway.open_stage(call.shared, opening, call.actor, gateway.with_row(entry, call.now_ms))
    _audited(call, entry)
    return Created(await _shown(call, staged), f"/api/stages/{staged.stage.uid}")


@table.command(
    "stage show ID",
    fields="id: id | repository: repository | state: state | description: description | by: by | url: url | "
    "expires at: expires_at | ended by: ended_by | reason: reason",
    columns="KIND: kind | PACKAGE: package | NAME: name | SIZE: size:size",
    rows="content",
    nothing="nothing is staged in it yet",
    about="Show a stage and what is staged in it.",
)
@table.get("/stages/<id>", VIEWERS, "Show a stage")
async def show_stage(call: Call, id: str) -> StageRecord:
    """With the packages, versions and files in it that the caller may read."""
    return await _shown(call, await find_stage(call.shared, call.identity, id))


@table.post("/stages/<id>/approve", VIEWERS, "Approve a stage", audit="stage.approve")
async def approve_stage(call: Call, body: StageApproval, id: str) -> StageRecord:
    """
    All of it is published in one transaction, and the stage has ended.

    Needs the action admin in the repository, or the role maintainer in the projects that own its packages. The answer
    is 409, and nothing is changed, if it has ended or is empty; if the repository has other content at one of its
    paths, had and burned it, or does not take such a version.
    """
    staged = await _find(call, id)
    entry = call.entry(detail={"content": [each.title for each in staged.content]})
    ended = await gateway.approve(
        call.shared, call.identity, staged, call.actor, serial=body.serial, inside=gateway.with_row(entry, call.now_ms)
    )
    _audited(call, entry)
    return await _shown(call, ended)


@table.command(
    "stage reject ID",
    "rejected stage {id} of {repository}",
    options="reason",
    ask="Reject stage {id} and give up what is in it?",
    more="It ends without publishing anything; who opened it withdraws it so, too.",
)
@table.post("/stages/<id>/reject", VIEWERS, "Reject a stage", audit="stage.reject")
async def reject_stage(call: Call, body: StageRejection, id: str) -> StageRecord:
    """
    What was staged is gone; garbage collection removes its bytes.

    For those who may approve it, and for who opened it. 409 if it has ended.
    """
    return await _reject(call, id, body.reason)


@table.delete("/stages/<id>", VIEWERS, "Withdraw a stage", audit="stage.reject")
async def withdraw_stage(call: Call, id: str) -> StageRecord:
    """It is rejected without a reason."""
    return await _reject(call, id, "")


async def _reject(call: Call, id: str, reason: str) -> StageRecord:
    staged = await _find(call, id)
    entry = call.entry(detail={"reason": reason, "content": [each.title for each in staged.content]})
    ended = await gateway.reject(
        call.shared, call.identity, staged, reason, call.actor, inside=gateway.with_row(entry, call.now_ms)
    )
    _audited(call, entry)
    return await _shown(call, ended)


async def _find(call: Call, id: str) -> StageContents:
    staged = await find_stage(call.shared, call.identity, id)
    call.object = f"{staged.target.path}+stage-{staged.stage.uid}"
    return staged


def _audited(call: Call, entry: Entry) -> None:
    call.services.callers.audit_log.copy(entry)
    call.audited = True


def _target_id(call: Call, uid: str) -> int:
    repository = call.registry.find_uid(uid)
    assert repository is not None
    if repository.type is RepositoryType.VIRTUAL:
        repository = publish_target(call.registry, repository)
    return repository.id


async def _list(call: Call, repository_id: int | None) -> Page[StageRecord]:
    state = call.query("state")
    if state not in ("", *STATES):
        raise Invalid(f"state is one of {', '.join(STATES)}", "state")
    page_request = call.page_request
    at, uid = page_request.after_position(ORDER) or (None, "")
    after = None if at is None else (int(at), str(uid))
    found = await gateway.list_stages(call.shared, call.identity, repository_id, state, after, page_request.limit + 1)
    days = await call.catalog.look(stages.kept_days)
    return page_request.page(
        found, lambda each: ORDER.place(each.stage), lambda each: _record(call, each, days, each.content[:SHOWN])
    )


async def _shown(call: Call, staged: StageContents) -> StageRecord:
    record = _record(call, staged, await call.catalog.look(stages.kept_days), staged.content)
    is_open = staged.stage.state == stages.OPEN
    record.may_approve = is_open and await may_approve(call.shared, call.identity, staged)
    if is_open:
        keys = {each.key for each in staged.content if each.kind == "version"}
        present = await call.catalog.scan(_present_versions, staged.target.id, keys)
        for shown, each in zip(record.content, staged.content, strict=True):
            shown.present = present.get(each.key)
    return record


def _present_versions(r: Reader, repository_id: int, keys: Iterable[str]) -> dict[str, str]:
    """The highest versions of packages, by key."""
    there = (packages.find_package(r, repository_id, key) for key in sorted(keys))
    highest = ((each.key, versions.find_highest(r, each.id)) for each in there if each is not None)
    return {key: version.text for key, version in highest if version is not None}


def _record(call: Call, staged: StageContents, days: int, content: Sequence[StageItem]) -> StageRecord:
    stage, target = staged.stage, staged.target
    return StageRecord(
        id=stage.uid,
        repository=target.path,
        repository_id=target.uid,
        format=target.format,
        state=stage.state,
        description=stage.description,
        by=stage.actor,
        created_at=stage.created_at,
        expires_at=stage.created_at + timedelta(days=days) if stage.state == stages.OPEN else None,
        ended_at=stage.ended_at,
        ended_by=stage.ended_by,
        reason=stage.reason,
        url=None if staged.overlay is None else address_of(call.base_url, staged.overlay),
        staged=None if staged.hosted is None else staged.hosted.path,
        items=len(staged.content),
        size=sum(each.size for each in staged.content),
        serial=staged.serial,
        content=[StagedRecord(kind=i.kind, package=i.package, name=i.name, size=i.size) for i in content],
        may_approve=None,
    )
