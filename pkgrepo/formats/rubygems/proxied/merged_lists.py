"""
The lists of proxies and virtual repositories: ``/versions`` of all members, and ``/names`` and the legacy lists.

``/versions`` has the list of each upstream as it came, without the lines of gems that other members serve, and then the
lines of hosted members. The first part is kept while the upstreams' lists and the names of hosted gems stay the same.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Final

from attrs import frozen

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import NotFound
from pkgrepo.formats.rubygems.index.info import info_md5
from pkgrepo.formats.rubygems.index.list_files import ListFile, ListWriter
from pkgrepo.formats.rubygems.index.versions_list import list_head, read_lines
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.configuration import Rules, virtual_config_of
from pkgrepo.proxy.documents.held import DocumentRequest, Held
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.trace import Trace
from pkgrepo.storage.catalog.packages import appended_lists, packages
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.gil import GilReleaser

from .normaliser import PIECE
from .questions import specs_question, versions_question

READ: Final = 1024 * 1024  # bytes of a list read at a time
MOST_LISTS: Final = 32  # in temporary files; the list of versions of the public registry has 23 MB

_EMPTY_MD5: Final = info_md5([]).encode("ascii")  # in the last line of a gem without versions


@frozen(eq=False)
class _Upstream:
    """A proxy with the list of its upstream; ``rules`` are those about the names that it may serve."""

    repository: Repository
    held: Held
    rules: Sequence[Rules]


class MergedLists:
    """The lists of all repositories that are not hosted, one instance per process."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, str], tuple[Hashable, ListFile]] = OrderedDict()
        self._flight: SingleFlight[tuple[int, str, Hashable], ListFile] = SingleFlight()

    async def versions(self, services: Services, repository: Repository, *, revalidate: bool) -> ListFile:
        """
        ``/versions`` of a repository; for ``revalidate`` see L{Documents.get}.

        :raises NotFound: no member has one; :raises UpstreamFailed: an upstream failed, and what it said is not known
        """
        return (await self._versions(services, repository, revalidate=revalidate))[1]

    async def names(self, services: Services, repository: Repository, *, revalidate: bool) -> ListFile:
        """``/names`` of a repository: gems with live versions. It raises what ``versions`` raises."""
        stamp, listed = await self._versions(services, repository, revalidate=revalidate)
        return await self._cached(repository, "names", stamp, lambda: services.pools.cpu(_write_names, listed))

    async def specs(self, services: Services, proxy: Repository, file: str, *, revalidate: bool) -> ListFile:
        """
        A list of the legacy index of a proxy, by the name of its file, as its upstream has it.

        :raises NotFound: it has none; :raises UpstreamFailed: that is not known
        """
        question = specs_question(file)
        held = await services.documents.get(proxy, question, Trace(), revalidate=revalidate)
        make = partial(services.documents.read, proxy, question, held, _write_pieces)
        return await self._cached(proxy, file, held.document.fetched_ms, make)

    async def _versions(
        self, services: Services, repository: Repository, *, revalidate: bool
    ) -> tuple[Hashable, ListFile]:
        leaves = services.resolver.leaves(repository)
        hosted = [each for each in leaves if each.type is RepositoryType.HOSTED]
        proxies = [each for each in leaves if each.type is RepositoryType.PROXY and each.active]
        asked = [await self._ask(services, repository, each, revalidate=revalidate) for each in proxies]
        upstreams = [each for each in asked if each is not None]
        if not upstreams and not hosted:
            raise NotFound("list of versions of", repository.path)
        stamp = (
            services.registry.serial,
            tuple((each.repository.id, each.held.document.fetched_ms) for each in upstreams),
            tuple([await services.catalog.look(repositories.names_serial, each.id) for each in hosted]),
        )
        begun = await self._cached(
            repository, "upstreams", stamp, lambda: self._begin(services, repository, upstreams, hosted)
        )
        if not hosted:
            return stamp, begun
        states = tuple([await services.catalog.look(appended_lists.find_list, each.id) for each in hosted])
        active = [each for each in hosted if each.active]
        whole = await self._cached(
            repository, "versions", (stamp, states), lambda: services.catalog.scan(_add_hosted, begun, active)
        )
        return (stamp, states), whole

    async def _cached(
        self, repository: Repository, name: str, stamp: Hashable, make: Callable[[], Awaitable[ListFile]]
    ) -> ListFile:
        place = (repository.id, name)
        kept = self._kept.get(place)
        if kept is None or kept[0] != stamp:
            made = await self._flight.run((*place, stamp), make)
            kept = self._kept[place] = (stamp, made)
            if len(self._kept) > MOST_LISTS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(place)
        return kept[1]

    async def _ask(
        self, services: Services, repository: Repository, proxy: Repository, *, revalidate: bool
    ) -> _Upstream | None:
        """The list of an upstream, None if it has none."""
        try:
            held = await services.documents.get(proxy, versions_question(), Trace(), revalidate=revalidate)
        except NotFound:
            return None
        rules = [rules for _, rules in services.resolver.leaf(repository, proxy).rules if rules.reserved_names]
        return _Upstream(proxy, held, rules)

    async def _begin(
        self, services: Services, repository: Repository, upstreams: Sequence[_Upstream], hosted: Sequence[Repository]
    ) -> ListFile:
        """The header, and the lines of the upstreams' gems."""
        taken: set[str] = await services.catalog.scan(_hosted_names, hosted)
        merges = repository.type is RepositoryType.VIRTUAL and virtual_config_of(repository).merges
        writer = ListWriter.new()
        if not upstreams:
            writer.add(list_head(hosted[0], None))
        for number, each in enumerate(upstreams):
            seen = None if merges or number == len(upstreams) - 1 else set[str]()
            selection = _Selection(each.rules, frozenset(taken), seen, head=number == 0)
            write = partial(_write_upstream, writer, selection)
            await services.documents.read(each.repository, _VERSIONS, each.held, write)
            taken |= seen or set()
        return writer.end()


_VERSIONS: Final[DocumentRequest] = versions_question()


@frozen(eq=False)
class _Selection:
    """
    What is taken of an upstream's list: not the lines of gems that are ``taken``, and none of reserved names.

    The names of the others are collected in ``seen`` unless that is None. ``head`` tells whether the header is wanted.
    """

    rules: Sequence[Rules]
    taken: frozenset[str]
    seen: set[str] | None
    head: bool

    @property
    def whole(self) -> bool:
        """Whether all lines are taken, and no names are collected."""
        return not self.rules and not self.taken and self.seen is None

    def lines(self, piece: bytes) -> bytes:
        """The lines of a piece that are taken."""
        found: list[bytes] = []
        gil = GilReleaser()
        for line in piece.splitlines(keepends=True):
            name = line.partition(b" ")[0].decode("utf-8", "replace")
            if name not in self.taken and not any(each.reserved_by(name) for each in self.rules):
                found.append(line)
                if self.seen is not None:
                    self.seen.add(name)
            gil.release_if_due()
        return b"".join(found)


def _hosted_names(reader: Reader, hosted: Sequence[Repository]) -> set[str]:
    return {key for each in hosted for key, _ in packages.package_names(reader, each.id)}


def _write_upstream(writer: ListWriter, selection: _Selection, parts: PartsFile) -> None:
    if selection.head:
        writer.add(parts.top["head"].encode())
    for _, _, piece in parts.fragments(PIECE):
        writer.add(piece if selection.whole else selection.lines(piece))


def _write_pieces(parts: PartsFile) -> ListFile:
    writer = ListWriter.new()
    for _, _, piece in parts.fragments(PIECE):
        writer.add(piece)
    return writer.end()


def _add_hosted(reader: Reader, begun: ListFile, hosted: Sequence[Repository]) -> ListFile:
    writer = ListWriter.copying(begun)
    for each in hosted:
        for data in read_lines(reader, each):
            writer.add(data)
    return writer.end()


def _lines(listed: ListFile) -> Iterator[bytes]:
    start, rest = 0, b""
    while start < listed.size:
        data = listed.read(start, READ)
        start += len(data)
        *lines, rest = (rest + data).split(b"\n")
        yield from lines


def _write_names(listed: ListFile) -> ListFile:
    live: dict[bytes, bool] = {}
    gil = GilReleaser()
    lines = _lines(listed)
    while next(lines, b"---") != b"---":
        pass
    for line in lines:
        live[line.partition(b" ")[0]] = line.rpartition(b" ")[2] != _EMPTY_MD5
        gil.release_if_due()
    writer = ListWriter.new()
    names = sorted(name for name, is_live in live.items() if is_live)
    writer.add(b"---\n" + b"\n".join(names) + b"\n")
    return writer.end()
