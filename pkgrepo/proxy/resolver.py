"""
What a repository serves under the name of a package, whatever its type.

=========  =========================================================================================================
type       content
=========  =========================================================================================================
Hosted     the packages of the catalog
Proxy      what the upstream's document lists, less what a rule hides
Virtual    what its members serve, in their order. A name that a hosted member has is served by hosted members only,
           and no upstream is asked for it. Otherwise the first proxy that has the name serves it alone, or, with the
           ``resolution`` merge, all that have it.
=========  =========================================================================================================

Each decision is recorded in a L{Trace} as it is made.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial

from attrs import frozen

from pkgrepo.errors import BlobMissing, NotFound, RepositoryInactive, UpstreamFailed
from pkgrepo.interfaces import ICatalog, IProxiedFormat, Reader
from pkgrepo.model import Fragment, Package, Repository, RepositoryType
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.packages import packages, upstream_documents
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.pools import Pools

from .configuration import rules_of, virtual_config_of
from .documents import Documents
from .held import Held
from .members import MemberParts
from .package_state import PackageState
from .parts.file import PartsFile
from .parts.layout import PartsDamaged
from .release_age import AgeRule, find_age_rule
from .trace import Trace

MOST_TIMES = 512  # packages whose publication times are kept in memory


@frozen(eq=False)
class HostedMember:
    """A package of a hosted repository at one serial."""

    repository: Repository
    serial: int

    @property
    def stamp(self) -> tuple[int, int]:
        """Differs whenever the package has changed."""
        return self.repository.id, self.serial


@frozen(eq=False)
class UpstreamMember:
    """
    A package of a proxy as its upstream last described it.

    At ``opens_ms`` (None: never) a version that is too young now will be shown. ``age`` is the rule that hides it.
    """

    repository: Repository
    held: Held
    age: AgeRule | None = None
    opens_ms: int | None = None

    @property
    def serial(self) -> int:
        """A number that grows with the content."""
        return self.held.document.fetched_ms

    @property
    def stamp(self) -> tuple[int, int, int | None]:
        """Differs whenever what is shown has changed."""
        return self.repository.id, self.serial, self.opens_ms

    @property
    def expires_ms(self) -> int:
        """When it must be asked for again."""
        fresh_until_ms = self.held.document.fresh_until_ms
        return fresh_until_ms if self.opens_ms is None else min(fresh_until_ms, self.opens_ms)


Member = HostedMember | UpstreamMember


@frozen(eq=False)
class Members:
    """
    The members that serve a package, in order.

    ``without`` are the hosted repositories that were asked first and do not have it. ``config_serial`` is that of the
    server's configuration.
    """

    serving: Sequence[Member]
    without: Sequence[Repository]
    config_serial: int

    @property
    def expires_s(self) -> int:
        """When upstreams must be asked again, in Unix seconds; 0 for never."""
        expiries = [each.expires_ms for each in self.serving if isinstance(each, UpstreamMember)]
        return min(expiries) // 1000 if expiries else 0

    def fresh(self, reader: Reader, key: str) -> bool:
        """Whether the same members serve the package with the same content."""
        if repositories.config_serial(reader) != self.config_serial:
            return False
        if any(packages.package_serial(reader, each.id, key) is not None for each in self.without):
            return False
        return all(_is_current(reader, member, key) for member in self.serving)


class Resolver:
    """Decides for all repositories; ``formats`` are those with indexed packages, by name."""

    def __init__(
        self,
        *,
        catalog: ICatalog,
        registry: Registry,
        documents: Documents,
        pools: Pools,
        clock: Clock,
        formats: Mapping[str, IProxiedFormat],
    ) -> None:
        self._catalog = catalog
        self._registry = registry
        self._documents = documents
        self._pools = pools
        self._clock = clock
        self._formats = formats
        self._times: OrderedDict[tuple[int, str], tuple[int, list[int | None]]] = OrderedDict()

    async def state(
        self, repository: Repository, key: str, trace: Trace | None = None, *, revalidate: bool = False
    ) -> PackageState:
        """
        A package as a repository shows it now. With ``revalidate`` upstreams are asked again, see L{Documents.get}.

        :raises NotFound: there is no such package; :raises UpstreamFailed: that is not known, since an upstream failed
        :raises RepositoryInactive: the only members that have it are switched off
        """
        if repository.type is RepositoryType.HOSTED:
            serial: int | None = await self._catalog.look(packages.package_serial, repository.id, key)
            if serial is None:
                raise NotFound("package", key)
            return self._hosted_state(repository, key, serial, None)
        members = await self.members(repository, key, trace or Trace(), revalidate=revalidate)
        return self._merged_state(repository, key, members)

    async def parts(self, repository: Repository, key: str, form: str, trace: Trace | None = None) -> list[MemberParts]:
        """
        What the members that serve a package have of it, in order, for documents of one form.

        :raises NotFound, UpstreamFailed, RepositoryInactive: see ``state``
        """
        members = await self.members(repository, key, trace or Trace())
        return [await self._parts(each, key, form) for each in members.serving]

    async def members(self, repository: Repository, key: str, trace: Trace, *, revalidate: bool = False) -> Members:
        """
        The members that serve a package; a repository that is not virtual is its own only member.

        :raises NotFound, UpstreamFailed, RepositoryInactive: see ``state``
        """
        leaves = self.leaves(repository)
        config_serial = self._registry.serial
        hosted = [each for each in leaves if each.type is RepositoryType.HOSTED]
        owners: list[HostedMember] = []
        for each in hosted:
            serial: int | None = await self._catalog.look(packages.package_serial, each.id, key)
            if serial is not None:
                owners.append(HostedMember(each, serial))
                trace.add("has it" if each.active else "has it, but is switched off", repository=each.path)
            else:
                trace.add("does not have it", repository=each.path)
        if owners:
            active = [each for each in owners if each.repository.active]
            if not active:
                raise RepositoryInactive(owners[0].repository.path)
            taken = {each.repository.id for each in active}
            return Members(active, [each for each in hosted if each.id not in taken and each.active], config_serial)
        serving = await self._upstream_members(repository, leaves, key, trace, revalidate=revalidate)
        return Members(serving, hosted, config_serial)

    def leaves(self, repository: Repository) -> list[Repository]:
        """The hosted and proxy repositories behind a repository, in order, each once."""
        if repository.type is not RepositoryType.VIRTUAL:
            return [repository]
        found: dict[int, Repository] = {}
        seen: set[int] = set()

        def visit(each: Repository) -> None:
            if each.type is not RepositoryType.VIRTUAL:
                found.setdefault(each.id, each)
            elif each.id not in seen:
                seen.add(each.id)
                for uid in virtual_config_of(each).members:
                    member = self._registry.find_uid(uid)
                    if member is not None:
                        visit(member)

        visit(repository)
        return list(found.values())

    # Below

    async def _upstream_members(
        self, repository: Repository, leaves: Sequence[Repository], key: str, trace: Trace, *, revalidate: bool
    ) -> list[UpstreamMember]:
        format_ = self._formats[repository.format]
        merges = repository.type is RepositoryType.VIRTUAL and virtual_config_of(repository).merges
        failure: UpstreamFailed | None = None
        found: list[UpstreamMember] = []
        for each in leaves:
            if each.type is not RepositoryType.PROXY:
                continue
            pattern = rules_of(repository).reserved_by(key) or rules_of(each).reserved_by(key)
            if pattern:
                trace.add("not asked: the name is reserved", repository=each.path, pattern=pattern)
                continue
            if not each.active:
                trace.add("not asked: it is switched off", repository=each.path)
                continue
            try:
                held = await self._documents.get(each, format_.document_request(key), trace, revalidate=revalidate)
            except NotFound:
                continue
            except UpstreamFailed as error:
                failure = failure or error
                continue
            found.append(await self._upstream_member(repository, each, key, held))
            trace.add("has it", repository=each.path, route=held.document.route)
            if not merges:
                break
        if not found:
            raise failure or NotFound("package", key)
        return found

    async def _upstream_member(self, repository: Repository, proxy: Repository, key: str, held: Held) -> UpstreamMember:
        age = self.age_rule(repository, proxy, key)
        if age is None:
            return UpstreamMember(proxy, held)
        now_ms = self._clock.now_ms()
        times = await self._published_times(proxy, key, held)
        return UpstreamMember(proxy, held, age, age.next_opening_ms(times, now_ms))

    async def _published_times(self, proxy: Repository, key: str, held: Held) -> Sequence[int | None]:
        place = (proxy.id, key)
        kept = self._times.get(place)
        if kept is None or kept[0] != held.document.fetched_ms:
            with await self.open(proxy, key, held) as parts:
                times = await self._pools.cpu(lambda: [entry.published_ms for entry in parts.entries(())])
            kept = (held.document.fetched_ms, times)
            self._times[place] = kept
            if len(self._times) > MOST_TIMES:
                self._times.popitem(last=False)
        return kept[1]

    async def open(self, proxy: Repository, key: str, held: Held) -> PartsFile:
        """The parts of an answer, fetched again if they are damaged."""
        try:
            return await self._documents.open(proxy, held)
        except (BlobMissing, PartsDamaged):
            request = self._formats[proxy.format].document_request(key)
            return await self._documents.open(proxy, await self._documents.refetch(proxy, request))

    def age_rule(self, repository: Repository, proxy: Repository, key: str) -> AgeRule | None:
        """The strictest rule about the age of releases that applies to a package of a proxy."""
        return find_age_rule({repository.id: repository, proxy.id: proxy}.values(), key)

    def _hosted_state(self, repository: Repository, key: str, serial: int, modified_s: int | None) -> PackageState:
        return PackageState(
            repository=repository,
            key=key,
            stamp=serial,
            serial=serial,
            modified_s=modified_s,
            expires_s=0,
            fresh=lambda r: packages.package_serial(r, repository.id, key) == serial,
            load=partial(self._load_hosted, repository, key),
        )

    async def _load_hosted(self, repository: Repository, key: str, form: str) -> tuple[Spliced, PackageState]:
        format_ = self._formats[repository.format]

        def read(reader: Reader) -> tuple[Spliced, Package]:
            parts, package = format_.read_parts(reader, repository.id, key, form)
            return format_.splice(key, form, package.serial, [parts]), package

        spliced, package = await self._catalog.scan(read)
        return spliced, self._hosted_state(repository, key, package.serial, package.modified_s)

    def _merged_state(self, repository: Repository, key: str, members: Members) -> PackageState:
        return PackageState(
            repository=repository,
            key=key,
            stamp=tuple(each.stamp for each in members.serving),
            serial=sum(each.serial for each in members.serving),
            modified_s=None,
            expires_s=members.expires_s,
            fresh=partial(members.fresh, key=key),
            load=partial(self._load, repository, key, members),
            cacheable=all(isinstance(each, HostedMember) or each.held.stored for each in members.serving),
        )

    async def _load(
        self, repository: Repository, key: str, members: Members, form: str
    ) -> tuple[Spliced, PackageState]:
        """The parts of a document. Hosted members may be newer by now; then the state is not fresh any more."""
        state = self._merged_state(repository, key, members)
        parts = [await self._parts(member, key, form) for member in members.serving]
        spliced = await self._pools.cpu(self._formats[repository.format].splice, key, form, state.serial, parts)
        return spliced, state

    async def _parts(self, member: Member, key: str, form: str) -> MemberParts:
        repository = member.repository
        format_ = self._formats[repository.format]
        if isinstance(member, HostedMember):
            hosted: tuple[MemberParts, Package] = await self._catalog.scan(format_.read_parts, repository.id, key, form)
            return hosted[0]
        with await self.open(repository, key, member.held) as parts:
            return await self._pools.cpu(_upstream_parts, parts, format_.kinds(form), member.age, self._clock.now_ms())


def _upstream_parts(parts: PartsFile, kinds: Sequence[str], age: AgeRule | None, now_ms: int) -> MemberParts:
    """What an upstream's answer has for some kinds of fragments, without the versions that are too young."""
    fragments: dict[str, list[Fragment]] = {kind: [] for kind in kinds}
    versions: dict[str, bytes] = {}
    hidden: set[str] = set()
    for entry in parts.entries(kinds):
        if age is not None and age.hides(entry.published_ms, now_ms):
            hidden.add(entry.version)
            continue
        versions.setdefault(entry.version, entry.sort)
        for kind in kinds:
            body = entry.fragments.get(kind)
            if body is not None:
                fragments[kind].append(Fragment(entry.sort, entry.key, body))
    shown = [(sort, text) for text, sort in versions.items()]
    return MemberParts(parts.top, fragments, shown, frozenset(hidden - set(versions)))


def _is_current(reader: Reader, member: Member, key: str) -> bool:
    if isinstance(member, HostedMember):
        return packages.package_serial(reader, member.repository.id, key) == member.serial
    fetched = upstream_documents.fetched_at(reader, member.repository.id, member.held.document.key)
    return fetched == member.held.document.fetched_ms
