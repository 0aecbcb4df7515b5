"""Which proxy repositories serve a package that no hosted repository has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import Factory, define, frozen

from pkgrepo.concurrency.together import together
from pkgrepo.errors import NotFound, PkgrepoError, UpstreamDenied
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.caching.documents import Documents
from pkgrepo.proxy.caching.questions import DocumentRequest, Held
from pkgrepo.proxy.caching.search_order import SearchOrder
from pkgrepo.proxy.caching.states import FAILURES, STALE_RETRY_MS
from pkgrepo.proxy.configuration import proxy_config_of, routes_of, virtual_config_of
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.resolving.flat_members import FlatMember, FlatMembers
from pkgrepo.proxy.resolving.owners import Owners
from pkgrepo.proxy.trace import StepKind, Trace
from pkgrepo.repositories.clock import Clock

from .serving import UpstreamMember


@frozen
class Outcome:
    """
    The members that have the package, and the ``failure`` of others that might have it.

    If that is a refusal, the search ended: those after it were not asked, or do not count. ``known`` means that one
    that failed is known to have had it.
    """

    serving: Sequence[UpstreamMember] = ()
    failure: PkgrepoError | None = None
    known: bool = False

    @property
    def is_denied(self) -> bool:
        """Whether one refused."""
        return isinstance(self.failure, UpstreamDenied)


@frozen
class Found:
    """
    The proxies that serve a package, in order. At ``recheck_ms`` others are asked again (None: never).

    They are ``partial`` if a route failed or refused whose response would be joined with theirs.
    """

    serving: Sequence[UpstreamMember]
    recheck_ms: int | None
    partial: bool


NOTHING: Final = Outcome()


@define
class Search:
    """
    The search of one package of ``owners``, and what was learned so far.

    ``recheck_ms`` is when a member that does not have it, or failed, is asked again; ``partial`` is that of L{Found}.
    """

    owners: Owners
    request: DocumentRequest
    flat: Mapping[int, FlatMember]
    revalidate: bool
    outcomes: dict[int, Outcome] = Factory(dict)  # by repository
    failure: PkgrepoError | None = None
    recheck_ms: int | None = None
    partial: bool = False

    @property
    def key(self) -> str:
        """The key of the package."""
        return self.request.package_key

    @property
    def trace(self) -> Trace:
        """The steps so far."""
        return self.owners.trace

    def recheck(self, at_ms: int) -> None:
        """Ask again at this time at the latest."""
        self.recheck_ms = at_ms if self.recheck_ms is None else min(self.recheck_ms, at_ms)


@define(eq=False, kw_only=True)
class UpstreamMembers:
    """Asks the proxies behind repositories, in order."""

    _documents: Documents
    _flat: FlatMembers
    _clock: Clock
    _formats: Mapping[str, Proxied]

    async def find(self, owners: Owners, key: str, *, revalidate: bool) -> Found:
        """
        The proxies that serve a package, whose document has this key.

        :raises NotFound: none has it; :raises UpstreamFailed: that is not known, since one failed
        """
        repository = owners.repository
        request = self._formats[repository.format].document_request(key)
        flat = {each.repository.id: each for each in owners.members}
        search = Search(owners, request, flat, revalidate)
        outcome = await self._ask(search, repository, only_kept=False)
        if outcome.serving:
            return Found(outcome.serving, search.recheck_ms, search.partial or outcome.is_denied)
        failure = outcome.failure if outcome.is_denied else search.failure
        if failure is not None:
            raise failure
        raise owners.missing(NotFound("package", search.key))

    async def _ask(self, search: Search, repository: Repository, *, only_kept: bool) -> Outcome:
        if repository.type is RepositoryType.VIRTUAL:
            return await self._ask_members(search, repository, only_kept=only_kept)
        if repository.type is RepositoryType.PROXY:
            return await self._ask_proxy(search, search.flat[repository.id], only_kept=only_kept)
        return NOTHING

    async def _ask_members(self, search: Search, virtual: Repository, *, only_kept: bool) -> Outcome:
        """
        The first member that has it, or all with the resolution ``merge``, see L{pkgrepo.proxy.caching.search_order}.

        One that has served the package before is known to have had it.
        """
        merges = virtual_config_of(virtual).merges
        serving: list[UpstreamMember] = []
        order = SearchOrder(same=merges)
        for member in self._flat.members(virtual):
            if serving and not merges:
                if member.type is not RepositoryType.HOSTED:
                    search.trace.add(StepKind.UNNEEDED, repository=member.path)
                continue
            outcome = await self._ask(search, member, only_kept=only_kept or order.only_known)
            serving += [each for each in outcome.serving if each not in serving]
            if outcome.failure is not None:
                order.fail(outcome.failure, known=outcome.known)
            if order.ended:
                break
        return Outcome(serving, order.failure, known=order.ended)

    async def _ask_proxy(self, search: Search, flat: FlatMember, *, only_kept: bool) -> Outcome:
        proxy, trace = flat.repository, search.trace
        if proxy.id in search.outcomes:  # it is a member in several places
            return search.outcomes[proxy.id]
        if not search.owners.may_ask(flat):
            if not search.owners.is_off(flat):
                return NOTHING
            search.failure = search.failure or search.owners.inactive()
            return Outcome(failure=search.owners.inactive(), known=await self._is_known(search, proxy))
        if only_kept and not await self._is_known(search, proxy):
            trace.add(StepKind.WITHHELD, repository=proxy.path)
            return Outcome(failure=search.failure)
        for route in proxy_config_of(proxy).routes:
            if not route.serves(search.request.package_key):
                trace.add(StepKind.UNNEEDED, repository=proxy.path, route=route.name)
        outcome = search.outcomes[proxy.id] = await self._ask_upstreams(search, proxy)
        return outcome

    async def _is_known(self, search: Search, proxy: Repository) -> bool:
        """Whether a proxy is known to have had the package."""
        requests = requests_of(search.request, proxy)
        kept = [await self._documents.find(proxy, each.key) for each in requests]
        return any([await self._has(proxy, *each) for each in zip(requests, kept, strict=True)])

    async def _ask_upstreams(self, search: Search, proxy: Repository) -> Outcome:
        if not search.request.merges:
            return await self._ask_for(search, proxy, search.request, search.trace)
        requests = requests_of(search.request, proxy)
        traces = [Trace() for _ in requests]
        outcomes = await self._ask_routes(search, proxy, requests, traces)
        for each in traces:
            search.trace.join(each)
        order, serving = SearchOrder(), list[UpstreamMember]()
        for outcome in outcomes:
            serving += outcome.serving
            if outcome.failure is not None:
                order.fail(outcome.failure)
            if order.ended:
                break
        search.partial = search.partial or order.failure is not None
        return Outcome(serving, order.failure)

    async def _ask_routes(
        self, search: Search, proxy: Repository, requests: Sequence[DocumentRequest], traces: Sequence[Trace]
    ) -> Sequence[Outcome]:
        """
        The responses of all routes: at once of those that have it, then of the others in turn until one fails.

        What one after it would answer would be kept, and count as served before. Replicas are asked at once.
        """
        replicas = proxy_config_of(proxy).replicas
        at_once = [
            number
            for number, each in enumerate(requests)
            if replicas or await self._has(proxy, each, await self._documents.find(proxy, each.key))
        ]
        responses = await together(self._ask_for(search, proxy, requests[each], traces[each]) for each in at_once)
        known = dict(zip(at_once, responses, strict=True))
        found: list[Outcome] = []
        for number, request in enumerate(requests):
            if number in known:
                found.append(known[number])
            elif any(each.failure is not None for each in found):
                traces[number].add(StepKind.WITHHELD, repository=proxy.path, route=request.route)
                found.append(NOTHING)
            else:
                found.append(await self._ask_for(search, proxy, request, traces[number]))
        return found

    async def _ask_for(self, search: Search, proxy: Repository, request: DocumentRequest, trace: Trace) -> Outcome:
        try:
            held = await self._documents.answer(proxy, request, trace, revalidate=search.revalidate)
            has = await self._has(proxy, request, held)
        except FAILURES as error:
            search.failure = search.failure or error
            search.recheck(self._clock.now_ms() + STALE_RETRY_MS)
            return Outcome(failure=error)
        if has:
            return Outcome((UpstreamMember(proxy, request, held),))
        if held.document.found:
            trace.add(StepKind.ABSENT, route=held.document.route, at_ms=held.document.checked_ms)
        search.failure = search.failure or held.failure
        search.partial = search.partial or (held.stale and bool(request.route))
        search.recheck(held.document.fresh_until_ms)
        return NOTHING

    async def _has(self, proxy: Repository, request: DocumentRequest, held: Held | None) -> bool:
        """Whether a response has the package; that it is found is not enough if it is about many."""
        if held is None or not held.document.found:
            return False
        if not request.section:
            return True
        return await self._documents.read(proxy, request, held, lambda parts: parts.has_section(request.section))


def requests_of(request: DocumentRequest, proxy: Repository) -> Sequence[DocumentRequest]:
    """The questions to a proxy: one for all its routes, or one for each."""
    if not request.merges:
        return (request,)
    return [request.of_route(each.name) for each in routes_of(proxy, request.package_key)]
