"""
The decision about one package of one repository, which serving, explanations and rehearsals ask.

It gathers what is known of a file or version, wherever that comes from, and asks the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec
from attrs import Factory, define, evolve, field, frozen
from twisted.logger import Logger

from pkgrepo.archives.explained import NO_SOURCE
from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import Invalid
from pkgrepo.failure_log import FailureLog
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository, RepositoryType, Version
from pkgrepo.repositories.attestations import Claim, Rank
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.storage.catalog.file_facts import (
    Attested,
    FileFacts,
    Known,
    attested_name,
    dependency_name,
    explained_name,
    is_strong,
    names_of,
    place_of,
    strong_names,
)
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.rows import to_ms

from .archive_addresses import ArchiveAddresses
from .comparing import CompareFacts, Comparisons
from .conditions import CACHED, DECLARED, HOSTED, TRUST, Facts
from .facts import NOTHING_TOLD, declared, digests_of, facts_of_version, with_advisories, with_own
from .judged import Declares, Listed, Stored, main_files
from .line import Find, Line, Peer
from .rules import SERVED, PackageRules, Verdict
from .schema import Datum
from .trust import History, Trust, Unsaid

_failures: Final = FailureLog(Logger(), "what an upstream lists is refused, as its metadata cannot be read")


class DecidesOnCopies(Protocol):
    """Decides about what is made of files in another repository; see L{pkgrepo.repositories.policy.origins}."""

    def decision(self, reader: Reader, copy: File) -> Callable[[Facts, int], Verdict] | None:
        """The decision about a file, by what is known of it; None for one that is made of no other."""

    def unread(self, reader: Reader, copy: File) -> tuple[Judge, File] | None:
        """The judge of what it is made of, and that; None if rules ask for nothing in it."""

    def with_read(self, read: Judge) -> DecidesOnCopies:
        """The same with the judge of a package in which one file was read for the decision."""


@define(eq=False, slots=False)
class _Past:
    """The history of a judge with what it knows of files that are unsaid, made when it is first asked for."""

    judge: Judge

    @cached_property
    def history(self) -> History | None:
        history, judge = self.judge.history, self.judge
        return None if history is None else history.known_by(judge.attested)


@frozen(eq=False)
class Judge:
    """
    The rules about a package of one member, ready to be asked.

    ``known`` are the advisories on the package, if the rules ask for them; ``complete``: none is missing.
    ``declares`` is where documents of upstreams have metadata, if the rules ask for these. ``origins`` decide about
    what is derived from the parent of a companion. ``own`` are the data that only files tell, and
    ``facts`` what they tell as far as it is known, by their names, at a serial; see
    L{pkgrepo.storage.catalog.file_facts}. ``history`` is how far versions of the package were trusted, if the rules ask
    for that and it is known; ``root`` is the id of the trusted root by which attestations are verified. A
    judge that ``believes`` takes for verified what is claimed and was not read. ``line`` has the versions before
    others, if the rules compare these; None while they are not known. ``archives`` is where archives of the source of
    packages are; with None it is not known where.
    """

    format: StoredFormat
    rules: PackageRules
    member: Repository
    now_ms: int
    known: Any = None
    complete: bool = False
    declares: Declares | None = None
    origins: DecidesOnCopies | None = None
    own: frozenset[Datum] = frozenset()
    facts: Known = MappingProxyType({})
    facts_serial: int | None = None
    history: History | None = None
    root: str = ""
    believes: bool = False
    line: Line | None = None
    archives: ArchiveAddresses | None = None
    _comparisons: Comparisons = field(init=False, default=Factory(Comparisons, takes_self=True))
    _past: _Past = field(init=False, default=Factory(_Past, takes_self=True))

    @property
    def compares(self) -> bool:
        """Whether the rules compare versions of this format."""
        return "differs" in self.rules.needs and bool(self.format.differs) and self.format.versions is not None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of fragments that entries must have to be judged."""
        return () if self.declares is None else self.declares.kinds

    def of_entry(self, entry: Listed, route: str) -> Verdict:
        """The verdict on what an upstream lists."""
        return self.decide(self.facts_of_entry(entry, route))

    def of_kept(self, reader: Reader, file: File) -> Verdict:
        """The verdict on a file that is stored."""
        return self.decide(self.facts_of_kept(reader, file))

    def hidden_files(self, reader: Reader, package_id: int) -> tuple[dict[str, Verdict], dict[str, Verdict]]:
        """What a stored package has that is not served: versions by text, and files by path."""
        hidden_versions: dict[str, Verdict] = {}
        hidden_files: dict[str, Verdict] = {}
        gil = GilReleaser()
        for stored in self.stored(reader, package_id):
            verdicts = {file.path: self.decide(facts) for file, facts in stored.files}
            hidden_files |= {path: each for path, each in verdicts.items() if not each.served}
            verdict = self._of_version(stored, list(verdicts.values()))
            if not verdict.served:
                hidden_versions[stored.version.text] = verdict
            gil.release_if_due()
        return hidden_versions, hidden_files

    def of_version(self, reader: Reader, package_id: int, text: str) -> Verdict:
        """The verdict on a stored version, by its text."""
        for stored in self.stored(reader, package_id):
            if stored.version.text == text:
                return self._of_version(stored, [self.decide(facts) for _, facts in stored.files])
        return SERVED

    def trust_of(self, reader: Reader, package_id: int, text: str) -> Trust | None:
        """What is known of who published a stored version, by its first file; None if rules do not ask for that."""
        if not self.rules.needs & TRUST:
            return None
        found = (each for each in self.stored(reader, package_id) if each.version.text == text)
        return next((facts.trust for each in found for _, facts in each.files), None)

    def _of_version(self, stored: Stored, verdicts: Sequence[Verdict]) -> Verdict:
        """A version is not served if it has files and none of them is."""
        if not verdicts:
            return self.decide(stored.facts)
        return next((each for each in verdicts if each.served), verdicts[0])

    def decide(self, facts: Facts, at_ms: int | None = None) -> Verdict:
        """The verdict over what is known, now or at another time."""
        at_ms = self.now_ms if at_ms is None else at_ms
        if facts.decision is None:
            return self.rules.decide(facts, at_ms)
        found: Verdict = facts.decision(facts, at_ms)
        return found

    def facts_of_entry(self, entry: Listed, route: str) -> Facts:
        """What is known of what an upstream lists."""
        files = entry.files if self.facts else ()
        names = [name for each in files for name in names_of(each.digests, self.member.id, each.path)]
        facts, claim = self._listed(entry, route)
        facts = self._with_own(facts, entry.version, names)
        return self._with_advisories(self._with_trust(facts, claim, entry.files[0].path if entry.files else "", names))

    def peers_of_entry(self, entry: Listed, route: str) -> Iterator[Peer]:
        """The file of an entry that others may be compared with, if it has one and a version."""
        for each in main_files(entry)[:1] if entry.version else ():
            names = [name for one in entry.files for name in names_of(one.digests, self.member.id, one.path)]
            facts, claim = self._listed(entry, route)
            yield Peer(each.path, evolve(facts, compare=None), names, claim)

    def _listed(self, entry: Listed, route: str) -> tuple[Facts, Claim | None]:
        """What a document of an upstream tells of what it lists, and claims of who published it."""
        meta: Mapping[str, Any] = {}
        unreadable = False
        if self.declares is not None:
            try:
                meta = self.declares.read(entry.fragments)
            except Invalid as error:
                unreadable = True
                reason = f"{self.rules.package} {entry.version} of {self.member.path}: {error}"
                _failures.failed(error, reason=reason)
        digests = frozenset[str]().union(*(digests_of(each.digests) for each in entry.files))
        paths = [each.path for each in main_files(entry)]
        claim = None
        if self._asks_trust and self.format.attests is not None and entry.files and not unreadable:
            paths_listed = [each.path for each in entry.files]
            claim = self.format.attests.claim_of_upstream(meta, paths_listed, entry.published_ms)
        facts = Facts(
            package=self.rules.package,
            versions=(entry.version,) if entry.version else (),
            # where files tell it, the time at which a document was seen first means nothing
            published_ms=None if entry.first_seen and "age" in self.own else entry.published_ms,
            first_seen=entry.first_seen,
            source=CACHED,
            route=route,
            digests=digests,
            unreadable=unreadable,
            compare=partial(self._comparisons.compare, paths[0]) if paths else None,
            **declared(self.format, meta, paths),
        )
        return facts, claim

    @property
    def _asks_trust(self) -> bool:
        return "trust" in self.rules.needs and self.format.attests is not None

    def _with_trust(self, facts: Facts, claim: Claim | None, path: str, names: Sequence[str]) -> Facts:
        """The facts with those of who published the file at a path."""
        if claim is None:
            return facts
        found = (self.attested(attested_name(each, path)) for each in names)
        attested = next((each for each in found if each is not None), None)
        if attested is not None and attested.verified and not claim.provenance:
            claim = Claim(max(claim.rank, Rank.PROVENANCE), provenance=True)
        if attested is None and self.believes and claim.provenance and not claim.unsaid:
            attested = Attested(root=self.root, verified=True)
        trust, past = Trust(claim, attested), self._past.history
        if past is not None:
            version, prerelease = self._place(facts)
            dated = not facts.first_seen
            trust = past.compare(trust, version, facts.published_ms, prerelease=prerelease, dated=dated)
        facts = evolve(facts, trust=trust)
        open_ = self.needs_attestation(facts) or self.unsaid_before(facts, most=1)
        return facts if open_ else evolve(facts, unread=facts.unread - TRUST)

    def attested(self, name: str) -> Attested | None:
        """What the attestation of a file, by the name for that, was found to be, as far as that still holds."""
        known = self.facts.get(name)
        attested = None if known is None else known.attested
        return attested if attested is not None and attested.holds(self.root, self.now_ms) else None

    def _place(self, facts: Facts) -> tuple[str, bool]:
        """The version that facts are about, and whether it is a prerelease."""
        version, kinds = next(iter(facts.versions), ""), self.format.versions
        return version, kinds is not None and kinds.prerelease(version)

    def unsaid_before(self, facts: Facts, most: int) -> Sequence[Unsaid]:
        """The files of versions before one whose attestations must be read to judge it, ``most`` of the newest."""
        past, trust = self._past.history, facts.trust
        wanted = {each.placed.rule.match.trust for each in self.rules.rules}
        if past is None or trust is None or "fell" not in wanted or facts.published_ms is None:
            return ()
        if not trust.is_open_before("fell"):
            return ()
        version, prerelease = self._place(facts)
        dated = not facts.first_seen
        return past.unsaid_before(version, facts.published_ms, most, prerelease=prerelease, dated=dated)

    def needs_attestation(self, facts: Facts) -> bool:
        """Whether the attestation of a file must be read to judge it: what is claimed of it does not decide."""
        wanted = {each.placed.rule.match.trust for each in self.rules.rules}
        return facts.trust is not None and any(facts.trust.is_open(each) for each in wanted if each is not None)

    def _with_own(self, facts: Facts, version: str, names: Sequence[str]) -> Facts:
        """The facts with those that files tell of themselves."""
        if not self.facts:
            return facts if facts.unread == self.own else evolve(facts, unread=self.own)
        known = [self.facts[each] for each in names if each in self.facts]
        about = self.facts.get(place_of(self.member.id, version))
        if about is not None:  # that of all files, of which each has other digests
            known.append(about if not names else msgspec.structs.replace(about, digests=()))
        told = frozenset[Datum]().union(*(_told(each) for each in known))
        for each in known:
            facts = with_own(facts, each)
        if self.asks_sources:  # of a file without an announced digest by that of what was read
            facts = self._with_source(facts, [*names, *(digest for each in known for digest in each.digests)])
        return facts if self.own <= told else evolve(facts, unread=self.own - told)

    def _with_source(self, facts: Facts, names: Sequence[str]) -> Facts:
        """The facts with what the archive of its source does not explain of a file that was looked into."""
        if self.archives is None or not facts.looked_into:
            return facts
        address = self.archive_address(facts)
        if not address:  # the source that a file names which cannot be read is not known
            return facts if facts.shape is None else evolve(facts, explained=NO_SOURCE)
        version = next(iter(facts.versions), "")
        named = (self.facts.get(explained_name(each, version)) for each in dict.fromkeys(names) if is_strong(each))
        known = (each.explained for each in named if each is not None)
        holding = (each for each in known if each is not None and each.holds(address, self.now_ms))
        return evolve(facts, explained=next(holding, None))

    def archive_address(self, facts: Facts) -> str:
        """Where archives of the source of a file are, with a place for the tag; empty if that is not known."""
        said = [each for each in (facts.shape, facts.told) if each is not None]
        return "" if self.archives is None else self.archives.of({name for each in said for name in each.sources})

    @property
    def asks_sources(self) -> bool:
        """Whether the rules ask for what archives of the source do not explain."""
        return self.rules.asks_sources and self.format.sources is not None

    def unexplained(self, facts: Facts) -> Sequence[str]:
        """The paths of files with which the archives of their sources are to be compared, to compare one of them."""
        if facts.compare is None or not self.asks_sources or "differs" not in self.rules.may_ask(facts, self.now_ms):
            return ()
        return facts.compare(facts, self.now_ms).unexplained

    def facts_of_kept(self, reader: Reader, file: File) -> Facts:
        """What is known of a file that is stored."""
        main = file if file.role is None else self.main_of(reader, file)
        found = [] if main.version_id is None else versions.versions_by_id(reader, [main.version_id])
        if found:
            return self._facts_of_file(reader, found[0], main, file)
        return self._facts_beside_version(reader, main) or self._facts_of_no_version(main, file)

    def main_of(self, reader: Reader, file: File) -> File:
        """The file that another one belongs to, which is as old as that and goes with it."""
        path = file.path.removesuffix(file.role or "")
        found = None if path == file.path else files.find_file(reader, file.repository_id, path)
        if found is None and self.format.single_file and file.version_id is not None:
            stored = files.files_of_version(reader, file.version_id)
            found = next((each for each in stored if each.role is None), None)
        return found or evolve(file, path=path)

    def digests_of_kept(self, file: File) -> frozenset[str]:
        """The digests of a file that is stored: those that its row has, and those that were read of its bytes."""
        known = self.facts.get(f"sha256:{file.sha256}", NOTHING_TOLD)
        return digests_of(file.digests, file.sha256).union(known.digests)

    def stored(self, reader: Reader, package_id: int) -> Iterator[Stored]:
        """What is known of all versions of a package that is stored, in their order, and of their files."""
        by_version: dict[int, list[File]] = {}
        for each in files.files_of_package(reader, package_id):
            if each.version_id is not None:
                by_version.setdefault(each.version_id, []).append(each)
        for version in versions.list_versions(reader, package_id):
            found = by_version.get(version.id, ())
            main = [(each, self._facts_of_file(reader, version, each, each)) for each in found if each.role is None]
            yield Stored(
                version, main, [each for each in found if each.role], partial(self._facts_of_version, version, found)
            )

    def _facts_of_version(self, version: Version, found: Sequence[File]) -> Facts:
        about = [evolve(each, path=each.path.removesuffix(each.role or "")) for each in found]
        facts = facts_of_version(self.format, self.member, self.rules.package, version, about)
        digests = facts.digests.union(*(self.digests_of_kept(each) for each in found))
        return self._with_advisories(evolve(facts, digests=digests))

    def _facts_of_file(self, reader: Reader, version: Version, main: File, file: File) -> Facts:
        """The facts of a file. What goes with another file (``main``) is as old as that, and judged as it."""
        facts, names, claim = self._stored_facts(reader, version, main)
        facts = self._with_trust(self._with_own(facts, version.text, names), claim, main.path, names)
        return self._with_advisories(evolve(facts, digests=facts.digests | self.digests_of_kept(file)))

    def _stored_facts(self, reader: Reader, version: Version, main: File) -> tuple[Facts, Sequence[str], Claim | None]:
        """What the catalog tells of a file, its names, and what is claimed of who published it."""
        hosted = self.member.type is RepositoryType.HOSTED
        facts = evolve(
            facts_of_version(self.format, self.member, self.rules.package, version, [main]),
            added_ms=to_ms(main.created_at) if hosted else None,
            decision=None if self.origins is None else self.origins.decision(reader, main),
            compare=partial(self._comparisons.compare, main.path),
        )
        claim = self._claim_of(reader, version, main) if self._asks_trust and not facts.unreadable else None
        return facts, strong_names({**main.digests, "sha256": main.sha256}), claim

    def _claim_of(self, reader: Reader, version: Version, main: File) -> Claim:
        """What is claimed of a kept file: by the document that lists it, or by what is kept."""
        attests = self.format.attests
        assert attests is not None, "rules ask for what there is"
        listed = None if self.history is None else self.history.claims.get(main.path)
        if listed is not None:
            return listed
        beside = main.path + attests.suffix
        there = files.find_file(reader, main.repository_id, beside) is not None
        paths = [main.path, beside] if there else [main.path]
        if self.member.type is RepositoryType.PROXY:
            published_ms = None if main.origin is None else main.origin.published_ms
            return attests.claim_of_upstream(version.meta, paths, published_ms)
        return attests.claim(version.meta, paths)

    def stored_peers(self, reader: Reader) -> Iterator[Peer]:
        """The files that are stored, with which others may be compared."""
        package = packages.find_package(reader, self.member.id, self.rules.package)
        by_id = {} if package is None else {each.id: each for each in versions.list_versions(reader, package.id)}
        for each in () if package is None else files.files_of_package(reader, package.id):
            version = by_id.get(each.version_id or 0)
            if each.role is None and version is not None:
                facts, names, claim = self._stored_facts(reader, version, each)
                yield Peer(each.path, facts, names, claim)

    def lacking(self, facts: Facts) -> Sequence[str]:
        """The paths of files that are to be read, so that the rules can compare one with those before it."""
        if facts.compare is None or "differs" not in self.rules.may_ask(facts, self.now_ms):
            return ()
        found = facts.compare(facts, self.now_ms).lacking
        if (
            found and found[0] and not facts.looked_into
        ):  # that is the file itself, and those before it are read with it
            return [found[0], *self._comparisons.lacking_before(found[0], facts, self.now_ms)]
        return [each for each in found if each]

    @property
    def asks_ages(self) -> bool:
        """Whether the rules ask when packages that a version needs were first published."""
        return self.rules.asks_ages

    def first_published(self, name: str) -> int | None:
        """
        When a package (a name) was first published (ms), as the member knows it; None if nothing tells that.

        :raises LookupError: it was not asked yet
        """
        try:
            key = self.format.package_key(name)
        except Invalid:
            return None
        return self.facts[dependency_name(self.member.id, key)].published_ms

    def asking(self, facts: Facts) -> Sequence[str]:
        """The names of packages of which it is to be asked when they were first published, to compare a file."""
        if facts.compare is None or not self.asks_ages or "differs" not in self.rules.may_ask(facts, self.now_ms):
            return ()
        return facts.compare(facts, self.now_ms).asking

    def _facts_beside_version(self, reader: Reader, file: File) -> Facts | None:
        """What is known of the version in whose folder a plain file lies; None if it lies in none."""
        tree = self.format.tree
        folder = "" if tree is None else f"{tree.directory(self.rules.package, '')}/"
        text, inside, _ = file.path.removeprefix(folder).partition("/")
        if not folder or not file.path.startswith(folder) or not inside:
            return None
        package = packages.find_package(reader, self.member.id, self.rules.package)
        version = None if package is None else versions.find_version(reader, package.id, text)
        if version is None:
            return self._with_advisories(evolve(self._facts_of_no_version(file, file), versions=(text,)))
        facts = self._facts_of_version(version, files.files_of_version(reader, version.id))
        return evolve(facts, digests=self.digests_of_kept(file))  # a digest names one file

    def _facts_of_no_version(self, main: File, file: File) -> Facts:
        origin, cached = main.origin, self.member.type is RepositoryType.PROXY
        published_ms = None if origin is None else origin.published_ms
        facts = Facts(
            package=self.rules.package,
            published_ms=published_ms if cached else to_ms(main.created_at),
            first_seen=origin is not None and origin.first_seen,
            source=CACHED if cached else HOSTED,
            route="" if origin is None else origin.route,
            digests=self.digests_of_kept(main) | self.digests_of_kept(file),
        )
        return with_advisories(facts, self.format, self.known, complete=False)

    def _with_advisories(self, facts: Facts) -> Facts:
        return with_advisories(facts, self.format, self.known, complete=self.complete)

    def of_peer(self, peer: Peer, compare: CompareFacts) -> Facts:
        """What is known of a file of the line, which is itself compared in this way."""
        facts = self._with_own(peer.facts, peer.version, peer.names)
        facts = self._with_trust(facts, peer.claim, peer.path, peer.names)
        return self._with_advisories(evolve(facts, compare=compare))

    def lacks(self, peer: Peer, facts: Facts) -> bool:
        """Whether something of a file of the line is still to be read, so that another one can be compared with it."""
        inside = (self.facts[each].is_read for each in peer.names if each in self.facts)
        attested = not self.own & TRUST or not self.needs_attestation(facts)
        return not attested or (self.format.inside is not None and not any(inside))


def with_stored(judge: Judge, reader: Reader) -> Judge:
    """The judge with the versions that are stored, if its rules compare them."""
    kinds = judge.format.versions
    if not judge.compares or kinds is None:
        return judge
    whole = judge.member.type is RepositoryType.HOSTED
    return evolve(judge, line=Line(judge.stored_peers(reader), kinds, whole=whole))


def with_listed(
    judge: Judge, entries: Iterable[Listed], route: str, find: Find | None = None, kept: Sequence[Peer] = ()
) -> Judge:
    """The judge with the versions that an upstream lists, and others that are ``kept``, if its rules compare them."""
    kinds = judge.format.versions
    if not judge.compares or kinds is None:
        return judge
    peers = [peer for each in entries for peer in judge.peers_of_entry(each, route)]
    listed = {each.version for each in peers}
    removed = [each for each in kept if each.version not in listed]
    return evolve(judge, line=Line(peers, kinds, removed=removed, find=find))


def _told(known: FileFacts) -> frozenset[Datum]:
    """The data that were read of a file; what cannot be read tells none, and nothing more is read of it."""
    declared: frozenset[Datum] = DECLARED if known.licences is not None or known.unreadable else frozenset()
    inside: frozenset[Datum] = frozenset() if known.contents is None else frozenset({"contents"})
    inside |= {"licences_inside"} if known.is_read else frozenset()
    dated: frozenset[Datum] = frozenset({"age"} if known.published_ms is not None or known.unreadable else ())
    return declared | inside | dated
