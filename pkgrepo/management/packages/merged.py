"""The packages of a virtual repository: those that are stored in its members, of each name that of the first one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from attrs import frozen

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import Reader, Value
from pkgrepo.management.api.call import Call
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.storage.catalog.orders import Order
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.packages.events import Event, last_published
from pkgrepo.storage.catalog.packages.summaries import PackageSummary, find_package_summary, list_package_summaries

LEAST: Final = 50  # packages, or events, that are read of a member together


@frozen
class Held:
    """A package, and the member that has it."""

    member: Repository
    summary: PackageSummary


async def readable_members(call: Call) -> list[Repository]:
    """
    The members of a virtual repository that the caller may see and read, in the order in which clients get them.

    A hidden one is in no list for others than those who edit it. Hosted ones come first: a name that they have is asked
    of no upstream.
    """
    members = [each for each in call.shared.proxy.resolver.flat_members(call.repository) if each.active]
    visible = await call.services.callers.authorizer.visible(call.identity, members)
    readable = [each for each in visible if await call.may(Action.READ, each)]
    return sorted(readable, key=lambda each: each.type is not RepositoryType.HOSTED)


def is_merged(call: Call) -> bool:
    """Whether the repository of the call has what others have."""
    return bool(call.repository.type is RepositoryType.VIRTUAL)


async def get_held(call: Call) -> Held:
    """The package that the path names, in a virtual repository. :raises NotFound: no member has it for the caller"""
    held: Held | None = await call.catalog.scan(find_held, await readable_members(call), call.package or "")
    if held is None:
        raise NotFound("package", call.package or "")
    return held


async def go_to_member(call: Call) -> Repository:
    """
    Have the call be about the member that has the package, if it is about a virtual repository.

    Returns the repository that was asked, whose rules hold also for what its members have.

    :raises NotFound: no member has the package for the caller
    """
    asked = call.repository
    if is_merged(call):
        call.repository = (await get_held(call)).member
    return asked


def find_held(r: Reader, members: Iterable[Repository], key: str) -> Held | None:
    """A package (a key) in the first member that has it, or None."""
    for each in members:
        summary = find_package_summary(r, each.id, key)
        if summary is not None:
            return Held(each, summary)
    return None


def list_published(r: Reader, members: Sequence[Repository], limit: int) -> list[Event]:
    """
    The last events by which versions came, the latest first; of each package those of the first member that has it.

    Each member has a share of the ``limit`` of events that are read, at least 50.
    """
    share = max(LEAST, limit // max(1, len(members)))
    events = {each.id: last_published(r, each.id, share) for each in members}
    keys = sorted({event.package_key for some in events.values() for event in some})
    taken, found = set[str](), list[Event]()
    for each in members:
        held = packages.names_of(r, each.id, keys).keys() - taken
        found += [event for event in events[each.id] if event.package_key in held]
        taken |= held
    return sorted(found, key=lambda event: -event.seq)


def list_held(
    r: Reader,
    members: Sequence[Repository],
    after: Sequence[Value],
    limit: int,
    search: str,
    order: Order[PackageSummary],
) -> list[Held]:
    """
    A page of packages in an order, after a position; with ``search``, of those whose key contains it.

    Of each member as much is read as the page may need, in turns up to the place that all of them have come to.
    """
    found: list[Held] = []
    down, count = order.name.startswith("-"), max(limit, LEAST)
    while len(found) < limit:
        lists = [
            list_package_summaries(r, each.id, after=after, limit=count, search=search, order=order.name)
            for each in members
        ]
        ends = [order.position(each[-1]) for each in lists if len(each) == count]
        last = (max if down else min)(ends, default=None)
        some = [(order.position(each), -rank if down else rank, each) for rank, one in enumerate(lists) for each in one]
        for position, rank, summary in sorted(some, key=lambda each: each[:2], reverse=down):
            if last is not None and (position < last if down else position > last):
                break
            before = members[: abs(rank)]
            if not any(packages.find_package(r, each.id, summary.key) for each in before):
                found.append(Held(members[abs(rank)], summary))
        if last is None:
            break
        after = last
    return found[:limit]
