"""
The rules that decide what of a package is served: names that are reserved, and the rules of policies.

=====================  ============================================================================================
place                  what the rules see
=====================  ============================================================================================
documents of packages  each version that a member has, or each file where a document lists files; see ``hides``
files by their path    the file that is kept or fetched, with the version that it belongs to; see ``FileRules``
images                 manifests with their tags, and blobs by the manifests that refer to them; see the format
=====================  ============================================================================================

The decision itself is that of L{Judge}. A rule set holds for a repository as it is reached from another one
(L{FlatMember}): with the rules of every virtual repository on the way. Sets are made once for each
state of the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final

import msgspec
from attrs import define, evolve, frozen

from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import File, Repository, RepositoryType
from pkgrepo.proxy.addressed.request import FileRequest
from pkgrepo.proxy.format import Proxied
from pkgrepo.proxy.remote_files import RemoteFile
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.resolving.histories import Histories, Listed
from pkgrepo.proxy.resolving.lines import Lines
from pkgrepo.proxy.resolving.own_facts import OwnFactsOfFiles
from pkgrepo.proxy.resolving.owners import check_reserved
from pkgrepo.proxy.resolving.told import asked_of_files, by_algorithm, of_former, without_former
from pkgrepo.proxy.trace import HiddenVersion, StepKind, Trace
from pkgrepo.repositories.advisories.known import KnownAdvisories
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.archive_addresses import NO_ARCHIVES, ArchiveAddresses
from pkgrepo.repositories.policy.conditions import CACHED, HOSTED, INSIDE, OF_BYTES, TRUST
from pkgrepo.repositories.policy.effective import CompanionRules, origin_of
from pkgrepo.repositories.policy.facts import advisories_on, known_contents
from pkgrepo.repositories.policy.judge import Judge, with_stored
from pkgrepo.repositories.policy.origins import Origins
from pkgrepo.repositories.policy.refusals import RuleRefused, refusal
from pkgrepo.repositories.policy.rules import NamedRules, PackageRules, Verdict
from pkgrepo.repositories.policy.schema import Datum
from pkgrepo.repositories.policy.trust import History
from pkgrepo.storage.catalog.file_facts import facts_of_package
from pkgrepo.storage.catalog.packages.summaries import package_and_version_of_file
from pkgrepo.storage.catalog.server.judged import Opens, find_judged, judged_serial, list_judged, put_judged

NOTHING_UNREAD: Final[frozenset[Datum]] = frozenset()
NOTHING: Final = (False, False)  # no advisories are known, or they are not asked for


@frozen(eq=False)
class MemberJudges:
    """The judges of the packages of a member at one moment; for ``loaded`` and ``complete`` see L{Origins}."""

    format: StoredFormat
    flat: FlatMember
    now_ms: int
    proxied: Proxied | None
    origins: Origins | None
    loaded: bool
    complete: bool
    archives: ArchiveAddresses = NO_ARCHIVES

    def __call__(self, reader: Reader | None, package: str) -> Judge | None:
        """The judge of a package (a key), None if no rule is about it; without a reader it knows nothing more."""
        rules = None if self.flat.policy is None else self.flat.policy.of(package)
        if rules is None:
            return None
        declares = self.proxied.declares if self.proxied is not None and rules.reads_metadata else None
        judge = Judge(
            self.format,
            rules,
            self.flat.repository,
            self.now_ms,
            declares=declares,
            origins=self.origins,
            archives=self.archives,
        )
        if reader is not None and self._asks_files(rules):
            serial, facts = facts_of_package(reader, self.format.name, package)
            if self.proxied is None:  # what is published here is described by its metadata
                facts = known_contents(reader, self.format, package, rules.needs)
            judge = evolve(judge, own=self.own_data(rules), facts=facts, facts_serial=serial)
        if reader is not None and self.flat.repository.type is RepositoryType.HOSTED:
            judge = with_stored(judge, reader)
        if reader is None or not self._asks_advisories(rules):
            return judge
        return evolve(judge, known=advisories_on(reader, self.format, package), complete=self.complete)

    def asks_more(self, rules: PackageRules) -> bool:
        """Whether rules ask for what the catalog knows: advisories on a package, or facts of files of upstreams."""
        return self._asks_advisories(rules) or self._asks_files(rules)

    def _asks_advisories(self, rules: PackageRules) -> bool:
        return self.loaded and "advisories" in rules.needs

    def own_data(self, rules: PackageRules) -> frozenset[Datum]:
        """The data that only files tell; what is inside, and attestations, are if rules ask for them."""
        inside = rules.needs & INSIDE if self.format.inside is not None else NOTHING_UNREAD
        if self.format.attests is not None:
            inside |= rules.needs & TRUST
        return inside if self.proxied is None else self.proxied.own_facts.data | inside

    def _asks_files(self, rules: PackageRules) -> bool:
        described = rules.reads_metadata or "digests" in rules.needs
        of_bytes = bool(asked_of_files(rules, self.own_data(rules))) or rules.reads_digests
        return of_bytes or (described and self.proxied is not None)


class PolicyJudges:
    """
    Makes judges; ``formats``, and what is ``proxied`` of them, are by name. ``known``: None knows none. ``histories``
    are those of who published the versions of packages. ``archives`` is where those of their sources are.

    It also notes what they find to be hidden by facts, for lists over all packages.
    """

    def __init__(
        self,
        catalog: ICatalog,
        clock: Clock,
        formats: Mapping[str, StoredFormat],
        known: KnownAdvisories | None = None,
        proxied: Mapping[str, Proxied] = MappingProxyType({}),
        histories: Histories | None = None,
        lines: Lines | None = None,
        archives: ArchiveAddresses = NO_ARCHIVES,
    ) -> None:
        self.archives = archives
        self._histories = histories
        self._catalog = catalog
        self._clock = clock
        self._formats = formats
        self._known = known
        self._proxied = proxied
        self._lines = lines

    async def named(self, flat: FlatMember) -> NamedRules | None:
        """What lists over all packages leave out of a member; None for nothing."""
        policy, id_, now_ms = flat.policy, flat.repository.id, self._clock.now_ms()
        if policy is None:
            return None
        assert flat.repository.type in self._formats[flat.repository.format].lists_noted, "the format says who asks"
        source = CACHED if flat.repository.type is RepositoryType.PROXY else HOSTED
        if not policy.decides_on_facts:
            return policy.named(source, now_ms)
        found: NamedRules | None = await self._catalog.scan(
            lambda r: policy.named(source, now_ms, list_judged(r, id_), judged_serial(r, id_))
        )
        return found

    async def note(self, judge: Judge, hidden: Mapping[str, Verdict], *, whole: bool) -> None:
        """
        Note versions that are hidden, by their texts, if facts decide; ``whole`` means that no other one is.

        Nothing is noted where no list leaves it out. While that cannot be written lists show them: clients that ask for
        them are refused all the same.
        """
        rules = judge.rules
        if not rules.needs or rules.at_ms is not None or judge.member.type not in judge.format.lists_noted:
            return
        place = judge.member.id, rules.package, rules.stamp
        found: Opens = {text: verdict.opens_ms for text, verdict in hidden.items()}
        noted = await self._catalog.look(find_judged, *place) or {}
        if noted != (found if whole else {**noted, **found}):
            with suppress(StorageFull, StorageFailed):  # which the catalog has logged
                await self._catalog.write(put_judged, *place, found, whole=whole)

    async def of(self, flat: FlatMember, package: str, listed: Listed | None = None) -> Judge | None:
        """
        The judge of a package (a key) of a member; None if no rule is about it.

        ``listed`` is the document of the upstream that is judged; without it, that which clients have got.
        """
        rules = None if flat.policy is None else flat.policy.of(package)
        if rules is None:
            return None
        judges = await self.of_member(flat, advisories="advisories" in rules.needs)
        made: Judge | None = judges(None, package)
        judge = await self._catalog.scan(judges, package) if judges.asks_more(rules) else made
        if judge is not None and self._lines is not None:
            judge = await (self._lines.of_file(judge) if listed is None else self._lines.of_document(judge, *listed))
        if judge is None or self._histories is None or not rules.needs & TRUST or judge.format.attests is None:
            return judge
        history = await self._histories.of(flat.repository, package, listed)
        return evolve(judge, history=history, root=self._histories.root.id)

    async def history(self, repository: Repository, package: str) -> History | None:
        """
        What the versions of a package (a key) of a repository were trusted; None if nothing tells.

        :raises NotFound, UpstreamFailed: see L{Histories}
        """
        return None if self._histories is None else await self._histories.of(repository, package)

    async def of_member(self, flat: FlatMember, *, advisories: bool = True) -> MemberJudges:
        """
        The judges of all packages of a member, as it is now, for a reader thread.

        Without ``advisories`` they know of none.
        """
        repository, policy = flat.repository, flat.policy
        format_ = self._formats[repository.format]
        origins = None
        if isinstance(policy, CompanionRules) and format_.companion is not None:
            parent = origin_of(repository)
            known = await self._knowledge(self._formats[parent.format]) if advisories else NOTHING
            beyond, now_ms = self._formats[parent.format], self._clock.now_ms()
            root = "" if self._histories is None else self._histories.root.id
            origins = Origins(
                format_.companion, policy, parent, beyond, now_ms, *known, root=root, archives=self.archives
            )
        known = await self._knowledge(format_) if advisories else NOTHING
        proxied = self._proxied.get(repository.format) if repository.type is RepositoryType.PROXY else None
        return MemberJudges(format_, flat, self._clock.now_ms(), proxied, origins, *known, self.archives)

    async def package_of(self, flat: FlatMember, key: str, file: File) -> str:
        """The package (a key) with which a stored file is judged; of a plain file that in whose folder it lies."""
        tree = self._formats[flat.repository.format].tree
        if flat.policy is None or tree is None or file.role is not None:
            return key
        if file.version_id is not None:
            of: tuple[str, str] | None = await self._catalog.look(package_and_version_of_file, file.id)
            return key if of is None else of[0]
        owner: str | None = await self._catalog.look(tree.package_of, flat.repository.id, file.path)
        return key if owner is None else owner

    async def _knowledge(self, format_: StoredFormat) -> tuple[bool, bool]:
        """Whether advisories on packages of a format are known, and whether all of them are."""
        if self._known is None or format_.ecosystem is None:
            return NOTHING
        state = await self._known.knowledge(format_.ecosystem.name)
        return state.stored, state.complete

    async def of_each(self, flat: FlatMember, packages: Iterable[str]) -> dict[str, Judge]:
        """The judges of those of some packages of a member that a rule is about."""
        if flat.policy is None:
            return {}
        found = {each: await self.of(flat, each) for each in packages}
        return {key: judge for key, judge in found.items() if judge is not None}


def note_hidden(
    trace: Trace | None, repository: Repository, hidden: Mapping[str, tuple[Verdict, int | None]], **more: str
) -> None:
    """
    Add a step for each rule that hides versions; these are by text, with the time of their publication.

    ``more`` are further fields of the steps.
    """
    if trace is None:
        return
    groups: dict[tuple[str, str, str], list[tuple[str, Verdict, int | None]]] = {}
    for text, (verdict, published_ms) in hidden.items():
        if verdict.by is not None:
            groups.setdefault((verdict.by.owner, verdict.by.rule.name, verdict.why), []).append(
                (text, verdict, published_ms)
            )
    for found in groups.values():
        placed = found[0][1].by
        assert placed is not None
        versions_ = [HiddenVersion(text, published_ms, each.opens_ms) for text, each, published_ms in found]
        owner = placed.owner or repository.path
        if placed.later_ms is not None:
            trace.add(
                StepKind.LATER,
                repository=repository.path,
                at_ms=placed.later_ms,
                hidden=versions_,
                why=found[0][1].why,
                **more,
            )
        elif placed.short:
            days = placed.rule.match.age_days
            trace.add(StepKind.HIDDEN, repository=repository.path, rule=owner, days=days, hidden=versions_, **more)
        else:
            kind = StepKind.QUARANTINED if found[0][1].waits else StepKind.BLOCKED
            why = found[0][1].why
            trace.add(
                kind,
                repository=repository.path,
                rule=owner,
                named=placed.rule.name,
                hidden=versions_,
                why=why,
                **more,
            )


def refusal_of_newest(
    asked: Repository, member: Repository, package: str, hidden: Mapping[str, tuple[Verdict, int | None]]
) -> RuleRefused:
    """The error for a package of a member all versions of which are ``hidden``, by text and in their order."""
    text, (verdict, _) = list(hidden.items())[-1]
    return refusal(f"every version of {package} is hidden: {text}", verdict, asked, member)


@define(eq=False)
class FileRules:
    """
    Checks files on behalf of the repositories that they are asked of.

    What their rules ask for and is not known yet is read first (``own``), so that a check may wait for an upstream, and
    raise ``NotFound``, ``UpstreamFailed``, ``StorageFull`` and ``StorageFailed``. ``on_match`` is told each verdict of
    a rule, with the repository and the key of the package.
    """

    _catalog: ICatalog
    _judges: PolicyJudges
    _own: OwnFactsOfFiles
    _lines: Lines
    _on_match: Callable[[Repository, str, Verdict], None] = lambda *_: None

    async def check_kept(
        self,
        repository: Repository,
        flat: FlatMember,
        key: str,
        path: str,
        file: File,
        trace: Trace,
        *,
        version: str = "",
        judge: Judge | None = None,
    ) -> None:
        """
        Check that a kept file may be served, whose name may have been reserved later.

        The ``version`` is that of a file that no document lists. For ``judge`` see ``check_listed``.

        :raises NameReserved: it is reserved; :raises RuleRefused: a rule refuses it
        """
        if flat.repository.type is RepositoryType.PROXY:
            check_reserved(flat, key, trace)
        judge = judge or await self._judges.of(flat, await self._judges.package_of(flat, key, file))
        if judge is None:
            return
        judge = await self._own.of_kept(await self._lines.of_file(judge, path), file)
        if judge.origins is not None and judge.rules.needs & (OF_BYTES | TRUST):
            unread = await self._catalog.look(judge.origins.unread, file)
            if unread is not None:
                read = await self._own.of_kept(*unread)
                judge = evolve(judge, origins=judge.origins.with_read(read))
        verdict: Verdict = await self._catalog.look(judge.of_kept, file)
        if not verdict.served and judge.facts_serial is not None and "digests" in judge.rules.needs:
            await self._own.reading.note_digests(judge, path, by_algorithm(judge.digests_of_kept(file)), version)
        await self._conclude(repository, flat, judge, path, verdict, trace)

    async def check_listed(
        self,
        repository: Repository,
        flat: FlatMember,
        key: str,
        remote: RemoteFile,
        trace: Trace,
        *,
        lasting: bool = True,
        judge: Judge | None = None,
    ) -> None:
        """
        Check a file that an upstream has. One that is not ``lasting`` may be another one under its path by now.

        The ``judge`` of its package is made, unless the caller has it.

        :raises RuleRefused: a rule refuses it
        """
        judge = judge or await self._judges.of(flat, key)
        if judge is None:
            return
        judge = await self._lines.of_file(judge, remote.source.path)
        judge = evolve(await self.read_own(judge, remote), own=NOTHING_UNREAD)
        entry, source = remote.entry, remote.source
        replaced = not lasting and of_former(judge, source.path, source.digests)
        if source not in entry.files:
            entry = msgspec.structs.replace(entry, files=[*entry.files, source])
        asked = without_former(judge, source.path) if replaced else judge
        verdict = asked.of_entry(entry, remote.route)
        if (replaced or not verdict.served) and not remote.checked_ms and "digests" in judge.rules.needs:
            await self._own.reading.note_digests(judge, source.path, source.digests, entry.version, lasting=lasting)
        await self._conclude(repository, flat, judge, source.path, verdict, trace)

    async def read_own(self, judge: Judge, remote: RemoteFile, *, digests: bool = True) -> Judge:
        """The judge of a file, with what its rules ask of that, if a document lists it; see L{OwnFactsOfFiles}."""
        return await self._own.of_listed(judge, remote, digests=digests) if remote.checked_ms else judge

    async def judge_of(self, flat: FlatMember, request: FileRequest) -> Judge | None:
        """The judge of a file that is asked for by its path; None if no rule is about it."""
        return await self._judges.of(flat, request.package_key)

    async def described(self, judge: Judge | None, request: FileRequest) -> Judge | None:
        """The judge, with what its rules ask of the version that a file belongs to."""
        return None if judge is None else await self._own.of_version(judge, request)

    async def note_undescribed(self, judge: Judge | None, request: FileRequest) -> None:
        """Note of a refused file what ``described`` did not find; see L{OwnFactsOfFiles.note_undescribed}."""
        if judge is not None:
            await self._own.note_undescribed(judge, request)

    async def _conclude(
        self, repository: Repository, flat: FlatMember, judge: Judge, path: str, verdict: Verdict, trace: Trace
    ) -> None:
        if verdict.by is None and not verdict.warned:
            return
        self._on_match(flat.repository, judge.rules.package, verdict)
        trace.counted = trace.counted or bool(verdict.warned)
        if verdict.by is not None:
            if judge.format.single_file and verdict.version:
                await self._judges.note(judge, {verdict.version: verdict}, whole=False)
            error = refusal(path.rsplit("/", 1)[-1], verdict, repository, flat.repository)
            proxy, rule = flat.repository.path, verdict.by.owner or flat.repository.path
            trace.add(StepKind.FILE_REFUSED, repository=proxy, rule=rule, path=path, why=str(error))
            raise error
