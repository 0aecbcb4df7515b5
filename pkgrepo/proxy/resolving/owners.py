"""
Who serves a name, of the repositories behind the one that is asked: packages, files by their paths and images alike.

==================================  ====================================================================================
of the hosted repositories          the name is served by
==================================  ====================================================================================
some have it                        all of them, and with ``policy.merge_names`` the proxies, too
one of these is off                 none: L{MemberInactive}. With ``policy.skip_inactive`` those that are active, and so
                                    what is asked for by its digest
none has it, and one had it         none: L{NameRetired}, unless it is merged
none ever had it                    the proxies, in order
==================================  ====================================================================================

==================================  ====================================================================================
a proxy                             is asked
==================================  ====================================================================================
for which the name is reserved      no, by the rules of any repository on the way to it; nor is what it keeps served
that is off                         no. It counts as one that failed, unless ``policy.skip_inactive`` says otherwise
behind one that served the name     no
behind one that failed              only if it is known to have had it, see L{pkgrepo.proxy.caching.search_order}
any other one                       by those of its routes that serve the name (L{routes_of})
==================================  ====================================================================================

A version has files of one proxy: the one that has served it before is asked alone. Each decision is a step of the
trace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

from attrs import define, field

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.caching.search_order import SearchOrder
from pkgrepo.proxy.caching.states import FAILURES
from pkgrepo.proxy.configuration import rules_of
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.trace import MemberInactive, NameReserved, NameRetired, StepKind, Trace, owner_step
from pkgrepo.storage.catalog.packages.packages import RETIRED, ownership
from pkgrepo.storage.catalog.server import repositories

T = TypeVar("T")


@define(eq=False)
class Owners:
    """
    Who serves a ``name`` (the key of a package, or an image; empty for what belongs to none) behind ``repository``.

    ``members`` are all repositories behind it, in order, and ``serials`` the ``ownership`` of the hosted ones by id.
    ``config_serial`` is that of the server's configuration, from before they were read. With ``merges`` the versions of
    hosted members and of upstreams are joined, and with ``skips`` others stand in for members that are off. ``hosted``
    are the hosted repositories, and ``owning`` those that have the name, in order, also those that are off.
    """

    repository: Repository
    name: str
    trace: Trace
    config_serial: int
    members: Sequence[FlatMember]
    serials: Mapping[int, int | None]
    merges: bool = False
    what: str = "package"
    skips: bool = False
    hosted: list[FlatMember] = field(init=False)
    owning: list[FlatMember] = field(init=False)
    _reserved: NameReserved | None = field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.hosted = [each for each in self.members if each.repository.type is RepositoryType.HOSTED]
        self.owning = [each for each in self.hosted if self.serials.get(each.repository.id) not in (None, RETIRED)]

    @property
    def proxies(self) -> list[FlatMember]:
        """The proxies, in order, also those that are not asked."""
        return [each for each in self.members if each.repository.type is RepositoryType.PROXY]

    @property
    def is_taken(self) -> bool:
        """Whether a hosted repository has or had the name."""
        return any(each is not None for each in self.serials.values())

    @property
    def asks_proxies(self) -> bool:
        """Whether proxies are asked for the name, after ``check``."""
        return self.merges or not self.owning

    def check(self, *, same: bool = False) -> None:
        """
        Check that the name is served by members as they are; ``same``: all who have the name have the same.

        :raises MemberInactive: see L{check_active}; :raises NameRetired: one had it, and none has
        """
        self.check_active(same=same)
        if self.is_taken and not self.owning and not self.merges:
            raise NameRetired(self.what, self.name)

    def check_active(self, *, same: bool = False) -> None:
        """
        Check that nobody would stand in for a member; ``same`` is as above.

        :raises MemberInactive: one that has the name is off, or all are
        """
        active = [each.repository.active for each in self.owning]
        if active and not (any if same or self.skips else all)(active):
            raise self.inactive()

    def inactive(self) -> MemberInactive:
        """The error for what only members that are off may have."""
        return MemberInactive(self.repository.path, self.name)

    def is_off(self, proxy: FlatMember) -> bool:
        """Whether a proxy that may serve the name is switched off, and nobody stands in for it."""
        return not proxy.repository.active and not self.skips and proxy.reserved_by(self.name) is None

    def may_ask(self, proxy: FlatMember) -> bool:
        """Whether a proxy may be asked; if not, that is a step of the trace."""
        path = proxy.repository.path
        reserved = proxy.reserved_by(self.name)
        if reserved is not None:
            owner, pattern = reserved
            self.trace.add(StepKind.RESERVED, repository=path, pattern=pattern, rule=owner.path)
            self._reserved = NameReserved(self.what, self.name, pattern)
        elif not proxy.repository.active:
            self.trace.add(StepKind.INACTIVE, repository=path)
        else:
            return True
        return False

    def asked(self) -> list[FlatMember]:
        """The proxies for L{first}: those that may be asked, and those that are off and that nobody stands in for."""
        return [each for each in self.proxies if self.may_ask(each) or self.is_off(each)]

    def missing(self, absent: NotFound) -> NotFound:
        """The error after all that may be asked do not have it: that proxies may not be, or that it is ``absent``."""
        return self._reserved or absent

    async def first(
        self,
        members: Sequence[FlatMember],
        read: Callable[[int, bool], Awaitable[T]],
        known: Callable[[Repository], Awaitable[bool]],
        absent: NotFound,
        *,
        same: bool = False,
    ) -> T:
        """
        What the first of some members answers, see L{pkgrepo.proxy.caching.search_order}.

        ``read`` is called with the number of a member, and whether all before it have answered. ``known`` tells whether
        one is known to have had it; ``same`` is that of the search. Members that are off count as failed.

        :raises NotFound: none has it: ``absent``, or a better reason; :raises UpstreamFailed: that is not known
        :raises MemberInactive: so far as only one that is off may have it
        """
        order = SearchOrder(same=same)
        for number, member in enumerate(members):
            if not member.repository.active:
                order.fail(self.inactive(), known=await known(member.repository))
                if order.ended:
                    break
                continue
            if order.only_known and not await known(member.repository):
                self.trace.add(StepKind.WITHHELD, repository=member.repository.path)
                continue
            try:
                found = await read(number, order.failure is None)
            except NotFound:
                continue
            except FAILURES as error:
                order.fail(error)
                if order.ended:
                    break
                continue
            for each in members[number + 1 :]:
                self.trace.add(StepKind.UNNEEDED, repository=each.repository.path)
            return found
        raise order.failure or self.missing(absent)

    def unchanged(self, reader: Reader) -> bool:
        """Whether the same repositories are asked for the name, and the hosted ones have of it what they had."""
        if repositories.config_serial(reader) != self.config_serial:
            return False
        return all(ownership(reader, each, self.name) == before for each, before in self.serials.items())


async def find_owners(
    catalog: ICatalog,
    members: Sequence[FlatMember],
    repository: Repository,
    name: str,
    trace: Trace,
    *,
    config_serial: int,
    what: str = "package",
) -> Owners:
    """Who serves a name, of the ``members`` behind a repository: see L{Owners}."""
    virtual = repository.type is RepositoryType.VIRTUAL
    merges = bool(name) and virtual and rules_of(repository).merges(name)
    hosted = [each.repository for each in members if name and each.repository.type is RepositoryType.HOSTED]
    serials: Mapping[int, int | None] = {}
    if hosted:
        serials = await catalog.look(_read_serials, [each.id for each in hosted], name)
    for each in hosted:
        trace.add(owner_step(serials[each.id], active=each.active, merges=merges), repository=each.path)
    skips = virtual and rules_of(repository).skip_inactive
    return Owners(repository, name, trace, config_serial, members, serials, merges, what, skips)


def check_reserved(proxy: FlatMember, name: str, trace: Trace) -> None:
    """Check that what a proxy keeps under a name may be served. :raises NameReserved: it may not"""
    reserved = proxy.reserved_by(name)
    if reserved is not None:
        owner, pattern = reserved
        trace.add(StepKind.RESERVED, repository=proxy.repository.path, pattern=pattern, rule=owner.path)
        raise NameReserved("package", name, pattern)


def _read_serials(reader: Reader, hosted: Sequence[int], name: str) -> dict[int, int | None]:
    return {each: ownership(reader, each, name) for each in hosted}
