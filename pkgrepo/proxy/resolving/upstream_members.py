"""Which proxy repositories serve a package that no hosted repository has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import Factory, define, frozen
from twisted.logger import Logger

from pkgrepo.errors import NotFound, PkgrepoError
from pkgrepo.interfaces import IProxiedFormat
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.configuration import virtual_config_of
from pkgrepo.proxy.documents.freshness import FAILURES, STALE_RETRY_MS, Documents
from pkgrepo.proxy.documents.held import DocumentRequest
from pkgrepo.proxy.refusals import NameReserved
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.repositories.clock import Clock

from .leaves import Leaf, Leaves
from .serving import UpstreamMember

log = Logger()


@frozen
class Outcome:
    """The members that have the package. ``unknown``: others might have it, but failed."""

    serving: Sequence[UpstreamMember] = ()
    unknown: bool = False


NOTHING: Final = Outcome()
UNKNOWN: Final = Outcome(unknown=True)


@define
class Search:
    """
    The search of one package on behalf of one repository, and what was learned so far.

    ``recheck_ms`` is when a member that does not have it, or failed, is asked again.
    """

    repository: Repository
    key: str
    request: DocumentRequest
    leaves: Mapping[int, Leaf]
    trace: Trace
    revalidate: bool
    outcomes: dict[int, Outcome] = Factory(dict)  # by repository
    failure: PkgrepoError | None = None
    reserved: str | None = None
    recheck_ms: int | None = None

    def recheck(self, at_ms: int) -> None:
        """Ask again at this time at the latest."""
        self.recheck_ms = at_ms if self.recheck_ms is None else min(self.recheck_ms, at_ms)


class UpstreamMembers:
    """Asks the proxies behind repositories, in order."""

    def __init__(
        self, *, documents: Documents, leaves: Leaves, clock: Clock, formats: Mapping[str, IProxiedFormat]
    ) -> None:
        self._documents = documents
        self._leaves = leaves
        self._clock = clock
        self._formats = formats

    async def find(
        self, repository: Repository, key: str, trace: Trace, *, revalidate: bool
    ) -> tuple[Sequence[UpstreamMember], int | None]:
        """
        The proxies that serve a package, in order, and when others are asked again (None: never).

        :raises NotFound: none has it; :raises UpstreamFailed: that is not known, since one failed
        """
        request = self._formats[repository.format].document_request(key)
        search = Search(repository, key, request, self._leaves.of(repository), trace, revalidate)
        outcome = await self._ask(search, repository, only_kept=False)
        if outcome.serving:
            return outcome.serving, search.recheck_ms
        if search.failure is not None:
            raise search.failure
        if search.reserved is None:
            raise NotFound("package", key)
        log.info("{key} is not asked for {repository}: its name is reserved", key=key, repository=repository.path)
        raise NameReserved("package", key, search.reserved)

    async def _ask(self, search: Search, repository: Repository, *, only_kept: bool) -> Outcome:
        if repository.type is RepositoryType.VIRTUAL:
            return await self._ask_members(search, repository, only_kept=only_kept)
        if repository.type is RepositoryType.PROXY:
            return await self._ask_proxy(search, search.leaves[repository.id], only_kept=only_kept)
        return NOTHING

    async def _ask_members(self, search: Search, virtual: Repository, *, only_kept: bool) -> Outcome:
        """
        The first member that has it, or all with the resolution ``merge``.

        If the first ones failed, a later one that has served the package before goes on serving it. One that has not
        could serve a stranger's package under the name of the first one's.
        """
        merges = virtual_config_of(virtual).merges
        serving: list[UpstreamMember] = []
        unknown = False
        for member in self._leaves.members(virtual):
            if serving and not merges:
                if member.type is not RepositoryType.HOSTED:
                    search.trace.add(StepKind.UNNEEDED, repository=member.path)
                continue
            outcome = await self._ask(search, member, only_kept=only_kept or (unknown and not merges))
            serving += [each for each in outcome.serving if each not in serving]
            unknown = unknown or outcome.unknown
        return Outcome(serving, unknown)

    async def _ask_proxy(self, search: Search, leaf: Leaf, *, only_kept: bool) -> Outcome:
        proxy, trace = leaf.repository, search.trace
        if proxy.id in search.outcomes:  # it is a member in several places
            return search.outcomes[proxy.id]
        for owner, rules in leaf.rules:
            pattern = rules.reserved_by(search.key)
            if pattern is not None:
                trace.add(StepKind.RESERVED, repository=proxy.path, pattern=pattern, rule=owner.path)
                search.reserved = pattern
                return NOTHING
        if not proxy.active:
            trace.add(StepKind.INACTIVE, repository=proxy.path)
            return NOTHING
        if only_kept:
            kept = await self._documents.find(proxy, search.request.key)
            if kept is None or not kept.document.found:
                trace.add(StepKind.WITHHELD, repository=proxy.path)
                return UNKNOWN
        outcome = search.outcomes[proxy.id] = await self._ask_upstreams(search, proxy)
        return outcome

    async def _ask_upstreams(self, search: Search, proxy: Repository) -> Outcome:
        try:
            held = await self._documents.answer(proxy, search.request, search.trace, revalidate=search.revalidate)
        except FAILURES as error:
            search.failure = search.failure or error
            search.recheck(self._clock.now_ms() + STALE_RETRY_MS)
            return UNKNOWN
        if held.document.found:
            return Outcome((UpstreamMember(proxy, search.request, held),))
        search.failure = search.failure or held.failure
        search.recheck(held.document.fresh_until_ms)
        return NOTHING
