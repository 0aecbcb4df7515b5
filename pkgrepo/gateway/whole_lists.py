"""
Documents over all packages of a repository, such as the index of a chart repository, for formats that have one.

=============================  ===================================================  ===================================
repository                     what is listed of a package                          read anew
=============================  ===================================================  ===================================
hosted, and no rules hold      its fragments                                        after a change, of that package
any other one, and views of    what its members show, as the documents of single    as a whole, when something changes
the past                       packages would have it (L{owners}), by the rules     or may be shown that was too young
=============================  ===================================================  ===================================

An upstream has one document with a section for each package. It is asked as for any document; a member that fails and
of which nothing is kept fails the list, since it would say that its packages do not exist.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from functools import partial
from itertools import groupby, islice
from typing import Any, Final

import msgspec
from attrs import evolve, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.concurrency.single_flight import StampCache
from pkgrepo.errors import NotFound
from pkgrepo.gateway.package_documents import Found, in_coding, serve_document
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Document, Fragment, Repository, RepositoryType
from pkgrepo.proxy.caching.questions import DocumentRequest, Held
from pkgrepo.proxy.configuration import virtual_config_of
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.values import Entry, name_in
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.resolving.member_parts import hosted_parts
from pkgrepo.proxy.resolving.rules import MemberJudges
from pkgrepo.proxy.resolving.serving import HostedMember
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.policy.judge import with_listed
from pkgrepo.repositories.publish.package_lists import PackageList, PackageLists
from pkgrepo.storage.catalog import index_documents, upstream_documents
from pkgrepo.storage.catalog.file_facts import serial_of_format
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.untrusted.networks import networks_of

MOST_DOCUMENTS: Final = 64  # of repositories that are not hosted
MOST_OF_VIEWS: Final = 8  # of the past
STEP_MS: Final = 300_000  # of time after which what was too young is looked at again

Listed = tuple[str, tuple[Fragment, ...]]  # a package by its key, and its fragments in order
Render = Callable[[PackageList[Listed], int, str], Document]  # of a list, its serial and a form


@frozen(eq=False)
class _State:
    """
    What a list is made of: the members with what their upstreams said, and the serials of the hosted ones.

    ``facts`` is the serial of what is known of the files of upstreams, None if no rule asks for that.
    """

    config: int
    members: Sequence[tuple[FlatMember, Held | None]]
    serials: Mapping[int, int]
    facts: int | None

    @property
    def stamp(self) -> Hashable:
        """Differs whenever the list may."""
        fetched = tuple((each.repository.id, held.document.fetched_ms) for each, held in self.members if held)
        return self.config, fetched, tuple(self.serials.items()), self.facts

    @property
    def asked(self) -> list[tuple[Repository, Held]]:
        """The proxies, with what their upstreams said."""
        return [(each.repository, held) for each, held in self.members if held is not None]

    @property
    def cacheable(self) -> bool:
        """Whether the catalog tells when something changes."""
        return all(held.stored and not held.stale for _, held in self.asked)

    def settled(self, repository: Repository) -> bool:
        """Whether it is that of a view of the past which stays as it is."""
        view = repository.view
        return (
            view is not None
            and view.settled
            and all(not held.stale and held.document.checked_ms > view.at_ms for _, held in self.asked)
        )

    def fresh(self, reader: Reader) -> bool:
        """Whether the list is still made of the same."""
        return (
            repositories.config_serial(reader) == self.config
            and all(repositories.content_serial(reader, id_) == serial for id_, serial in self.serials.items())
            and all(
                upstream_documents.fetched_at(reader, proxy.id, held.document.key) == held.document.fetched_ms
                for proxy, held in self.asked
            )
            and (self.facts is None or serial_of_format(reader, self.members[0][0].repository.format) == self.facts)
        )


Made = tuple[Document, int | None]  # and when rules about ages show more (Unix ms)


class WholeLists:
    """
    The lists of one format in all repositories, in one cache per process.

    They are made of the fragments of one ``kind``; ``question`` is how upstreams are asked, ``proxied`` is that of the
    format, and ``render`` makes the document in a form.
    """

    serial = staticmethod(repositories.content_serial)

    def __init__(self, question: DocumentRequest, kind: str, proxied: Proxied, render: Render) -> None:
        self._question = question
        self._proxied = proxied
        self._kind = kind
        self._render = render
        self._hosted: PackageLists[Listed, Document] = PackageLists(self)
        self._merged: StampCache[tuple[int, str], Made] = StampCache(MOST_DOCUMENTS)
        self._of_views: StampCache[tuple[int, str, int], Made] = StampCache(MOST_OF_VIEWS)

    def read_all(self, reader: Reader, repository_id: int) -> list[tuple[str, Listed]]:
        """All packages of a hosted repository; see L{Source}."""
        found = index_documents.fragments_by_package(reader, repository_id, self._kind)
        return [(key, (key, tuple(fragments))) for key, fragments in found]

    def read_one(self, reader: Reader, repository_id: int, key: str) -> Listed | None:
        """One of them; see L{Source}."""
        package = packages.find_package(reader, repository_id, key)
        found = () if package is None else index_documents.list_fragments(reader, package.id, self._kind)
        return (key, tuple(found)) if found else None

    def render(self, listed: PackageList[Listed], serial: int, form: str, before: Document | None) -> Document:  # noqa: ARG002 - of the protocol
        """A list in a form; see L{Source}."""
        return self._render(listed, serial, form)

    async def answer(self, context: Context[Any], request: Request, form_of: Callable[[Request], str]) -> Response:
        """
        The list of a repository in the form for a request, in the content coding that its client prefers.

        Callers check permissions.

        :raises NotFound: it is a proxy, and its upstream has none; :raises UpstreamFailed: it is not known what one has
        """
        services, repository, form = context.services, context.repository, form_of(request)

        async def look() -> Found[Document]:
            found = await self._find(services, repository, form, revalidate=request.revalidates)
            return evolve(found, ready=lambda again: found.document if form_of(again) == form else None)

        return await serve_document(services, request, repository, look)

    async def page(self, context: Context[Any], request: Request, form: str, offset: int, limit: int) -> bytes:
        """
        Some of the packages of a list whose ``form`` is a JSON object with a member for each, as such an object.

        For the errors see ``answer``.
        """
        services = context.services
        found = await self._find(services, context.repository, form, revalidate=request.revalidates)
        async with services.searches.semaphore.hold(networks_of(request.client_address)):
            return await services.pools.cpu(_page, found.document, offset, limit)

    # Below

    async def _find(
        self, services: Services, repository: Repository, form: str, *, revalidate: bool
    ) -> Found[Document]:
        respond = in_coding(services, repository)
        ways = services.proxy.resolver.ways(repository)
        if repository.type is RepositoryType.HOSTED and all(each.policy is None for each in ways):
            document = await self._hosted.get(services.catalog, services.pools, repository, form)
            state, ends_ms, settled = None, [], False
        else:
            state = await self._state(services, repository, revalidate=revalidate)
            document, opens_ms = await self._merge(services, repository, state, form)
            ends = (opens_ms, *(held.document.fresh_until_ms for _, held in state.asked))
            ends_ms, settled = [each for each in ends if each is not None], state.settled(repository)
        return Found(
            document=document,
            respond=partial(respond, settled=settled),
            ready=lambda _: None,
            fresh=partial(self._is_ready, repository, form, document) if state is None else state.fresh,
            size=2 * document.size,
            cacheable=state is None or state.cacheable,
            by_address=True,
            ends_s=min(ends_ms, default=0) // 1000,
        )

    def _is_ready(self, repository: Repository, form: str, document: Document, reader: Reader) -> bool:
        return self._hosted.ready(reader, repository, form) is document

    async def _state(self, services: Services, repository: Repository, *, revalidate: bool) -> _State:
        config, proxying = services.registry.serial, services.proxy
        members: list[tuple[FlatMember, Held | None]] = []
        facts = None
        for each in proxying.resolver.ways(repository):
            member, held = each.repository, None
            if member.type is RepositoryType.PROXY:
                if not member.active:
                    continue
                held = await proxying.documents.answer(member, self._question, Trace(), revalidate=revalidate)
                if not held.document.found and member.id == repository.id:
                    raise held.missing(self._question.name)
            policy = each.policy
            if facts is None and policy is not None and (policy.reads_metadata or policy.reads_bytes):
                facts = await services.catalog.look(serial_of_format, member.format)
            members.append((each, held))
        hosted = [each.repository.id for each, held in members if held is None]
        serials = {each: await services.catalog.look(repositories.content_serial, each) for each in hosted}
        return _State(config, members, serials, facts)

    async def _merge(self, services: Services, repository: Repository, state: _State, form: str) -> Made:
        make, view = partial(self._make, services, repository, state, form), repository.view
        if view is not None:
            key = (repository.id, form, view.at_ms)
            return await self._of_views.get(key, state.stamp, lambda: services.view_turns.make(repository, make))
        kept = self._merged.find((repository.id, form), state.stamp)
        if kept is not None and kept[1] is not None and services.clock.now_ms() >= kept[1]:
            self._merged.forget((repository.id, form))
        return await self._merged.get((repository.id, form), state.stamp, make)

    async def _make(self, services: Services, repository: Repository, state: _State, form: str) -> Made:
        opens: set[int] = set()
        lists: list[tuple[FlatMember, list[Listed]]] = []
        owned: Set[str] = frozenset()
        if state.serials and state.asked:
            owned = await services.catalog.scan(packages.owned_keys, list(state.serials))
        for flat, held in state.members:
            if not flat.repository.active:
                continue
            judges = None if flat.policy is None else await services.proxy.judges.of_member(flat)
            if held is None:
                found = await services.catalog.scan(self._of_hosted, flat.repository, judges)
            elif not held.document.found:
                continue
            else:
                declares = self._proxied.declares
                read = partial(_entries, kinds={self._kind, *(() if declares is None else declares.kinds)})
                entries = await services.proxy.documents.read(flat.repository, self._question, held, read)
                route = held.document.route
                found = await services.catalog.scan(self._of_upstream, entries, judges, route, opens)
            lists.append((flat, found))
        resolution = repository.type is RepositoryType.VIRTUAL and virtual_config_of(repository).merges
        merged = await services.pools.cpu(_join, lists, owned, resolution)
        serial = sum(state.serials.values()) + sum(held.document.fetched_ms for _, held in state.asked)
        document = await services.pools.cpu(self._render, PackageList(merged), serial, form)
        return document, max(min(opens), services.clock.now_ms() + STEP_MS) if opens else None

    def _of_hosted(self, reader: Reader, member: Repository, judges: MemberJudges | None) -> list[Listed]:
        found, gil = [], GilReleaser()
        for key, (_, fragments) in self.read_all(reader, member.id):
            judge = None if judges is None else judges(reader, key)
            if judge is not None:
                try:
                    parts, _ = hosted_parts(reader, self._proxied, HostedMember(member, 0, judge), key, self._kind)
                except NotFound:
                    continue
                if parts.fragments[self._kind]:
                    found.append((key, tuple(parts.fragments[self._kind])))
            else:
                found.append((key, fragments))
            gil.release_if_due()
        return found

    def _of_upstream(
        self, reader: Reader, entries: Iterable[Entry], judges: MemberJudges | None, route: str, opens: set[int]
    ) -> list[Listed]:
        """The packages that an upstream lists, also those of which rules hide everything: nobody else serves them."""
        found, gil = [], GilReleaser()
        for key, some in groupby(entries, key=lambda each: name_in(each.sort)):
            judge, listed = None if judges is None else judges(reader, key), list(some)
            judge = None if judge is None else with_listed(judge, listed, route)
            fragments = []
            for entry in listed:
                verdict = None if judge is None else judge.of_entry(entry, route)
                if verdict is None or verdict.served:
                    place = entry.sort[len(key.encode()) + 1 :]
                    fragments.append(Fragment(place, entry.key, entry.fragments[self._kind]))
                elif verdict.opens_ms is not None:
                    opens.add(verdict.opens_ms)
            found.append((key, tuple(fragments)))
            gil.release_if_due()
        return found


def _page(document: Document, offset: int, limit: int) -> bytes:
    body = document.body or gzip.decompress(document.gzip or b"")
    members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    return msgspec.json.encode(dict(islice(members.items(), offset, offset + limit)))


def _entries(parts: PartsFile, kinds: Set[str]) -> list[Entry]:
    return list(parts.entries(kinds))


def _join(lists: Sequence[tuple[FlatMember, list[Listed]]], owned: Set[str], merges: bool) -> list[tuple[str, Listed]]:
    """
    The packages of all members, by key; of two fragments with one key that of the first member.

    Hosted members come first. A package of theirs has nothing of upstreams, unless a rule says so; one of several
    upstreams is that of the first one, unless the repository ``merges``.
    """
    found: dict[str, dict[str, Fragment]] = {}
    taken: set[str] = set()
    for flat, listed in sorted(lists, key=lambda pair: pair[0].repository.type is RepositoryType.PROXY):
        if flat.repository.type is RepositoryType.PROXY:
            names = {key for key, _ in listed} - taken
            names = {each for each in names if each not in owned or flat.merges(each)}
            names = {each for each in names if flat.reserved_by(each) is None}
            if not merges:
                taken |= names
        else:
            names = {key for key, _ in listed}
        for key, fragments in listed:
            if key not in names:
                continue
            known = found.setdefault(key, {})
            for each in fragments:
                known.setdefault(each.key, each)
    return [(key, (key, tuple(sorted(found[key].values())))) for key in sorted(found) if found[key]]
