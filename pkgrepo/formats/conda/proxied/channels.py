"""
The documents of proxies and virtual repositories, kept while upstreams say the same and hosted members stay the same.

What each member has of a document is written to a temporary file, and joined and compressed when a client asks for it.
After a change only the parts of the members that changed are written again, and of these only the shards that differ.

For an upstream with 600,000 records of 600 bytes a document takes 360 MB of disk for the text, and as much for each
form of it that clients ask for as that has (40 MB for ``.zst``), and 2 s of a thread. The shards of 30,000 packages
take 40 MB of disk, 15 MB of memory and 3 s, and 1.2 s when few have changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterator
from functools import partial
from typing import Final

from attrs import Factory, define, field

from pkgrepo.concurrency.lru import Lru, SizedCache
from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import NotFound, existing
from pkgrepo.formats.conda.index import packages as channel
from pkgrepo.formats.conda.index.documents import (
    BZ2,
    CODINGS,
    REPODATA,
    SHARDS_INDEX,
    Form,
    StoredDocument,
    store,
)
from pkgrepo.formats.conda.index.packages import PackageRecords, make_index
from pkgrepo.formats.conda.index.past import read_past
from pkgrepo.formats.conda.index.requests import document_response, shards_index, wanted
from pkgrepo.formats.conda.names import BZ2_DOCUMENT
from pkgrepo.formats.conda.paths import ShardPath
from pkgrepo.formats.conda.proxied.members import STEP_MS, Hidden, Selection, find_hidden, shown_records
from pkgrepo.gateway.package_documents import Found, serve_document
from pkgrepo.gateway.services import Context, Services
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Response
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.configuration import virtual_config_of
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.resolving.rules import MemberJudges
from pkgrepo.storage.catalog.packages import packages

from .members import ChannelState, Upstream, find_members
from .normaliser import NAMES
from .pieces import Part, PartPlan, text_digest, text_pieces, text_size

MOST_OF_VIEWS: Final = 8  # documents of views of the past
MOST_KEPT: Final = 64  # documents of folders; a proxy of which two platforms are used has four at most
SUPERSEDED: Final = 16 * 1024 * 1024  # bytes of shards that are still served to clients with an older index

_HOSTED: Final = -1  # in the place of a proxy's id, for the part of hosted members
_SPLIT: Final = -2  # for the packages of which several have records


Place = tuple[int, str, str, int | None]  # repository, folder, document, and the time of a view


def _place_of(repository: Repository, subdir: str, document: str) -> Place:
    return repository.id, subdir, document, None if repository.view is None else repository.view.at_ms


@define(eq=False)
class Kept:
    """A document: its parts by member, each with the stamp of what it was made of, and the forms asked for."""

    stamp: Hashable
    opens_ms: int | None
    parts: dict[int, tuple[Hashable, Part]]
    digest: str = ""
    forms: dict[str, StoredDocument] = Factory(dict)
    in_flight: SingleFlight[str, StoredDocument] = field(factory=SingleFlight)

    def suffices(self, stamp: Hashable, now_ms: int) -> bool:
        """Whether it shows this state now."""
        return self.stamp == stamp and (self.opens_ms is None or now_ms < self.opens_ms)

    def shard(self, digest: bytes) -> tuple[str, bytes] | None:
        """The name of a package and its shard, by the digest of that."""
        for _, part in self.parts.values():
            if digest in part.shards:
                return part.shards[digest].name, part.shard(digest)
        return None


class MemberChannels:
    """The documents of all channels that are not hosted, one instance per process."""

    def __init__(self) -> None:
        self._kept: Lru[Place, Kept] = Lru(MOST_KEPT)
        self._of_views: Lru[Place, Kept] = Lru(MOST_OF_VIEWS)
        self._in_flight: SingleFlight[Place, Kept] = SingleFlight()
        self._superseded: SizedCache[tuple[str, bytes]] = SizedCache(SUPERSEDED)

    async def get(
        self, services: Services, repository: Repository, state: ChannelState, form: Form
    ) -> tuple[StoredDocument, int | None]:
        """
        A document in this state, and when rules about ages will show more (Unix ms; None: never).

        :raises NotFound: it is not there in this coding, since it is too large
        :raises UpstreamFailed: what an upstream has was lost here, and it failed when it was asked again
        :raises Refusal: too many documents of views of the past are made at the same time
        """
        place = _place_of(repository, form.subdir, form.document)
        kept = self._cache_of(place).get(place)
        if kept is not None and not kept.suffices(state.stamp, services.clock.now_ms()):
            kept = None
        while kept is None or kept.stamp != state.stamp:  # else it is that of another request, which began before
            update = partial(self._update, services, repository, state, place)
            kept = await self._in_flight.run(place, partial(services.view_turns.make, repository, update))
        document = kept.forms.get(form.coding)
        if document is None:
            make = partial(self._make_form, services, kept, form)
            document = await kept.in_flight.run(form.coding, partial(services.view_turns.make, repository, make))
        return document, kept.opens_ms

    def ready(self, repository: Repository, state: ChannelState, form: Form) -> StoredDocument | None:
        """The document of a channel in this state if it is stored; it is not made."""
        place = _place_of(repository, form.subdir, form.document)
        kept = self._cache_of(place).get(place)
        return kept.forms.get(form.coding) if kept is not None and kept.stamp == state.stamp else None

    def find_shard(self, repository: Repository, subdir: str, digest: bytes) -> tuple[str, bytes] | None:
        """A shard of the index that is there, or of one before, with the name of its package."""
        place = _place_of(repository, subdir, SHARDS_INDEX)
        kept = self._cache_of(place).get(place)
        found = None if kept is None else kept.shard(digest)
        return found or self._superseded.get((repository.id, subdir, digest))

    # Below

    def _cache_of(self, place: Place) -> Lru[Place, Kept]:
        return self._kept if place[3] is None else self._of_views

    async def _update(self, services: Services, repository: Repository, state: ChannelState, place: Place) -> Kept:
        before = self._cache_of(place).get(place)
        parts = await _Writing(services, repository, state, place[1], place[2], before).write()
        opens = [part.opens_ms for _, part in parts.values() if part.opens_ms is not None]
        kept = Kept(state.stamp, min(opens, default=None), parts)
        self._cache_of(place).put(place, kept)
        kept.digest = await services.pools.cpu(_digest, place[1], place[2], kept)
        if before is not None and before.digest == kept.digest:
            kept.forms.update(before.forms)
        if before is not None and place[2] == SHARDS_INDEX:
            await services.pools.cpu(self._supersede, place, before, kept)
        return kept

    async def _make_form(self, services: Services, kept: Kept, form: Form) -> StoredDocument:
        document = await services.pools.cpu(_make_form, kept, form)
        kept.forms[form.coding] = document
        return document

    def _supersede(self, place: Place, before: Kept, now: Kept) -> None:
        present = {digest for _, part in now.parts.values() for digest in part.shards}
        for _, part in before.parts.values():
            for digest in part.shards.keys() - present:
                found = part.shards[digest].name, part.shard(digest)
                self._superseded.put((place[0], place[1], digest), found, size=len(found[1]))


@define(eq=False)
class _Writing:
    """The parts of one document in one state; those of ``before`` that are still the same are used again."""

    services: Services
    repository: Repository
    state: ChannelState
    subdir: str
    document: str
    before: Kept | None

    async def write(self) -> dict[int, tuple[Hashable, Part]]:
        """All parts, by the ids of the proxies."""
        upstreams = self.state.upstreams
        merges = self.repository.type is RepositoryType.VIRTUAL and virtual_config_of(self.repository).merges
        names = await self._names() if len(upstreams) > 1 else {}
        shared = _shared(list(names.values())) if merges else frozenset()
        parts: dict[int, tuple[Hashable, Part]] = {}
        taken: set[str] = set()
        if self.state.hosted:
            taken |= await self.services.catalog.scan(packages.owned_keys, [each.id for each in self.state.hosted])
            parts[_HOSTED] = await self._write_hosted()
        seen = set[str]() if merges else None
        for number, each in enumerate(upstreams):
            stamp = (self.state.hosted_stamp[0], merges, *(upstream.stamp for upstream in upstreams[: number + 1]))
            parts[each.proxy.id] = await self._write_upstream(each, stamp, frozenset(taken), shared, seen)
            if not merges and number < len(upstreams) - 1:
                taken |= names[each.proxy.id]
        if shared and self._is_shards:
            split = [part for _, part in parts.values()]
            parts[_SPLIT] = None, await self.services.pools.cpu(self._plan(_SPLIT).write_split, split)
        return parts

    @property
    def _is_shards(self) -> bool:
        return self.document == SHARDS_INDEX

    def _plan(self, member: int, shared: frozenset[str] = frozenset()) -> PartPlan:
        known = None if self.before is None else self.before.parts.get(member)
        return PartPlan(
            self.subdir,
            REPODATA if self._is_shards else self.document,
            shards=self._is_shards,
            before=None if known is None else known[1],
            shared=shared,
        )

    async def _write_hosted(self) -> tuple[Hashable, Part]:
        stamp = (self.services.registry.serial, self.state.hosted_stamp)
        known = None if self.before is None else self.before.parts.get(_HOSTED)
        now_ms = self.services.clock.now_ms()
        if known is not None and known[0] == stamp and known[1].is_current(now_ms):
            return known
        resolver = self.services.proxy.resolver
        active = [resolver.flat_member(self.repository, each) for each in self.state.hosted if each.active]
        judges = [await self.services.proxy.judges.of_member(each) for each in active]
        plan, view = self._plan(_HOSTED), self.repository.view
        opens: set[int] = set()

        def read(reader: Reader, judges: MemberJudges) -> Iterator[tuple[str, PackageRecords]]:
            member = judges.flat.repository
            every = channel.read_all(reader, member.id) if view is None else read_past(reader, member, view.at_ms)
            for name, records in every:
                shown, opens_ms = shown_records(judges, reader, records)
                opens.update(opens_ms)
                yield name, shown

        part = await self.services.catalog.scan(lambda reader: plan.write_hosted(read(reader, each) for each in judges))
        part.opens_ms = max(min(opens), now_ms + STEP_MS) if opens else None
        return stamp, part

    async def _write_upstream(
        self, upstream: Upstream, stamp: Hashable, taken: frozenset[str], shared: frozenset[str], seen: set[str] | None
    ) -> tuple[Hashable, Part]:
        services, proxy = self.services, upstream.proxy
        stamp = (services.registry.serial, stamp)
        now_ms = services.clock.now_ms()
        known = None if self.before is None else self.before.parts.get(proxy.id)
        # Where files may be of several members, a part also depends on which were seen in those before it.
        if known is not None and known[0] == stamp and seen is None and known[1].is_current(now_ms):
            return known
        if not upstream.document.held.document.found:
            return stamp, Part()
        hidden, policy, named = Hidden(), upstream.member.policy, None
        if policy is not None and not self.subdir:
            named = await services.proxy.judges.named(upstream.member)
            hidden = Hidden(opens_ms=None if named is None else named.ends_ms)
        elif policy is not None:
            records = upstream.records
            find = await find_hidden(services, upstream.member, records.held.document.route)
            hidden = await services.proxy.documents.read(proxy, records.question, records.held, find)
        plan, document = self._plan(proxy.id, shared), upstream.document
        route = document.held.document.route

        def write(parts: PartsFile) -> tuple[Part, set[str] | None]:
            mine = None if seen is None else set(seen)  # it is called again if the parts turn out to be damaged
            return plan.write_upstream(parts, Selection(upstream.member, taken, hidden, mine, named, route)), mine

        part, found = await services.proxy.documents.read(proxy, document.question, document.held, write)
        if seen is not None:
            seen |= found or set()
        return stamp, part

    async def _names(self) -> dict[int, frozenset[str]]:
        """The names of the packages of each upstream, by the ids of the proxies."""
        found: dict[int, frozenset[str]] = {}
        for each in self.state.upstreams:
            records = each.records
            found[each.proxy.id] = await self.services.proxy.documents.read(
                each.proxy, records.question, records.held, lambda parts: frozenset(parts.top[NAMES])
            )
        return found


def _shared(names: list[frozenset[str]]) -> frozenset[str]:
    """The names that are in several of these sets."""
    once, twice = set[str](), set[str]()
    for each in names:
        twice |= once & each
        once |= each
    return frozenset(twice)


def _digest(subdir: str, document: str, kept: Kept) -> str:
    parts = [part for _, part in kept.parts.values()]
    if document != SHARDS_INDEX:
        return text_digest(subdir, document, parts).hex()[:32]
    return hashlib.sha256(_index_of(subdir, parts)).hexdigest()[:32]


def _index_of(subdir: str, parts: list[Part]) -> bytes:
    return make_index(subdir, {name: digest for part in parts for name, digest in sorted(part.digests.items())})


def _make_form(kept: Kept, form: Form) -> StoredDocument:
    parts = [part for _, part in kept.parts.values()]
    if form.document == SHARDS_INDEX:
        return StoredDocument(0, kept.digest, store([_index_of(form.subdir, parts)]))
    size = text_size(form.subdir, form.document, parts)
    if form.coding == BZ2 and size > BZ2_DOCUMENT:
        raise NotFound("document", f"{form.document}.bz2")
    texts = text_pieces(form.subdir, form.document, parts)
    return StoredDocument(0, kept.digest, store(CODINGS[form.coding](texts, size)))


async def get_member_document(
    context: Context[MemberChannels], request: Request, form: Form, *, negotiated: bool
) -> Response:
    """
    A document of a channel that is not hosted; if ``negotiated``, in the content coding that the client prefers.

    :raises NotFound, UpstreamFailed: see L{find_members} and L{MemberChannels.get}
    """
    services, repository, channels = context.services, context.repository, context.caches
    wants = partial(wanted, form=form, negotiated=negotiated)

    async def look() -> Found[StoredDocument]:
        config_serial = services.registry.serial
        state = await _state(context, request, form)
        document, opens_ms = await channels.get(services, repository, state, wants(request))
        ends = [each for each in (state.ends_ms, opens_ms) if each is not None]
        settled = state.settled(repository.view)
        return Found(
            document=document,
            respond=partial(document_response, repository, form, negotiated=negotiated, settled=settled),
            ready=lambda again: channels.ready(repository, state, wants(again)),
            fresh=lambda r: state.fresh(r, config_serial),
            size=document.size,
            cacheable=state.cacheable,
            ends_s=min(ends) // 1000 if ends else 0,
        )

    return await serve_document(services, request, repository, look)


async def find_member_shard(context: Context[MemberChannels], request: Request, path: ShardPath) -> tuple[str, bytes]:
    """A shard of the index, or of one before that is still there, with the name of its package."""
    services, repository, digest = context.services, context.repository, bytes.fromhex(path.sha256)
    found = context.caches.find_shard(repository, path.subdir, digest)
    if found is None:
        form = shards_index(path.subdir)
        await context.caches.get(services, repository, await _state(context, request, form), form)
        found = context.caches.find_shard(repository, path.subdir, digest)
    return existing(found, "shard", path.sha256)


async def _state(context: Context[MemberChannels], request: Request, form: Form) -> ChannelState:
    services, repository = context.services, context.repository
    return await find_members(services, repository, form.subdir, form.document, revalidate=request.revalidates)
