"""
Freezes: proxies and virtual repositories serve what they served at a time.

=====================================  ==============================================================================
a change                               needs
=====================================  ==============================================================================
a freeze of one repository             the action admin there, or a system manager
one of several, or with a pattern      a system manager
=====================================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Self

from msgspec import Meta

from pkgrepo.errors import Forbidden, Invalid, NotFound
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import CreatedAt, ObjectId
from pkgrepo.management.api.route import Created, Table
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.policy.effective import is_wide
from pkgrepo.repositories.policy.facts import order_of
from pkgrepo.repositories.policy.schema import Pattern, Reason, check_exempt, time_ms
from pkgrepo.storage.catalog.server import freezes
from pkgrepo.storage.catalog.server.freezes import Freeze

from .rights import administers, check_rights, manages

table = Table("policy")

Names = Annotated[list[Pattern], Meta(max_length=1000)]


class NewFreeze(Body, rename={"exempt": "except"}):
    """Repositories that are to serve what they served at a time."""

    repositories: Annotated[
        Annotated[list[Pattern], Meta(min_length=1, max_length=100)],
        meaning("Paths of proxies and virtual repositories, or patterns of paths such as main/*."),
    ]
    at: Annotated[datetime | None, meaning("The time, such as 2026-09-01T00:00:00Z; null for now.")] = None
    reason: Annotated[Reason, meaning("Why, for those who are refused.")] = ""
    exempt: Annotated[Names, meaning("Patterns of names, or name@versions, that are served as they are now.")] = []


class Thawed(Body):
    """Names that a freeze is not about any more."""

    names: Annotated[
        Annotated[list[Pattern], Meta(min_length=1, max_length=1000)],
        meaning("Patterns of names, or name@versions, that are served as they are now."),
    ]


class FreezeRecord(Record, rename={"exempt": "except"}):
    """Repositories that serve what they served at a time."""

    id: ObjectId
    repositories: Annotated[list[str], meaning("Paths of repositories, or patterns of paths such as main/*.")]
    at: Annotated[datetime, meaning("What was published later is not served.")]
    exempt: Annotated[list[str], meaning("Patterns of names, or name@versions, that are served as they are now.")]
    reason: Annotated[str, meaning("Why, for those who are refused.")]
    by: Annotated[str, meaning("The user who added it.")]
    created_at: CreatedAt

    @classmethod
    def of(cls, freeze: Freeze) -> Self:
        """The record of a freeze."""
        return cls(
            id=freeze.uid,
            repositories=list(freeze.repositories),
            at=freeze.at,
            exempt=list(freeze.exempt),
            reason=freeze.reason,
            by=freeze.actor,
            created_at=freeze.created_at,
        )


@table.command(
    "freezes",
    columns="ID: id | REPOSITORIES: repositories:listed | AT: at:time | EXCEPT: except:listed | REASON: reason",
    nothing="nothing is frozen",
)
@table.get("/policy/freeze", ACCOUNT_HOLDERS, "List the freezes")
async def list_freezes(call: Call) -> list[FreezeRecord]:
    """System managers see all; others those of single repositories in which they have the action admin."""
    every = await call.catalog.scan(freezes.list_freezes)
    return [FreezeRecord.of(each) for each in every if await _may_change(call, each)]


@table.command(
    "freeze REPOSITORIES...",
    "{repositories:listed} serves what was there at {at:time}; the id of the freeze is {id}",
    options="at, reason, except",
    about="Serve what was there at a time.",
    more="Versions that were published later are refused. Hosted repositories are not frozen.\n\n"
    'REPOSITORIES are paths, or for system managers patterns such as "main/*".',
)
@table.post(
    "/policy/freeze", ACCOUNT_HOLDERS, "Freeze repositories", status=201, audit="policy.freeze", every_format=True
)
async def freeze(call: Call, body: NewFreeze) -> Created[FreezeRecord]:
    """
    It holds at once, on all workers and nodes, in documents and for files, of what is in a cache, too. What was
    published later, or at an unknown time, is refused as by a block. Hosted repositories are not frozen: what is
    published there is seen there, and not through a frozen virtual repository.

    A freeze of a single repository needs the action admin there, one with a pattern or several a system manager.
    """
    found: list[Repository] = []
    for number, pattern in enumerate(body.repositories):
        some = await check_rights(call, pattern)
        if not is_wide([pattern]) and some[0].type is RepositoryType.HOSTED:
            raise Invalid("this is a hosted repository: what is published there is not held", f"/repositories/{number}")
        found += (each for each in some if each.type is not RepositoryType.HOSTED)
    if is_wide(body.repositories) and not await manages(call):
        raise Forbidden("a freeze of several repositories is for system managers only")
    at_ms = call.now_ms if body.at is None else time_ms(body.at)
    if at_ms is None or at_ms > call.now_ms:
        raise Invalid("this time has not come yet", "/at")
    _check_names(call, body.exempt, found, "/except")
    detail = {"repositories": body.repositories, "at_ms": at_ms, "except": body.exempt, "reason": body.reason}
    made = await call.write(
        call.entry(body.repositories[0], detail),
        freezes.add_freeze,
        repositories=body.repositories,
        at_ms=at_ms,
        exempt=body.exempt,
        reason=body.reason,
        actor=call.actor.name,
        now_ms=call.now_ms,
    )
    return Created(FreezeRecord.of(made), f"/api/policy/freeze/{made.uid}")


@table.command(
    "thaw ID NAMES...",
    "{except:listed} of {id} is served as it is now",
    about="Lift a freeze, or except names from it.",
)
@table.post(
    "/policy/freeze/<freeze>/except",
    ACCOUNT_HOLDERS,
    "Except names from a freeze",
    audit="policy.thaw",
    every_format=True,
)
async def thaw_names(call: Call, freeze: str, body: Thawed) -> FreezeRecord:
    """What is newer of these names is served at once, unless another rule refuses it."""
    found = await _find(call, freeze)
    every = [each for each in call.registry.all() if each.type is not RepositoryType.HOSTED]
    _check_names(call, body.names, every, "/names")
    entry = call.entry(found.repositories[0], {"id": freeze, "except": body.names})
    return FreezeRecord.of(await call.write(entry, freezes.exempt_from_freeze, freeze, body.names))


@table.command("thaw ID", "freeze {id} is lifted")
@table.delete("/policy/freeze/<freeze>", ACCOUNT_HOLDERS, "Lift a freeze", audit="policy.thaw")
async def thaw(call: Call, freeze: str) -> None:
    """What is newer is served at once, unless another rule refuses it."""
    found = await _find(call, freeze)
    await call.write(call.entry(found.repositories[0], {"id": freeze}), freezes.remove_freeze, freeze)


async def _find(call: Call, uid: str) -> Freeze:
    found: Freeze | None = await call.catalog.look(freezes.find_freeze, uid)
    if found is None or not await _may_change(call, found):
        raise NotFound("freeze", uid)
    return found


async def _may_change(call: Call, found: Freeze) -> bool:
    return await manages(call) or (not is_wide(found.repositories) and await administers(call, found.repositories[0]))


def _check_names(call: Call, names: list[str], repositories: Iterable[Repository], pointer: str) -> None:
    """:raises Invalid: what a name says of versions means something in no format of the repositories"""
    formats = {each.format for each in repositories} or set(call.services.formats)
    check_exempt(names, [order_of(call.services.formats[each]) for each in sorted(formats)], pointer)
