"""
What a repository serves under the name of a package, whatever its type.

=========  =========================================================================================================
type       content
=========  =========================================================================================================
Hosted     the packages of the catalog
Proxy      what the upstream's document lists, less what a rule hides
Virtual    what those of its members serve that own the name or may be asked for it (L{owners}), in their order: the
           first proxy that has it alone, or, with the ``resolution`` merge, all that have it. The rules of each virtual
           repository on the way apply, too.
=========  =========================================================================================================

A format may have several documents for one package, each with its own key: ``Proxied.package_of`` tells whose
it is. Each decision is recorded in a L{Trace} as it is made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from attrs import evolve

from pkgrepo.concurrency.pools import Pools
from pkgrepo.concurrency.single_flight import StampCache
from pkgrepo.concurrency.together import together
from pkgrepo.errors import NotFound, UpstreamFailed
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Package, Repository, RepositoryType
from pkgrepo.proxy.caching.documents import Documents
from pkgrepo.proxy.caching.states import STALE_RETRY_MS
from pkgrepo.proxy.format import MemberParts, Proxied
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.resolving.flat_members import FlatMember, FlatMembers
from pkgrepo.proxy.resolving.owners import Owners, find_owners
from pkgrepo.proxy.resolving.read_ahead import ReadAhead
from pkgrepo.proxy.resolving.rules import PolicyJudges, note_hidden, refusal_of_newest
from pkgrepo.proxy.resolving.serving import PackageState
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.format import Companion
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.repositories.policy.refusals import RuleRefused, Withheld, refusal, withheld
from pkgrepo.repositories.policy.rules import Verdict
from pkgrepo.repositories.policy.schema import Order
from pkgrepo.repositories.publish.splicing import Spliced
from pkgrepo.repositories.registry import Registry
from pkgrepo.storage.catalog.packages import packages
from pkgrepo.storage.catalog.packages.versions import list_versions
from pkgrepo.storage.catalog.rows import to_ms
from pkgrepo.storage.catalog.upstream_documents import LACKING

from .member_parts import Hidden, hosted_parts, upstream_parts, without_lacking
from .serving import HostedMember, Member, Members, UpstreamMember
from .upstream_members import Found, UpstreamMembers

FEW = 200  # fragments, which are joined at once: 100 us, as a thread costs
MOST_HELD = 50  # versions of a document, the newest, that are noted as waiting in quarantine
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
        orders: Mapping[str, Order],
        judges: PolicyJudges,
        ahead: ReadAhead,
        companions: Mapping[str, Companion] = MappingProxyType({}),
        on_held: Callable[[Repository, str, Verdict], None] = lambda *_: None,
    ) -> None:
        self._ahead = ahead
        self._on_held = on_held
        self._catalog = catalog
        self._registry = registry
        self._flat = FlatMembers(registry, orders, companions)
        self._judges = judges
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
            flat = self._flat.of(repository)[repository.id]
            judge = await self._hosted_judge(flat, package)
            if judge is None:
                return self._hosted_state(repository, key, serial, None)
            config_serial = self._registry.serial
            member = await self._judged(HostedMember(flat.repository, serial, judge), package)
            return self._merged_state(repository, key, Members([member], (), config_serial))
        members = await self.members(repository, key, trace or Trace(), revalidate=revalidate, ahead=True)
        return self._merged_state(repository, key, members)

    async def whole_state(self, hosted: Repository, key: str) -> PackageState | None:
        """
        A package of a hosted repository as it is in the catalog, also what rules hide; None if there is none.

        For documents that clients write back, and for nobody who may not change the package.
        """
        serial = await self._catalog.look(packages.package_serial, hosted.id, self._package_key(hosted, key))
        return None if serial is None else self._hosted_state(hosted, key, serial, None)

    async def parts(self, members: Members, key: str, form: str, trace: Trace | None = None) -> list[MemberParts]:
        """
        What the members that serve a package have of it, in order, for documents of one form.

        A member that has the package and nothing for this document is left out, such as one with releases of an
        artifact for the document of a snapshot.

        :raises NotFound: no member has anything for it; :raises UpstreamFailed: parts of it are lost
        """
        return [parts for _, parts, _ in await self._all_parts(members, key, form, trace)]

    async def members(
        self, repository: Repository, key: str, trace: Trace, *, revalidate: bool = False, ahead: bool = False
    ) -> Members:
        """
        The members that serve a package; a repository that is not virtual is its own only member.

        With ``ahead`` what rules ask of the newest files is read first, see L{ReadAhead}.

        :raises NotFound, UpstreamFailed, RepositoryInactive: see ``state``
        """
        package = self._package_key(repository, key)
        owners = await self.owners(repository, package, trace)
        owners.check()
        owning = owners.owning
        without = [each.repository for each in owners.hosted]
        if not owning:
            found = await self._upstreams.find(owners, key, revalidate=revalidate)
            serving = await self._with_rules(repository, found, ahead=ahead)
            return Members(serving, without, owners.config_serial, found.recheck_ms, found.partial)
        taken = {each.repository.id for each in owning}
        without = [each for each in without if each.id not in taken and each.active]
        active = [await self._owning(each, owners) for each in owning if each.repository.active]
        beside = Found((), None, partial=False)
        if owners.merges:
            beside = await self._find_beside(owners, key, revalidate=revalidate)
        upstreams = await self._with_rules(repository, beside, ahead=ahead)
        return Members([*active, *upstreams], without, owners.config_serial, beside.recheck_ms, beside.partial)

    async def owners(self, repository: Repository, name: str, trace: Trace, *, what: str = "package") -> Owners:
        """Who serves a name behind a repository; ``what`` it names in messages."""
        members = list(self._flat.of(repository).values())
        return await find_owners(
            self._catalog, members, repository, name, trace, config_serial=self._flat.serial, what=what
        )

    async def _owning(self, flat: FlatMember, owners: Owners) -> HostedMember:
        serial = owners.serials[flat.repository.id]
        assert serial is not None, "it has the package"
        judge = await self._hosted_judge(flat, owners.name)
        return await self._judged(HostedMember(flat.repository, serial, judge), owners.name)

    async def _hosted_judge(self, flat: FlatMember, package: str) -> Judge | None:
        """The judge of a package (a key) that is hosted, with what rules ask of its files; None without rules."""
        judge = None if flat.policy is None else await self._judges.of(flat, package)
        return None if judge is None else await self._ahead.read_stored(flat, judge)

    async def _find_beside(self, owners: Owners, key: str, *, revalidate: bool) -> Found:
        """The proxies that serve a package beside hosted members; those members alone while upstreams fail."""
        try:
            return await self._upstreams.find(owners, key, revalidate=revalidate)
        except NotFound:
            return Found((), self._clock.now_ms() + STALE_RETRY_MS, partial=False)
        except UpstreamFailed:
            return Found((), self._clock.now_ms() + STALE_RETRY_MS, partial=True)

    async def _with_rules(self, repository: Repository, found: Found, *, ahead: bool) -> list[UpstreamMember]:
        flat = self._flat.of(repository)
        return await together(self._with_judge(flat[each.repository.id], each, ahead=ahead) for each in found.serving)

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

    def reads_catalog(self, repository: Repository, package: str) -> bool:
        """Whether a package (a key) is served as it is in the catalog: it is hosted, and no rule is about it."""
        if repository.type is not RepositoryType.HOSTED:
            return False
        policy = self._flat.of(repository)[repository.id].policy
        return policy is None or policy.of(package) is None

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

    async def _judged(self, member: HostedMember, package: str) -> HostedMember:
        """The member with the time at which its rules decide otherwise."""
        if member.judge is None or not member.judge.rules.changes:
            return member
        times = await self._catalog.look(_hosted_times, member.repository.id, package)
        return evolve(member, opens_ms=member.judge.rules.next_change_ms(times, member.judge.now_ms))

    async def _with_judge(self, flat: FlatMember, member: UpstreamMember, *, ahead: bool) -> UpstreamMember:
        judge = await self._judges.of(flat, member.request.package_key, (member.request, member.held))
        if judge is None:
            return member
        if ahead:
            judge = await self._ahead.read(flat, member, judge)
        times = await self._published_times(member) if judge.rules.changes else ()
        times = [*times, *(each.published_ms for each in judge.facts.values())]
        return evolve(member, judge=judge, opens_ms=judge.rules.next_change_ms(times, judge.now_ms))

    async def _published_times(self, member: UpstreamMember) -> Sequence[int | None]:
        section = member.request.section
        place = (member.repository.id, member.request.key, section)

        def times(parts: PartsFile) -> list[int | None]:
            return [each.published_ms for each in parts.entries((), section)]

        return await self._times.get(place, member.serial, lambda: self.read(member, times))

    async def read(self, member: UpstreamMember, work: Callable[[PartsFile], T]) -> T:
        """The result of ``work``, which is called on a thread with the parts of a package; see L{Documents.read}."""
        return await self._documents.read(member.repository, member.request, member.held, work)

    async def read_kept(self, repository: Repository, key: str, work: Callable[[PartsFile], T]) -> T | None:
        """
        The result of ``work`` over the kept parts of a package of a proxy; None if none is kept. No upstream is asked.

        :raises NotFound: no document can be about it; :raises BlobMissing, PartsDamaged: they are lost
        """
        request = self._formats[repository.format].document_request(key)
        held = await self._documents.find(repository, request.key)
        if held is None or not held.document.found:
            return None
        return await self._documents.kept.read(repository, held, work)

    def _hosted_state(self, repository: Repository, key: str, serial: int, modified_s: int | None) -> PackageState:
        package = self._package_key(repository, key)
        return PackageState(
            repository=repository,
            key=key,
            package=package,
            stamp=(serial, repository.updated_at),  # that of its configuration, on which documents depend
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
        package, view = self._package_key(repository, key), repository.view
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
            settled=view is not None and view.settled and members.settled(view.at_ms),
        )

    async def _load(
        self, repository: Repository, key: str, members: Members, form: str
    ) -> tuple[Spliced, PackageState]:
        """The parts of a document. Hosted members may be newer by now; then the state is not fresh any more."""
        state = self._merged_state(repository, key, members)
        found = await self._all_parts(members, key, form)
        parts = [each for _, each, _ in found]
        why = [(member.repository, hidden) for member, _, hidden in found if hidden]
        state = evolve(state, refusal_of=partial(_refusal_of, repository, state.package, why))
        if found and all(hidden and not each.versions for _, each, hidden in found):
            member, _, hidden = found[0]
            refused = refusal_of_newest(repository, member.repository, state.package, hidden)
            state, parts = evolve(state, refused=refused), [evolve(each, refused=str(refused)) for each in parts]
        format_ = self._formats[repository.format]
        if why and (form in format_.lists_held or (format_.names_withheld and state.refused is None)):
            parts[0] = evolve(parts[0], withheld=_withheld(repository, state.package, found))
        splice = partial(format_.splice, key, form, state.serial, parts)
        joined = [each for part in parts for found in (part.fragments, part.held) for each in found.values()]
        few = sum(map(len, joined)) <= FEW
        return splice() if few else await self._pools.cpu(splice), state

    async def _all_parts(
        self, members: Members, key: str, form: str, trace: Trace | None = None
    ) -> list[tuple[Member, MemberParts, Mapping[str, Hidden]]]:
        """The same with the members, and the versions that rules hide of each; for the errors see L{parts}."""
        found: list[tuple[Member, MemberParts, Mapping[str, Hidden]]] = []
        missing: NotFound | None = None
        for each in members.serving:
            try:
                parts, hidden = await self._parts(each, key, form, trace)
                if parts.hidden and not parts.versions and _is_view(each):
                    raise NotFound("package", self._package_key(each.repository, key))
            except NotFound as error:
                missing = missing or error
            else:
                found.append((each, parts, hidden))
        if missing is not None and not found:
            raise missing
        return found

    async def _parts(
        self, member: Member, key: str, form: str, trace: Trace | None = None
    ) -> tuple[MemberParts, Mapping[str, Hidden]]:
        repository = member.repository
        format_ = self._formats[repository.format]
        if isinstance(member, HostedMember):
            hosted, hidden = await self._catalog.scan(lambda r: hosted_parts(r, format_, member, key, form))
            await self._note_hidden(member, key, hidden, trace)
            return hosted, hidden
        read_kinds, judge = format_.kinds(form), member.judge
        section, document = member.request.section, member.held.document
        amend = partial(without_lacking, format_, document.route, document.meta.get(LACKING, {}))
        parts, hidden = await self.read(
            member,
            lambda file: upstream_parts(
                file, section, read_kinds, judge, document.route, amend, lists_held=form in format_.lists_held
            ),
        )
        await self._note_hidden(member, key, hidden, trace)
        return parts, hidden

    async def _note_hidden(self, member: Member, key: str, hidden: Mapping[str, Hidden], trace: Trace | None) -> None:
        repository = member.repository
        note_hidden(trace, repository, hidden)
        if member.judge is not None and self._package_key(repository, key) == key:  # not a part of its versions
            await self._judges.note(member.judge, {text: each for text, (each, _) in hidden.items()}, whole=True)
        held = [verdict for verdict, _ in hidden.values() if verdict.waits]
        for each in held[-MOST_HELD:]:
            self._on_held(repository, self._package_key(repository, key), each)


def _refusal_of(
    repository: Repository,
    package: str,
    found: Sequence[tuple[Repository, Mapping[str, Hidden]]],
    wanted: Callable[[str], bool],
) -> RuleRefused | None:
    """Why a version of a package is not shown; None if no rule hides it in any member, or only a view of the past."""
    for member, hidden in found:
        for version, (verdict, _) in hidden.items():
            if wanted(version) and verdict.by is not None and verdict.by.later_ms is None:
                return refusal(f"{package} {version}", verdict, repository, member)
    return None


def _withheld(
    repository: Repository, package: str, found: Sequence[tuple[Member, MemberParts, Mapping[str, Hidden]]]
) -> Withheld | None:
    """The versions that rules hide in some member and no other one shows, the newest first."""
    shown = {text for _, parts, _ in found for _, text in parts.versions}
    shown.update(each.key for _, parts, _ in found for kind in parts.fragments.values() for each in kind)
    hidden = (
        (text, each[text][0], member.repository)
        for member, _, each in found
        for text in reversed([*each])
        if text not in shown
    )
    return withheld(repository, package, hidden)


def _is_view(member: Member) -> bool:
    return member.judge is not None and member.judge.rules.at_ms is not None


def _hosted_times(reader: Reader, repository_id: int, package: str) -> list[int | None]:
    found = packages.find_package(reader, repository_id, package)
    return [] if found is None else [to_ms(each.published_at) for each in list_versions(reader, found.id)]
