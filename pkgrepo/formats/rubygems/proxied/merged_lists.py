"""
The lists of proxies and virtual repositories: ``/versions`` of all members, and ``/names`` and the legacy lists.

``/versions`` has the list of each upstream as it came, without the lines of gems that other members serve, and then the
lines of hosted members. The first part is kept while the upstreams' lists and the names of hosted gems stay the same;
what the last upstream there appends to its list is appended to it too. What rules hide by its name is in none of the
lists: that of a hosted repository with such rules is made like that of a virtual one around it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Final

from attrs import Factory, evolve, field, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.concurrency.lru import Lru
from pkgrepo.concurrency.single_flight import StampCache
from pkgrepo.errors import NotFound
from pkgrepo.formats.rubygems.index.gem_lists import read_lines, versions_head
from pkgrepo.formats.rubygems.index.indexing import versions_lines_at
from pkgrepo.formats.rubygems.index.list_files import ListFile, ListWriter
from pkgrepo.formats.rubygems.index.requests import IndexCaches
from pkgrepo.formats.rubygems.proxied.derived_lists import write_names, write_specs
from pkgrepo.formats.rubygems.proxied.hidden_gems import HiddenGems, hidden_of_hosted
from pkgrepo.formats.rubygems.proxied.normaliser import PIECES_HEAD, read_pieces
from pkgrepo.formats.rubygems.proxied.upstream import specs_question, versions_question
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.caching.questions import DocumentRequest, Held
from pkgrepo.proxy.configuration import Rules, virtual_config_of
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.policy.rules import NamedRules
from pkgrepo.storage.catalog import index_documents, upstream_documents
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.judged import judged_serial

VERSIONS: Final[DocumentRequest] = versions_question()

LONG_LIST: Final = 1024 * 1024  # bytes; 16,000 gems, whose rows take 0.3 s
LONG_LIST_MS: Final = 300_000
MOST_OF_VIEWS: Final = 6  # lists of views of the past
MOST_LISTS: Final = 32  # in temporary files; the list of versions of the public registry has 23 MB


@frozen(eq=False)
class UpstreamList:
    """
    A proxy with the list of its upstream; ``rules`` are those about the names that it may serve.

    ``named`` are the rules by which something is left out, None for none.
    """

    repository: Repository
    held: Held
    rules: Sequence[Rules]
    named: NamedRules | None = None

    @property
    def begun(self) -> Hashable:
        """Differs whenever more has changed than the end of the list."""
        stamp = None if self.named is None else self.named.stamp  # another one when a rule has ended
        return self.repository.id, (self.held.base or self.held).document.fetched_ms, stamp

    @property
    def appended(self) -> int:
        """How many bytes have been appended since then."""
        base = self.held.base
        return 0 if base is None else self.held.document.meta["bytes"] - base.document.meta["bytes"]


@frozen(eq=False)
class Selection:
    """
    What is taken of an upstream's list: not the lines of gems that are ``taken``, and none of reserved names.

    The names of the others are collected in ``seen`` unless that is None. ``head`` tells whether the header is wanted.
    ``hidden`` leaves out what rules hide.
    """

    rules: Sequence[Rules]
    taken: frozenset[str]
    seen: set[str] | None
    head: bool
    hidden: HiddenGems | None = None

    def lines(self, piece: bytes) -> bytes:
        """The lines of a piece that are taken."""
        if not self.rules and not self.taken and self.seen is None and self.hidden is None:
            return piece
        found: list[bytes] = []
        gil = GilReleaser()
        for line in piece.splitlines(keepends=True):
            name = line.partition(b" ")[0].decode("utf-8", "replace")
            if name not in self.taken and not any(each.reserved_by(name) for each in self.rules):
                found.append(line if self.hidden is None else self.hidden.line(line))
                if self.seen is not None:
                    self.seen.add(name)
            gil.release_if_due()
        return b"".join(found)


@frozen(eq=False)
class JoinedLists:
    """
    The lists of upstreams in a file, of which ``appended`` are the bytes appended to each.

    ``last`` is what is taken of the last one; None if that is not known any more.
    """

    file: ListFile
    appended: tuple[int, ...]
    last: Selection | None

    async def extend(self, services: Services, upstreams: Sequence[UpstreamList]) -> JoinedLists | None:
        """The lists with what is new at their ends; None if they must be joined anew."""
        appended = tuple(each.appended for each in upstreams)
        if appended == self.appended:
            return self
        if self.last is None or appended[:-1] != self.appended[:-1] or appended[-1] < self.appended[-1]:
            return None
        last = upstreams[-1]
        write = partial(_write_rest, self.file, self.last, self.appended[-1])
        file = await services.proxy.documents.read(last.repository, VERSIONS, last.held, write)
        return None if file is None else evolve(self, file=file, appended=appended)


async def join_lists(
    services: Services, upstreams: Sequence[UpstreamList], writer: ListWriter, taken: set[str], *, merges: bool
) -> JoinedLists:
    """
    Write the lists of upstreams without the gems that are ``taken``.

    A gem of several upstreams is taken of the first one, unless the repository ``merges`` them.
    """
    selection = None
    for number, each in enumerate(upstreams):
        seen = None if merges or number == len(upstreams) - 1 else set[str]()
        hidden = None if each.named is None else HiddenGems(each.named, each.held.document.route)
        selection = Selection(each.rules, frozenset(taken), seen, head=number == 0, hidden=hidden)
        write = partial(_write, writer, selection)
        await services.proxy.documents.read(each.repository, VERSIONS, each.held, write)
        taken |= seen or set()
    # The names of a whole upstream would take 60 MB.
    last = selection if merges or len(upstreams) == 1 else None
    return JoinedLists(writer.end(), tuple(each.appended for each in upstreams), last)


def _write(writer: ListWriter, selection: Selection, *parts: PartsFile) -> None:
    for each in parts:
        head = PIECES_HEAD in each.top
        for piece in read_pieces(each):
            if not head:
                writer.add(selection.lines(piece))
            elif selection.head:
                writer.add(piece)
            head = False


def _write_rest(before: ListFile, selection: Selection, start: int, *parts: PartsFile) -> ListFile | None:
    if len(parts) == 1:  # the list was damaged, and is fetched anew
        return None
    writer = ListWriter.continuing(before)
    writer.add(selection.lines(b"".join(read_pieces(parts[-1]))[start:]))
    return writer.end()


@frozen
class MergedState:
    """
    What a list was made of: upstreams' lists as they begin, what was appended to these, and hosted lists.

    ``named`` are the rules by which something was left out of it. ``judged`` are the serials of what they were found to
    hide, with the ids of the members.
    """

    begins: Hashable
    appended: tuple[int, ...]
    hosted: tuple[tuple[int, Hashable], ...]
    upstreams: Sequence[UpstreamList] = field(eq=False)
    named: Sequence[NamedRules] = field(eq=False, default=())
    judged: tuple[tuple[int, int], ...] = field(eq=False, default=())

    @property
    def cacheable(self) -> bool:
        """Whether the catalog tells when something changes."""
        return all(each.held.stored and not each.held.stale for each in self.upstreams)

    @property
    def ends_s(self) -> int:
        """When an upstream must be asked again, or a rule ends, in Unix seconds; 0 for never."""
        ends = [each.ends_ms for each in self.named if each.ends_ms is not None]
        return min((*ends, *(each.held.document.fresh_until_ms for each in self.upstreams)), default=0) // 1000

    def fresh(self, reader: Reader, config_serial: int) -> bool:
        """Whether the list is still made of the same."""
        if repositories.config_serial(reader) != config_serial:
            return False
        if any(judged_serial(reader, id_) != serial for id_, serial in self.judged):
            return False
        keys = (VERSIONS.key, VERSIONS.tail_key)
        return all(
            upstream_documents.latest_fetched_at(reader, each.repository.id, keys) == each.held.document.fetched_ms
            for each in self.upstreams
        ) and all(index_documents.find_list(reader, id_) == state for id_, state in self.hosted)


class MergedLists:
    """The lists of all repositories that are not hosted, one instance per process."""

    def __init__(self) -> None:
        self._kept: StampCache[tuple[int, str], ListFile] = StampCache(MOST_LISTS)
        self._of_views: StampCache[tuple[int, str, int], ListFile] = StampCache(MOST_OF_VIEWS)
        self._joined: Lru[int, tuple[Hashable, JoinedLists]] = Lru(MOST_LISTS)

    async def versions(
        self, services: Services, repository: Repository, *, revalidate: bool
    ) -> tuple[MergedState, ListFile]:
        """
        ``/versions`` of a repository, and what it was made of; for ``revalidate`` see L{Documents.get}.

        :raises NotFound: no member has one; :raises UpstreamFailed: an upstream failed, and what it said is not known
        """
        members = services.proxy.resolver.flat_members(repository)
        hosted = [each for each in members if each.type is RepositoryType.HOSTED]
        proxies = [each for each in members if each.type is RepositoryType.PROXY and each.active]
        judged = tuple([(each.id, await services.catalog.look(judged_serial, each.id)) for each in members])
        asked = [await self._ask(services, repository, each, revalidate=revalidate) for each in proxies]
        upstreams = [each for each in asked if each is not None]
        if not upstreams and not hosted:
            raise NotFound("list of versions of", repository.path)
        found = [(each.id, await self._named(services, repository, each)) for each in hosted]
        rules = {id_: named for id_, named in found if named is not None}
        begins = (
            services.registry.serial,
            tuple(each.begun for each in upstreams),
            tuple([await services.catalog.look(repositories.names_serial, each.id) for each in hosted]),
            tuple((id_, each.stamp) for id_, each in rules.items()),
        )
        appended = tuple(each.appended for each in upstreams)
        of_upstreams = [each.named for each in upstreams if each.named is not None]
        state = MergedState(begins, appended, (), upstreams, [*of_upstreams, *rules.values()], judged)
        join = partial(self._join, services, repository, begins, upstreams, hosted)
        begun = await self._cached(services, repository, "upstreams", state, join)
        if not hosted:
            return state, begun
        states = tuple([(each.id, await services.catalog.look(index_documents.find_list, each.id)) for each in hosted])
        active = [each for each in hosted if each.active]
        state = evolve(state, hosted=states)
        at_ms = None if repository.view is None else repository.view.at_ms
        whole = await self._cached(
            services,
            repository,
            "versions",
            state,
            lambda: services.catalog.scan(_add_hosted, begun, active, rules, at_ms),
        )
        return state, whole

    async def names(self, services: Services, repository: Repository, *, revalidate: bool) -> ListFile:
        """``/names`` of a repository: gems with live versions. It raises what ``versions`` raises."""
        stamp, listed = await self.versions(services, repository, revalidate=revalidate)
        return await self._cached(services, repository, "names", stamp, lambda: services.pools.cpu(write_names, listed))

    async def joined_specs(
        self, services: Services, repository: Repository, file: str, *, revalidate: bool
    ) -> ListFile:
        """
        A list of the legacy index over all members of a repository that have a list of versions, by its file name.

        What upstreams appended to long lists is in it after ``LONG_LIST_MS`` at the latest. It raises what ``versions``
        raises.
        """
        stamp, listed = await self.versions(services, repository, revalidate=revalidate)
        if listed.size > LONG_LIST:
            stamp = evolve(stamp, appended=(services.clock.now_ms() // LONG_LIST_MS,))
        return await self._cached(
            services, repository, file, stamp, lambda: services.pools.cpu(write_specs, listed, file)
        )

    async def specs(self, services: Services, proxy: Repository, file: str, *, revalidate: bool) -> ListFile:
        """
        A list of the legacy index of a proxy, by the name of its file, as its upstream has it.

        :raises NotFound: it has none; :raises UpstreamFailed: that is not known
        """
        question = specs_question(file)
        held = await services.proxy.documents.get(proxy, question, Trace(), revalidate=revalidate)
        make = partial(services.proxy.documents.read, proxy, question, held, _write_pieces)
        return await self._cached(services, proxy, file, held.document.fetched_ms, make)

    async def _cached(
        self,
        services: Services,
        repository: Repository,
        name: str,
        stamp: Hashable,
        make: Callable[[], Awaitable[ListFile]],
    ) -> ListFile:
        if repository.view is not None:
            key = (repository.id, name, repository.view.at_ms)
            return await self._of_views.get(key, stamp, lambda: services.view_turns.make(repository, make))
        return await self._kept.get((repository.id, name), stamp, make)

    async def _ask(
        self, services: Services, repository: Repository, proxy: Repository, *, revalidate: bool
    ) -> UpstreamList | None:
        """The list of an upstream, None if it has none."""
        try:
            held = await services.proxy.documents.get(proxy, VERSIONS, Trace(), revalidate=revalidate)
        except NotFound:
            return None
        rules = [
            rules for _, rules in services.proxy.resolver.flat_member(repository, proxy).rules if rules.reserved_names
        ]
        return UpstreamList(proxy, held, rules, await self._named(services, repository, proxy))

    async def _named(self, services: Services, repository: Repository, member: Repository) -> NamedRules | None:
        """The rules by which something of a member is left out; None if there are none."""
        return await services.proxy.judges.named(services.proxy.resolver.flat_member(repository, member))

    async def _join(
        self,
        services: Services,
        repository: Repository,
        begins: Hashable,
        upstreams: Sequence[UpstreamList],
        hosted: Sequence[Repository],
    ) -> ListFile:
        """The header, and the lines of the upstreams' gems; ``begins`` is the state of all but the ends of these."""
        kept = self._joined.get(repository.id)
        joined = None if kept is None or kept[0] != begins else await kept[1].extend(services, upstreams)
        if joined is None:
            taken: set[str] = await services.catalog.scan(packages.owned_keys, [each.id for each in hosted])
            merges = repository.type is RepositoryType.VIRTUAL and virtual_config_of(repository).merges
            writer = ListWriter.new()
            if not upstreams:
                writer.add(versions_head(hosted[0], None))
            joined = await join_lists(services, upstreams, writer, taken, merges=merges)
        self._joined.put(repository.id, (begins, joined))
        return joined.file


@frozen(eq=False)
class Caches(IndexCaches):
    """What one process keeps in memory of all Ruby repositories."""

    merged: MergedLists = Factory(MergedLists)


def _write_pieces(*parts: PartsFile) -> ListFile:
    writer = ListWriter.new()
    for each in parts:
        for piece in read_pieces(each):
            writer.add(piece)
    return writer.end()


def _add_hosted(
    reader: Reader,
    begun: ListFile,
    hosted: Sequence[Repository],
    rules: Mapping[int, NamedRules],
    at_ms: int | None = None,
) -> ListFile:
    writer, gil = ListWriter.copying(begun), GilReleaser()
    for each in hosted:
        hidden = hidden_of_hosted(reader, each, rules[each.id]) if each.id in rules else None
        for data in read_lines(reader, each) if at_ms is None else versions_lines_at(reader, each, at_ms):
            if hidden is None:
                writer.add(data)
                continue
            for line in data.splitlines(keepends=True):
                writer.add(hidden.line(line))
                gil.release_if_due()
    return writer.end()
