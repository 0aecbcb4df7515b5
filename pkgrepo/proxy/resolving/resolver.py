"""
What a repository serves under the name of a package, whatever its type.

=========  =========================================================================================================
type       content
=========  =========================================================================================================
Hosted     the packages of the catalog
Proxy      what the upstream's document lists, less what a rule hides
Virtual    what its members serve, in their order. A name that a hosted member has is served by hosted members only, and
           no upstream is asked for it, also when it was removed there. Otherwise the first member that has the name
           serves it alone, or, with the ``resolution`` merge, all that have it. The rules of each virtual repository on
           the way apply, too.
=========  =========================================================================================================

A format may have several documents for one package, each with its own key: ``Proxied.package_of`` tells whose
it is. Each decision is recorded in a L{Trace} as it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TypeVar

from attrs import evolve

from pkgrepo.concurrency.single_flight import StampCache
from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Fragment, Package, Repository, RepositoryType
from pkgrepo.proxy.configuration import rules_of
from pkgrepo.proxy.documents.freshness import Documents
from pkgrepo.proxy.format import MemberParts, Proxied
from pkgrepo.proxy.kept_states import STALE_RETRY_MS
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.resolving.flat_members import FlatMember, FlatMembers
from pkgrepo.proxy.resolving.rules import AgeRule, find_age_rule
from pkgrepo.proxy.resolving.serving import PackageState
from pkgrepo.proxy.trace import HiddenVersion, MemberInactive, NameRetired, StepKind, Trace, owner_step
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.packages.packages import RETIRED, ownership
from pkgrepo.storage.pools import Pools

from .serving import HostedMember, Member, Members, UpstreamMember
from .upstream_members import Found, UpstreamMembers

FEW = 200  # fragments, which are joined at once: 100 us, as a thread costs
MOST_TIMES = 512  # packages whose publication times are kept in memory

T = TypeVar("T")


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
        formats: Mapping[str, Proxied],
    ) -> None:
        self._catalog = catalog
        self._registry = registry
        self._flat = FlatMembers(registry)
        self._documents = documents
        self._upstreams = UpstreamMembers(documents=documents, flat=self._flat, clock=clock, formats=formats)
        self._pools = pools
        self._clock = clock
        self._formats = formats
        self._times: StampCache[tuple[int, str, bytes], list[int | None]] = StampCache(MOST_TIMES)

    async def state(
        self, repository: Repository, key: str, trace: Trace | None = None, *, revalidate: bool = False
    ) -> PackageState:
        """
        A package as a repository shows it now in the document with this key.

        With ``revalidate`` upstreams are asked again, see L{Documents.get}.

        :raises NotFound: there is no such package; :raises UpstreamFailed: that is not known, since an upstream failed
        :raises RepositoryInactive: the only members that have it are switched off
        """
        if repository.type is RepositoryType.HOSTED:
            package = self._package_key(repository, key)
            serial: int | None = await self._catalog.look(packages.package_serial, repository.id, package)
            if serial is None:
                raise NotFound("package", package)
            return self._hosted_state(repository, key, serial, None)
        members = await self.members(repository, key, trace or Trace(), revalidate=revalidate)
        return self._merged_state(repository, key, members)

    async def parts(self, members: Members, key: str, form: str, trace: Trace | None = None) -> list[MemberParts]:
        """
        What the members that serve a package have of it, in order, for documents of one form.

        A member that has the package and nothing for this document is left out, such as one with releases of an
        artifact for the document of a snapshot.

        :raises NotFound: no member has anything for it; :raises UpstreamFailed: parts of it are lost
        """
        found: list[MemberParts] = []
        missing: NotFound | None = None
        for each in members.serving:
            try:
                found.append(await self._parts(each, key, form, trace))
            except NotFound as error:
                missing = missing or error
        if missing is not None and not found:
            raise missing
        return found

    async def members(self, repository: Repository, key: str, trace: Trace, *, revalidate: bool = False) -> Members:
        """
        The members that serve a package; a repository that is not virtual is its own only member.

        :raises NotFound, UpstreamFailed, RepositoryInactive: see ``state``
        """
        package = self._package_key(repository, key)
        config_serial = self._registry.serial  # before the configuration is read
        hosted = [each for each in self.flat_members(repository) if each.type is RepositoryType.HOSTED]
        owners: list[HostedMember] = []
        retired, merges = False, self.merges(repository, package)
        for each in hosted:
            serial: int | None = await self._catalog.look(ownership, each.id, package)
            trace.add(owner_step(serial, active=each.active, merges=merges), repository=each.path)
            if serial == RETIRED:
                retired = True
            elif serial is not None:
                owners.append(HostedMember(each, serial))
        if owners:
            active = [each for each in owners if each.repository.active]
            if not active:
                raise MemberInactive(repository.path, package)
            taken = {each.repository.id for each in owners}
            without = [each for each in hosted if each.id not in taken and each.active]
            beside = Found((), None, partial=False)
            if merges:
                beside = await self._find_beside(repository, key, trace, revalidate=revalidate)
            upstreams = await self._with_ages(repository, beside)
            return Members([*active, *upstreams], without, config_serial, beside.recheck_ms, beside.partial)
        if retired and not merges:
            raise NameRetired("package", package)
        found = await self._upstreams.find(repository, key, trace, revalidate=revalidate)
        serving = await self._with_ages(repository, found)
        return Members(serving, hosted, config_serial, found.recheck_ms, found.partial)

    def merges(self, repository: Repository, package: str) -> bool:
        """Whether a repository joins the versions of a package that a hosted member has with those of upstreams."""
        return repository.type is RepositoryType.VIRTUAL and rules_of(repository).merges(package)

    async def _find_beside(self, repository: Repository, key: str, trace: Trace, *, revalidate: bool) -> Found:
        """The proxies that serve a package beside hosted members; those members alone while upstreams fail."""
        try:
            return await self._upstreams.find(repository, key, trace, revalidate=revalidate)
        except NotFound:
            return Found((), self._clock.now_ms() + STALE_RETRY_MS, partial=False)
        except UpstreamFailed:
            return Found((), self._clock.now_ms() + STALE_RETRY_MS, partial=True)

    async def _with_ages(self, repository: Repository, found: Found) -> list[UpstreamMember]:
        flat = self._flat.of(repository)
        return [await self._with_age(flat[each.repository.id], each) for each in found.serving]

    @property
    def config_serial(self) -> int:
        """The serial of the server's configuration as this process knows it."""
        return self._registry.serial

    def flat_members(self, repository: Repository) -> list[Repository]:
        """
        The hosted and proxy repositories behind a repository, in order, each once.

        One is not active, either, if the virtual repositories between are not.
        """
        return [each.repository for each in self._flat.of(repository).values()]

    def ways(self, repository: Repository) -> Collection[FlatMember]:
        """The same with the virtual repositories around them."""
        return self._flat.of(repository).values()

    def flat_member(self, repository: Repository, proxy: Repository) -> FlatMember:
        """A repository as it is reached from another one, with all rules on the way."""
        return self._flat.of(repository)[proxy.id]

    # Below

    def _package_key(self, repository: Repository, key: str) -> str:
        package: str = self._formats[repository.format].package_of(key)
        return package

    async def _with_age(self, flat: FlatMember, member: UpstreamMember) -> UpstreamMember:
        age = find_age_rule(flat, member.request.package_key)
        if age is None:
            return member
        now_ms = self._clock.now_ms()
        times = await self._published_times(member)
        return evolve(member, age=age, opens_ms=age.next_opening_ms(times, now_ms))

    async def _published_times(self, member: UpstreamMember) -> Sequence[int | None]:
        section = member.request.section
        place = (member.repository.id, member.request.key, section)
        return await self._times.get(
            place, member.serial, lambda: self.read(member, lambda parts: _published_times(parts, section))
        )

    async def read(self, member: UpstreamMember, work: Callable[[PartsFile], T]) -> T:
        """The result of ``work``, which is called on a thread with the parts of a package; see L{Documents.read}."""
        return await self._documents.read(member.repository, member.request, member.held, work)

    def _hosted_state(self, repository: Repository, key: str, serial: int, modified_s: int | None) -> PackageState:
        package = self._package_key(repository, key)
        return PackageState(
            repository=repository,
            key=key,
            package=package,
            stamp=serial,
            serial=serial,
            modified_s=modified_s,
            expires_s=0,
            fresh=lambda r: packages.package_serial(r, repository.id, package) == serial,
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
        package = self._package_key(repository, key)
        return PackageState(
            repository=repository,
            key=key,
            package=package,
            stamp=tuple(each.stamp for each in members.serving),
            serial=sum(each.serial for each in members.serving),
            modified_s=None,
            expires_s=members.expires_s,
            fresh=partial(members.fresh, key=package),
            load=partial(self._load, repository, key, members),
            cacheable=not members.partial
            and all(isinstance(each, HostedMember) or each.held.stored for each in members.serving),
            stale=members.stale,
        )

    async def _load(
        self, repository: Repository, key: str, members: Members, form: str
    ) -> tuple[Spliced, PackageState]:
        """The parts of a document. Hosted members may be newer by now; then the state is not fresh any more."""
        state = self._merged_state(repository, key, members)
        parts = await self.parts(members, key, form)
        splice = partial(self._formats[repository.format].splice, key, form, state.serial, parts)
        few = sum(len(each) for part in parts for each in part.fragments.values()) <= FEW
        return splice() if few else await self._pools.cpu(splice), state

    async def _parts(self, member: Member, key: str, form: str, trace: Trace | None = None) -> MemberParts:
        repository = member.repository
        format_ = self._formats[repository.format]
        if isinstance(member, HostedMember):
            hosted: tuple[MemberParts, Package] = await self._catalog.scan(format_.read_parts, repository.id, key, form)
            return hosted[0]
        kinds, age, now_ms = format_.kinds(form), member.age, self._clock.now_ms()
        section = member.request.section
        parts, hidden = await self.read(member, lambda file: _upstream_parts(file, section, kinds, age, now_ms))
        if trace is not None and age is not None and hidden:
            trace.add(StepKind.HIDDEN, repository=repository.path, rule=age.repository, days=age.days, hidden=hidden)
        return parts


def _published_times(parts: PartsFile, section: bytes) -> list[int | None]:
    return [entry.published_ms for entry in parts.entries((), section)]


def _upstream_parts(
    parts: PartsFile, section: bytes, kinds: Sequence[str], age: AgeRule | None, now_ms: int
) -> tuple[MemberParts, Sequence[HiddenVersion]]:
    """What an upstream's response has for some kinds of fragments, without versions that are too young, and these."""
    fragments: dict[str, list[Fragment]] = {kind: [] for kind in kinds}
    versions: dict[str, bytes] = {}
    hidden: dict[str, HiddenVersion] = {}
    for entry in parts.entries(kinds, section):
        if age is not None and age.hides(entry.published_ms, now_ms):
            opens_ms = age.opening_ms(entry.published_ms)
            hidden.setdefault(entry.version, HiddenVersion(entry.version, entry.published_ms, opens_ms))
            continue
        versions.setdefault(entry.version, entry.sort)
        for kind in kinds:
            body = entry.fragments.get(kind)
            if body is not None:
                fragments[kind].append(Fragment(entry.sort, entry.key, body))
    shown = [(sort, text) for text, sort in versions.items()]
    young = [each for text, each in hidden.items() if text not in versions]
    return MemberParts(parts.top, fragments, shown, frozenset(each.version for each in young)), young
