"""The packages of a virtual repository: those that are stored in its members, of each name that of the first one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from attrs import frozen

from pkgrepo.interfaces import Reader, Value
from pkgrepo.management.api.call import Call
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.storage.catalog.orders import Order
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.packages.summaries import PackageSummary, find_package_summary, list_package_summaries

LEAST: Final = 50  # packages that are read of a member together


@frozen
class Held:
    """A package, and the member that has it."""

    member: Repository
    summary: PackageSummary


async def readable_members(call: Call) -> list[Repository]:
    """
    The members of a virtual repository that the caller may see and read, in the order in which clients get them.

    A hidden one is in no list for others than those who edit it.
    """
    members = [each for each in call.shared.proxy.resolver.flat_members(call.repository) if each.active]
    visible = await call.services.callers.authorizer.visible(call.identity, members)
    return [each for each in visible if await call.may(Action.READ, each)]


def is_merged(call: Call) -> bool:
    """Whether the repository of the call has what others have."""
    return bool(call.repository.type is RepositoryType.VIRTUAL)


def find_held(r: Reader, members: Iterable[Repository], key: str) -> Held | None:
    """A package (a key) in the first member that has it, or None."""
    for each in members:
        summary = find_package_summary(r, each.id, key)
        if summary is not None:
            return Held(each, summary)
    return None


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
