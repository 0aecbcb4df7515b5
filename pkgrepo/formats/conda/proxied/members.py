"""
The members of a channel that have a document, at one moment: what upstreams said, and hosted repositories.

What a repository shows of the records of an upstream channel.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from functools import cached_property
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

import msgspec
from attrs import define, frozen

from pkgrepo.errors import Invalid
from pkgrepo.formats.conda.index.documents import CHANNELDATA, CURRENT, REPODATA, RUN_EXPORTS
from pkgrepo.formats.conda.index.packages import PackageRecords
from pkgrepo.formats.conda.names import ENDINGS
from pkgrepo.formats.conda.proxied.normaliser import RECORD
from pkgrepo.formats.conda.proxied.restoring import channeldata_question, exports_question, repodata_question
from pkgrepo.gateway.services import Services
from pkgrepo.interfaces import Reader
from pkgrepo.model import DatedView, Repository, RepositoryType
from pkgrepo.proxy.caching.questions import DocumentRequest, Held
from pkgrepo.proxy.configuration import Rules
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.values import name_in
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.resolving.rules import MemberJudges
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.policy.conditions import INSIDE
from pkgrepo.repositories.policy.effective import origin_of
from pkgrepo.repositories.policy.judge import Judge, with_listed
from pkgrepo.repositories.policy.judged import Declares
from pkgrepo.repositories.policy.rules import NamedRules
from pkgrepo.repositories.policy.schema import Datum
from pkgrepo.storage.catalog import upstream_documents
from pkgrepo.storage.catalog.file_facts import Known, facts_of_format, serial_of_format
from pkgrepo.storage.catalog.packages.packages import find_package
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.untrusted.strict_json import ERRORS, describe

STEP_MS: Final = 300_000  # of time after which files are looked at again: large channels have one in every few seconds
# Of an entry in the data of a channel, what is about the newest version.
OF_VERSION: Final = frozenset(
    ("version", "timestamp", "reference_package", "source_url", "source_git_url", "source_git_rev", "source_git_tag")
)


@frozen(eq=False)
class Hidden:
    """
    The files that rules hide.

    At ``opens_ms`` (None: never) the next of them is shown, which may be ``STEP_MS`` after it is old enough.
    """

    files: Set[str] = frozenset()
    opens_ms: int | None = None


@define(eq=False, slots=False)
class Selection:
    """
    What is taken of an upstream: no package of a reserved name, or of a name that is ``taken`` by other members.

    Of the others no file that is ``hidden``, and none in ``seen``, where those are added that are taken, unless it is
    None. ``named`` are the rules for the data of a channel that came from ``route``.
    """

    member: FlatMember
    taken: Set[str]
    hidden: Hidden = Hidden()
    seen: set[str] | None = None
    named: NamedRules | None = None
    route: str = ""

    def takes_package(self, name: str) -> bool:
        """Whether the package is taken."""
        return name not in self.taken and not any(each.reserved_by(name) for each in self._reserving)

    def takes_file(self, file: str) -> bool:
        """Whether the file of such a package is taken, which is seen from now on."""
        if file in self.hidden.files:
            return False
        if self.seen is not None:
            if file in self.seen:
                return False
            self.seen.add(file)
        return True

    def shown_about(self, name: str, entry: bytes) -> bytes:
        """The entry of a package in the data of a channel, without what tells of versions that rules hide."""
        about: dict[str, Any] = msgspec.json.decode(entry)
        version, exports = str(about.get("version", "")), about.get("run_exports")
        exports = exports if isinstance(exports, dict) else {}
        hidden = set() if self.named is None else self.named.hides(name, [version, *exports], self.route)
        if not hidden:
            return entry
        if version in hidden:
            about = {key: value for key, value in about.items() if key not in OF_VERSION}
        if exports:
            about["run_exports"] = {key: value for key, value in exports.items() if key not in hidden}
        return msgspec.json.encode(about)

    @cached_property
    def _reserving(self) -> list[Rules]:
        return [rules for _, rules in self.member.rules if rules.reserved_names]


async def find_hidden(services: Services, member: FlatMember, route: str) -> Callable[[PartsFile], Hidden]:
    """A function that finds, in the records of an upstream, the files that rules hide now. It blocks."""
    format_, now_ms, policy = services.formats[member.repository.format], services.clock.now_ms(), member.policy
    declares = Declares(RECORDS, read_record)
    known: Mapping[str, Known] = {}
    if policy is not None and _asks_files(member):
        known = await services.catalog.scan(
            facts_of_format, format_.name, member.repository.id, lambda key: policy.of(key) is not None
        )

    def find(parts: PartsFile) -> Hidden:
        files: set[str] = set()
        opens: set[int] = set()
        reads = policy is not None and policy.reads_metadata
        for name, entries in groupby(parts.entries(RECORDS if reads else ()), key=lambda each: name_in(each.sort)):
            rules = None if policy is None else policy.of(name)
            if rules is None:
                continue
            asks = declares if rules.reads_metadata else None
            told, facts = OWN | (rules.needs & INSIDE), known.get(name, NOTHING)
            judge = Judge(format_, rules, member.repository, now_ms, declares=asks, own=told, facts=facts)
            found = list(entries)
            judge = with_listed(judge, found, route)
            for entry in found:
                verdict = judge.of_entry(entry, route)
                if not verdict.served:
                    files.add(entry.key)
                    opens |= set() if verdict.opens_ms is None else {verdict.opens_ms}
        return Hidden(frozenset(files), max(min(opens), now_ms + STEP_MS) if opens else None)

    return find


OWN: Final[frozenset[Datum]] = frozenset({"licences"})  # what packages tell for certain, and records as they were
NOTHING: Final[Known] = MappingProxyType({})


def _asks_files(member: FlatMember) -> bool:
    """Whether rules ask for what only files tell, so that documents change when it is read."""
    policy = member.policy
    return policy is not None and (policy.reads_metadata or policy.reads_bytes)


RECORDS: Final = tuple(f"{RECORD}{ending}" for ending in ENDINGS)


class _Declared(msgspec.Struct):
    """What rules ask of a record."""

    license: Any = None


def read_record(fragments: Mapping[str, bytes]) -> Mapping[str, Any]:
    """
    What the record of a file in its fragment says of its licence.

    :raises Invalid: it cannot be read
    """
    body = next((fragments[kind] for kind in RECORDS if kind in fragments), b"")
    try:
        found = msgspec.json.decode(body, type=_Declared)
    except ERRORS as error:
        raise Invalid(f"a record cannot be read: {describe(body, error)}") from error
    return {} if found.license is None else {"license": found.license}


def shown_records(judges: MemberJudges, reader: Reader, package: PackageRecords) -> tuple[PackageRecords, set[int]]:
    """What a hosted channel shows of a package, without the files that rules hide, and when these are shown (ms)."""
    judge = judges(reader, package.name)
    found = None if judge is None else find_package(reader, judge.member.id, package.name)
    if judge is None or found is None:
        return package, set()
    _, files = judge.hidden_files(reader, found.id)
    opens = {each.opens_ms for each in files.values() if each.opens_ms is not None}
    return (package.without(set(files)) if files else package), opens


@frozen(eq=False)
class Answered:
    """A question to an upstream, and its response, which may be that it does not have the document."""

    question: DocumentRequest
    held: Held

    @property
    def stamp(self) -> Hashable:
        """Differs whenever the content does."""
        return self.question.key, self.held.document.fetched_ms if self.held.document.found else 0

    def is_older_than(self, changed_ms: int) -> bool:
        """Whether the upstream has not been asked since a time, at which another document of the folder changed."""
        return not self.held.stale and self.held.document.checked_ms < changed_ms


@frozen(eq=False)
class Upstream:
    """
    A proxy whose upstream has the ``records`` of a folder, and what that said of a ``document``.

    They are the same if these are all records, or if the upstream has no list of fewer. Of the data of a channel the
    records are those data.
    """

    member: FlatMember
    records: Answered
    document: Answered
    facts_serial: int = 0  # of what is known of files

    @property
    def proxy(self) -> Repository:
        """The repository."""
        return self.member.repository

    @property
    def stamp(self) -> Hashable:
        """Differs whenever what it has does."""
        return self.proxy.id, self.records.stamp, self.document.stamp, self.facts_serial


@frozen(eq=False)
class ChannelState:
    """
    What a document is made of: ``stamp`` differs whenever that does.

    ``hosted`` are all hosted members; the first of their stamps differs whenever they have other names, the second one
    whenever they have other content, or with ``reads_hosted`` when more is known of files. ``upstreams`` are those with
    the folder, and ``asked`` is all that was said.
    """

    stamp: Hashable
    hosted_stamp: tuple[Hashable, Hashable]
    hosted: Sequence[Repository]
    upstreams: Sequence[Upstream]
    asked: Sequence[tuple[Repository, Answered]]
    reads_hosted: bool = False

    @property
    def cacheable(self) -> bool:
        """Whether the catalog tells when something changes."""
        asked = [each.held for _, each in self.asked]
        return all(not each.stale and (each.stored or not each.document.found) for each in asked)

    def settled(self, view: DatedView | None) -> bool:
        """Whether the document is that of a view of the past which stays as it is."""
        asked = [each.held for _, each in self.asked]
        return (
            view is not None
            and view.settled
            and all(not each.stale and each.document.checked_ms > view.at_ms for each in asked)
        )

    @property
    def ends_ms(self) -> int | None:
        """When an upstream must be asked again; None for never."""
        return min((each.held.document.fresh_until_ms for _, each in self.asked), default=None)

    def fresh(self, reader: Reader, config_serial: int) -> bool:
        """Whether the document is still made of the same."""
        if repositories.config_serial(reader) != config_serial:
            return False
        for proxy, each in self.asked:
            document = each.held.document
            now = upstream_documents.fetched_at(reader, proxy.id, document.key)
            if document.found and now != document.fetched_ms:
                return False
        serials = {each.facts_serial for each in self.upstreams if _asks_files(each.member)}
        if serials and serials != {serial_of_format(reader, self.upstreams[0].proxy.format)}:
            return False
        return _hosted_stamp(reader, self.hosted, self.reads_hosted) == self.hosted_stamp


async def find_members(
    services: Services, repository: Repository, subdir: str, document: str, *, revalidate: bool
) -> ChannelState:
    """
    The members that have a document of a folder, or with an empty ``subdir`` of the channel, as they are now.

    For ``revalidate`` see L{Documents.answer}.

    :raises UpstreamFailed: an upstream failed, and what it has is not known: others could have a package of another
    owner
    """
    config_serial = services.registry.serial  # before the configuration is read
    ways = services.proxy.resolver.ways(repository)
    hosted = [each.repository for each in ways if each.repository.type is RepositoryType.HOSTED]
    reads = any(_asks_files(each) for each in ways if each.repository.type is RepositoryType.HOSTED)
    hosted_stamp = await services.catalog.look(_hosted_stamp, hosted, reads)
    upstreams: list[Upstream] = []
    asked: list[tuple[Repository, Answered]] = []
    for member in ways:
        proxy = member.repository
        if proxy.type is not RepositoryType.PROXY or not proxy.active:
            continue
        # An upstream's list of the newest lacks what was the newest in the past.
        asking = _questions(subdir, REPODATA if document == CURRENT and repository.view is not None else document)
        found = [await _ask(services, proxy, each, revalidate=revalidate) for each in asking]
        changed_ms = max(each.held.document.fetched_ms for each in found)
        # Files are what the records say, so clients must not get a document that says something newer, or older.
        found = [
            await _ask(services, proxy, each.question, before=each) if each.is_older_than(changed_ms) else each
            for each in found
        ]
        asked += [(proxy, each) for each in found]
        records, last = found[0], found[-1]
        if not records.held.document.found:
            continue
        if document == CURRENT and not last.held.document.found:
            last = records
        serial = 0
        if _asks_files(member):
            serial = await services.catalog.look(serial_of_format, proxy.format)
        upstreams.append(Upstream(member, records, last, serial))
    stamp = (config_serial, tuple(each.stamp for each in upstreams), hosted_stamp)
    return ChannelState(stamp, hosted_stamp, hosted, upstreams, asked, reads)


async def _ask(
    services: Services,
    proxy: Repository,
    question: DocumentRequest,
    *,
    revalidate: bool = False,
    before: Answered | None = None,
) -> Answered:
    """
    What an upstream has, or had a short while ago; a newer answer than the one ``before``.

    While it fails it has what it had, also of folders: most channels lack some that clients ask for.

    :raises UpstreamFailed: see L{find_members}
    """
    if before is not None:
        await services.proxy.documents.expire(proxy, question, before.held.document.checked_ms)
    return Answered(question, await services.proxy.documents.answer(proxy, question, Trace(), revalidate=revalidate))


def _questions(subdir: str, document: str) -> Sequence[DocumentRequest]:
    """What an upstream is asked for a document: for the records of the folder, which say what is shown, and for it."""
    if document == CHANNELDATA:
        return (channeldata_question(document),)
    if document == CURRENT:
        return repodata_question(subdir), repodata_question(subdir, document)
    if document == RUN_EXPORTS:
        return repodata_question(subdir), exports_question(subdir, document)
    return (repodata_question(subdir),)


def _hosted_stamp(reader: Reader, hosted: Sequence[Repository], reads: bool) -> tuple[Hashable, Hashable]:
    names = tuple((each.id, repositories.names_serial(reader, each.id)) for each in hosted)
    formats = {one.format for each in hosted for one in (each, origin_of(each))} if reads else ()
    read = tuple(serial_of_format(reader, each) for each in sorted(formats))
    return names, (read, *((each.id, repositories.content_serial(reader, each.id)) for each in hosted))
