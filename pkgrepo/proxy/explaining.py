"""Explains what a repository serves under a name: the resolver decides as for a client, and its steps are returned."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Any, Final

from attrs import define, evolve, frozen

from pkgrepo.concurrency.pools import Pools
from pkgrepo.errors import NotFound, PkgrepoError, RepositoryInactive, UpstreamDenied
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository, Version
from pkgrepo.proxy.caching.states import FAILURES
from pkgrepo.proxy.format import Latest, MemberParts, Proxied
from pkgrepo.proxy.resolving.serving import FoundFile
from pkgrepo.proxy.trace import NameReserved, NameRetired
from pkgrepo.repositories.clock import Clock, from_ms
from pkgrepo.repositories.past import package_past
from pkgrepo.repositories.policy.refusals import PublishedLater, RuleRefused, TooYoung, refusal
from pkgrepo.repositories.policy.rules import SERVED, Verdict
from pkgrepo.repositories.policy.trust import Trust
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.upstream_documents import UpstreamDocument

from .parts.file import PartsFile
from .parts.values import Entry
from .resolving.package_files import PackageFiles
from .resolving.resolver import Resolver
from .resolving.serving import HostedMember, Member, Members, UpstreamMember
from .trace import Step, StepKind, Trace


class Outcome(StrEnum):
    """What a client gets. The values are in the API."""

    SERVED = "served"
    NOT_FOUND = "not_found"
    RESERVED = "reserved"  # as not_found: the name is reserved
    RETIRED = "retired"  # as not_found: a hosted repository had it
    TOO_YOUNG = "too_young"
    LATER = "later"  # as not_found: it was published after the time of the view
    BLOCKED = "blocked"  # a rule refuses it, or holds it in quarantine
    INACTIVE = "inactive"  # the members that have it are switched off
    DENIED = "denied"  # an upstream refuses it
    FAILED = "failed"  # an upstream failed, and there is nothing from before


class RoleKind(StrEnum):
    """What a member does with a version. The values are in the API."""

    SERVES = "serves"
    HIDES = "hides"  # a rule holds it back
    SHADOWED = "shadowed"  # an earlier member serves the version
    LACKS = "lacks"


OUTCOMES: Mapping[type[PkgrepoError], Outcome] = {
    NameReserved: Outcome.RESERVED,
    NameRetired: Outcome.RETIRED,
    NotFound: Outcome.NOT_FOUND,
    TooYoung: Outcome.TOO_YOUNG,
    PublishedLater: Outcome.LATER,
    RuleRefused: Outcome.BLOCKED,
    RepositoryInactive: Outcome.INACTIVE,
    UpstreamDenied: Outcome.DENIED,
    **dict.fromkeys(FAILURES, Outcome.FAILED),
}
MOST_NAMED: Final = 20  # versions in a sentence
UPSTREAM_PAST: Final = (
    "what the upstream had removed or yanked since, and what it tagged: that is as it says now, and versions to which "
    "it gives no date count from the time when they were first seen here"
)
REFUSALS: Final = tuple(OUTCOMES)


@frozen
class FoundVersion:
    """
    A version that a member has. Times are in milliseconds since the epoch.

    ``first_seen``: the upstream does not say when it was published, and this is when it was first seen. ``verdict`` is
    what rules say of it, and ``trust`` who published it, if they ask for that.
    """

    text: str
    repository: Repository
    published_ms: int | None
    first_seen: bool = False
    verdict: Verdict = SERVED
    trust: Trust | None = None

    @property
    def hidden(self) -> bool:
        """Whether a rule hides it."""
        return not self.verdict.served

    @property
    def opens_ms(self) -> int | None:
        """When it will be served; None: never, as things are."""
        return self.verdict.opens_ms


@frozen
class Serving:
    """
    A repository that serves the package, and what its upstream said; that is None for a hosted one.

    The upstream is asked again at ``fresh_until_ms``. With ``stale`` it failed when it was asked. With ``hides_all``
    rules hide all versions that it has.
    """

    repository: Repository
    document: UpstreamDocument | None = None
    fresh_until_ms: int | None = None
    stale: bool = False
    hides_all: bool = False


@frozen
class Platform:
    """An image in an index of several, for a platform such as linux/arm64; ``kept``: its manifest is stored."""

    name: str
    digest: str
    kept: bool


@frozen
class FoundManifest:
    """
    The manifest that clients get for ``reference``, a tag or digest of an image.

    ``seen_ms`` is when it was first seen here, if a rule about its age holds; ``platforms`` are those of an index.
    """

    reference: str
    repository: Repository
    digest: str
    media_type: str
    size: int
    seen_ms: int | None = None
    platforms: Sequence[Platform] = ()


@frozen
class Role:
    """What a repository that has the package does with the version that was asked about; ``why`` it is hidden."""

    repository: Repository
    kind: RoleKind
    why: str = ""


@frozen
class Explanation:
    """
    The steps and the result. ``why`` is the sentence that a client gets that is refused; ``roles`` are those of the
    repositories that have the package, for the version that was asked about.
    """

    steps: Sequence[Step] = ()
    outcome: Outcome = Outcome.SERVED
    why: str = ""
    serving: Sequence[Serving] = ()
    latest: Latest | None = None
    version: FoundVersion | None = None
    roles: Sequence[Role] = ()
    file: FoundFile | None = None
    manifest: FoundManifest | None = None

    def refused(self, error: PkgrepoError) -> Explanation:
        """The explanation for a client that gets an error of L{OUTCOMES}."""
        outcome = next(OUTCOMES[each] for each in type(error).__mro__ if each in OUTCOMES)
        return evolve(self, outcome=outcome, why=str(error))


@define(eq=False, kw_only=True)
class Explainer:
    """
    Explains packages of ``formats``, which are by name, as are their ``version_keys``.

    ``in_turn`` awaits work on the documents of a package of a view when it is its turn, but no upstream: it is given
    the repository, the work and the key of the package.
    """

    _catalog: ICatalog
    _clock: Clock
    _pools: Pools
    _resolver: Resolver
    _files: PackageFiles
    _formats: Mapping[str, Proxied]
    _version_keys: Mapping[str, Callable[[str], str]]
    _in_turn: Callable[..., Awaitable[Any]]

    async def explain(
        self, repository: Repository, key: str, *, version_key: str | None = None, revalidate: bool = False
    ) -> Explanation:
        """How a package is served, and one version of it; with ``revalidate`` see L{Resolver.state}."""
        trace, found = Trace(), Explanation()
        try:
            members = await self._resolver.members(repository, key, trace, revalidate=revalidate)
            format_ = self._formats[repository.format]
            found = evolve(found, serving=[_serving(each) for each in members.serving])
            if repository.view is not None:
                await self._note_unknown(trace, members, repository.view.at_ms, format_.package_of(key))
            join = partial(self._resolver.parts, members, key, format_.latest_form, trace)
            parts: Sequence[MemberParts] = await self._in_turn(repository, join, package=key)
            serving = [
                evolve(each, hides_all=bool(part.hidden) and not part.versions)
                for each, part in zip(found.serving, parts, strict=True)
            ]
            found = evolve(found, serving=serving)
            found = evolve(found, latest=await self._pools.cpu(format_.latest, key, parts))
            if version_key is not None:
                found = await self._with_version(repository, found, members, key, version_key)
        except REFUSALS as error:
            found = found.refused(error)
        return evolve(found, steps=trace.steps)

    async def explain_file(self, repository: Repository, key: str, path: str) -> Explanation:
        """How the file of a package at a path is served."""
        trace, found = Trace(), Explanation()
        try:
            for each in self._resolver.flat_members(repository):
                if await self._catalog.look(_is_of_another, each.id, key, path):
                    raise NotFound("file", path)  # the caller may not know of that package
            found = evolve(found, file=await self._files.find(repository, key, path, trace))
        except REFUSALS as error:
            found = found.refused(error)
        return evolve(found, steps=trace.steps)

    async def _note_unknown(self, trace: Trace, members: Members, at_ms: int, package: str) -> None:
        """Add what views of the past cannot show."""
        for each in members.serving:
            found = [UPSTREAM_PAST]
            if isinstance(each, HostedMember):
                found = await self._catalog.scan(_unknown_past, each.repository.id, package, at_ms)
            for why in found:
                trace.add(StepKind.UNKNOWN, repository=each.repository.path, why=why)

    async def _with_version(
        self, repository: Repository, found: Explanation, members: Members, key: str, version_key: str
    ) -> Explanation:
        """The version of the first member that shows it, else of the first that hides it."""
        hidden = shown = None
        roles = list[Role]()
        for member in members.serving:
            version = await self._find_version(member, key, version_key)
            kind, why = RoleKind.LACKS, ""
            if version is not None and version.hidden:
                hidden, kind = hidden or version, RoleKind.HIDES
                why = str(refusal(f"{key} {version.text}", version.verdict, repository, version.repository))
            elif version is not None:
                kind = RoleKind.SERVES if shown is None else RoleKind.SHADOWED
                shown = shown or version
            roles.append(Role(member.repository, kind, why))
        found = evolve(found, roles=roles)
        if shown is not None:
            return evolve(found, version=shown)
        if hidden is None:
            raise NotFound("version", version_key)
        error = refusal(f"{key} {hidden.text}", hidden.verdict, repository, hidden.repository)
        refused = evolve(found.refused(error), version=hidden)
        return evolve(refused, why="") if isinstance(error, TooYoung) else refused

    async def _find_version(self, member: Member, key: str, version_key: str) -> FoundVersion | None:
        repository = member.repository
        if isinstance(member, HostedMember):
            package = self._formats[repository.format].package_of(key)
            kept: Version | None = await self._catalog.look(_find_hosted, repository.id, package, version_key)
            if kept is None:
                return None
            verdict, trust = SERVED, None
            if member.judge is not None:
                verdict = await self._catalog.scan(member.judge.of_version, kept.package_id, kept.text)
                trust = await self._catalog.scan(member.judge.trust_of, kept.package_id, kept.text)
            published_ms = round(kept.published_at.timestamp() * 1000)
            return FoundVersion(kept.text, repository, published_ms, verdict=verdict, trust=trust)
        find = _find_entry(self._version_keys[repository.format], member.request.section, version_key)
        entry = await self._resolver.read(member, find)
        return None if entry is None else await self._version_of(member, entry)

    async def _version_of(self, member: UpstreamMember, entry: Entry) -> FoundVersion:
        verdict, trust = SERVED, None
        if member.judge is not None:
            judge = member.judge
            with suppress(NotFound, *FAILURES):  # documents list it until it is read
                judge = await self._files.judge_of(member, judge, entry)
            facts = judge.facts_of_entry(entry, member.held.document.route)
            verdict, trust = judge.decide(facts), facts.trust
        return FoundVersion(entry.version, member.repository, entry.published_ms, entry.first_seen, verdict, trust)


def _unknown_past(reader: Reader, repository_id: int, key: str, at_ms: int) -> list[str]:
    package = packages.find_package(reader, repository_id, key)
    if package is None:
        return []
    every = versions.list_versions(reader, package.id)
    present = {each.key: (each.state, each.reason) for each in every}
    past, found = package_past(reader, package.id, at_ms, present=present), list[str]()
    then = from_ms(at_ms)
    came = [each.text for each in every if each.key in past.unknown and each.published_at <= then]
    if past.removed:
        found.append(f"what was in versions that were removed since, as their bytes are gone: {_few(past.removed)}")
    if came:
        found.append(f"what tags and state these versions had, which came here later from elsewhere: {_few(came)}")
    return found


def _few(texts: Sequence[str]) -> str:
    return f"{', '.join(texts[:MOST_NAMED])}{f' and {len(texts) - MOST_NAMED} more' if len(texts) > MOST_NAMED else ''}"


def _serving(member: Member) -> Serving:
    if isinstance(member, HostedMember):
        return Serving(member.repository)
    return Serving(member.repository, member.held.document, member.expires_ms, member.held.stale)


def _is_of_another(reader: Reader, repository_id: int, key: str, path: str) -> bool:
    """Whether a repository keeps a file at this path which is not of this package."""
    file = files.find_file(reader, repository_id, path)
    package = None if file is None else packages.find_package(reader, repository_id, key)
    return file is not None and (package is None or package.id != file.package_id)


def _find_hosted(reader: Reader, repository_id: int, key: str, version_key: str) -> Version | None:
    package = packages.find_package(reader, repository_id, key)
    return None if package is None else versions.find_version(reader, package.id, version_key)


def _find_entry(key_of: Callable[[str], str], section: bytes, version_key: str) -> Callable[[PartsFile], Entry | None]:
    """A query for the oldest entry of a version, which may have several."""

    def find(parts: PartsFile) -> Entry | None:
        found = [each for each in parts.entries(None, section) if key_of(each.version) == version_key]
        return min(found, key=lambda each: (each.published_ms is None, each.published_ms or 0), default=None)

    return find
