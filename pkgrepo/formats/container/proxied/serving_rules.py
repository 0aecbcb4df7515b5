"""
The rules about what is served of images, hosted and of upstreams.

=============  =========================================================================================================
asked for      is served
=============  =========================================================================================================
a tag          what it points to if no rule refuses that, else what it pointed to last that is not refused; refused if
               there is nothing
a digest       unless a rule refuses the manifest: by its digest, by the digest of one that it lists, or by a tag that
               points to it; or if it has no tag and all indexes that list it are refused
a blob         unless a rule names its digest, or all manifests that refer to it are refused
=============  =========================================================================================================

The age of what comes from an upstream is counted from when this server first saw a manifest: registries tell no other
time, and what an old manifest refers to is as old as that. Nothing is known of a blob that no kept manifest refers to.
Signatures, attestations and SBOMs have no age: they are made for images that are old already, and no program runs them.
The time at which an image says that it was created is its author's, and is not used.

Labels are those of all platforms of an index: if one of them is refused, so is the index.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import NotFound
from pkgrepo.formats.container.names import find_digest, is_digest_like
from pkgrepo.formats.container.proxied.labels import ImageLabels
from pkgrepo.formats.container.proxied.manifests import UpstreamManifests
from pkgrepo.formats.container.target import Target
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.resolving.resolver import Resolver
from pkgrepo.proxy.resolving.rules import note_hidden
from pkgrepo.proxy.rule_matches import RuleMatches
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.policy.conditions import CACHED, HOSTED, Facts
from pkgrepo.repositories.policy.facts import facts_of_image
from pkgrepo.repositories.policy.refusals import RuleRefused, refusal
from pkgrepo.repositories.policy.rules import SERVED, PackageRules, Verdict
from pkgrepo.storage.catalog.images.manifests import find_tagged
from pkgrepo.storage.catalog.images.relations import Relations, find_relations, former_digests

MOST_FORMER = 200  # digests of a tag that are tried in place of a refused one
MOST_LABELLED = 10  # of these, whose labels are read for that
_LEVELS = 4  # of indexes in indexes


@frozen
class Chosen:
    """
    The digest that is served instead of that of a tag, None for no other; and until when (Unix s; 0 for ever).

    ``seen_ms`` is when the manifest was first seen, if a rule asked for it. ``counted``: a rule counts each request.
    """

    digest: str | None = None
    ends_s: int = 0
    seen_ms: int | None = None
    counted: bool = False


@frozen
class HiddenTags:
    """
    Tags that lists do not name, and until when that holds (Unix s; 0 for ever).

    It is not ``settled`` if a request for a manifest may show that a rule hides it, without any other change.
    They were ``judged`` if there are rules about the image.
    """

    tags: frozenset[str] = frozenset()
    ends_s: int = 0
    settled: bool = True
    judged: bool = False


NOTHING_HIDDEN = HiddenTags()


class ImageRules:
    """Checks what repositories serve of images."""

    def __init__(
        self,
        *,
        catalog: ICatalog,
        clock: Clock,
        manifests: UpstreamManifests,
        labels: ImageLabels,
        resolver: Resolver,
        matches: RuleMatches,
    ) -> None:
        self._catalog = catalog
        self._clock = clock
        self._manifests = manifests
        self._labels = labels
        self._resolver = resolver
        self._matches = matches

    async def choose(self, target: Target, reference: str, trace: Trace, *, counted: bool = True) -> Chosen:
        """
        What is served for a tag or digest that is kept. Unless it is ``counted``, no client has asked for it.

        :raises RuleRefused: nothing is; :raises UpstreamFailed: what is, is not kept and cannot be had
        """
        repository, image = target.repository, target.image
        flat = self._flat(target)
        rules = None if flat.policy is None else flat.policy.of(image)
        if rules is None:
            return Chosen()
        by_digest = is_digest_like(reference)
        name = f"{image}@{reference}" if by_digest else f"{image}:{reference}"
        judge = _Judge(rules, repository, image, self._clock.now_ms())
        verdict, age_ms, digest = await self._catalog.look(judge.of_reference, reference)
        if digest and "labels" in rules.needs:
            await self._labels.ensure(target, digest, rules)
            verdict, age_ms, digest = await self._catalog.look(judge.of_reference, reference)
        if verdict.served:
            if verdict.warned and counted:
                self._matches.add(repository, image, verdict)
            return Chosen(seen_ms=age_ms, counted=bool(verdict.warned))
        note_hidden(trace, repository, {digest or reference: (verdict, age_ms)}, what=name, digest=digest)
        if counted:
            self._matches.add(repository, image, verdict)
        older, older_ms = None, None
        if not by_digest and not judge.names(reference, age_ms):
            older, older_ms = await self._find_former(target, judge, reference, digest, trace)
        if older is None:
            raise refusal(name, verdict, target.shown, repository)
        ends_s = 0 if verdict.opens_ms is None else verdict.opens_ms // 1000 + 1
        return Chosen(older, ends_s, older_ms)

    async def _find_former(
        self, target: Target, judge: _Judge, tag: str, digest: str, trace: Trace
    ) -> tuple[str | None, int | None]:
        """The digest that is served for a tag instead of a refused one, and since when it is known; None for none."""
        for _ in range(MOST_LABELLED):
            older, older_ms = await self._catalog.look(judge.find_former, tag, digest)
            if older is None:
                break
            if target.repository.type is RepositoryType.PROXY:
                try:
                    await self._manifests.ensure(target, older, trace)
                except NotFound:  # it was evicted, and is not at the upstream any more
                    break
            if "labels" not in judge.rules.needs:
                return older, older_ms
            await self._labels.ensure(target, older, judge.rules)
            if (await self._catalog.look(judge.of_reference, older))[0].served:
                return older, older_ms
        return None, None

    async def hidden_tags(self, target: Target, tags: Sequence[str]) -> HiddenTags:
        """Those of some tags that are not served, for lists of them."""
        flat = self._flat(target)
        rules = None if flat.policy is None else flat.policy.of(target.image)
        if rules is None or not tags:
            return NOTHING_HIDDEN
        now_ms = self._clock.now_ms()
        judge = _Judge(rules, target.repository, target.image, now_ms)
        hidden: Mapping[str, int | None] = await self._catalog.scan(judge.hidden_tags, tags)
        ends = [each // 1000 + 1 for each in hidden.values() if each is not None]
        # Labels are noted when a manifest is asked for, which changes no image.
        return HiddenTags(frozenset(hidden), min(ends, default=0), settled="labels" not in rules.needs, judged=True)

    async def check_blob(self, target: Target, digest: str) -> None:
        """:raises RuleRefused: a rule names the blob, or refuses all manifests that refer to it"""
        repository, image = target.repository, target.image
        flat = self._flat(target)
        rules = None if flat.policy is None else flat.policy.of(image)
        if rules is None:
            return
        judge = _Judge(rules, repository, image, self._clock.now_ms())
        if "labels" in rules.needs:
            await self._labels.ensure(target, digest, rules)
        verdict: Verdict = await self._catalog.look(judge.of_blob, digest)
        if not verdict.served:
            self._matches.add(repository, image, verdict)
            raise refusal(f"{image}@{digest}", verdict, target.shown, repository)

    async def refuses_blob(self, target: Target, digest: str) -> bool:
        """Whether a rule refuses a blob."""
        try:
            await self.check_blob(target, digest)
        except RuleRefused:
            return True
        return False

    def _flat(self, target: Target) -> FlatMember:
        shown, repository = target.shown, target.repository
        around = target.virtual if target.terms is None and target.virtual is not None else shown
        try:
            return self._resolver.flat_member(around, repository)
        except KeyError:  # the configuration has just changed
            return self._resolver.flat_member(repository, repository)


@frozen(eq=False)
class _Judge:
    """The rules about an image; its methods are queries."""

    rules: PackageRules
    repository: Repository
    image: str
    now_ms: int

    def of_reference(self, r: Reader, reference: str) -> tuple[Verdict, int | None, str]:
        """The verdict on a tag or digest, since when it is known, and its digest; empty if it is not kept."""
        if is_digest_like(reference):
            digest = str(find_digest(reference) or reference)
            found = find_relations(r, self.repository.id, self.image, digest)
            return self.of_manifest(r, found), found.age.seen_ms, digest
        tagged = find_tagged(r, self.repository.storage_id, self.repository.id, self.image, reference)
        if tagged is None:
            facts = Facts(package=self.image, versions=(reference,), source=self._source, published_ms=0)
            return self.rules.decide(facts, self.now_ms), None, ""
        found = find_relations(r, self.repository.id, self.image, tagged.digest)
        named = evolve(found, tags=(reference, *(each for each in found.tags if each != reference)))
        return self.of_manifest(r, named), found.age.seen_ms, tagged.digest

    def find_former(self, r: Reader, tag: str, digest: str) -> tuple[str | None, int | None]:
        """The latest digest that a tag pointed to and no rule refuses, and since when it is known; or None."""
        for each in former_digests(r, self.repository.id, self.image, tag, MOST_FORMER):
            found = find_relations(r, self.repository.id, self.image, each)
            if each != digest and self.of_manifest(r, found).served:
                return each, found.age.seen_ms
        return None, None

    def hidden_tags(self, r: Reader, tags: Sequence[str]) -> dict[str, int | None]:
        """Those of some tags that are not served, with the time (ms) at which that ends by itself; None for never."""
        by_digest: dict[str, Verdict] = {}
        hidden: dict[str, int | None] = {}
        gil = GilReleaser()
        for tag in tags:
            tagged = find_tagged(r, self.repository.storage_id, self.repository.id, self.image, tag)
            digest = "" if tagged is None else tagged.digest
            verdict = by_digest.get(digest) if digest else None
            if verdict is None:
                verdict, _, _ = self.of_reference(r, tag)
                by_digest[digest] = verdict
            if not verdict.served and (
                self.names(tag, None) or not digest or self.find_former(r, tag, digest)[0] is None
            ):
                hidden[tag] = verdict.opens_ms
            gil.release_if_due()
        return hidden

    def names(self, tag: str, published_ms: int | None) -> bool:
        """Whether a rule refuses a tag by its name, so that no other manifest stands in for it."""
        facts = Facts(package=self.image, versions=(tag,), source=self._source, published_ms=published_ms)
        naming = [each for each in self.rules.rules if each.placed.rule.match.versions]
        return not evolve(self.rules, rules=naming, rulings={}).decide(facts, self.now_ms).served

    def of_manifest(self, r: Reader, found: Relations, level: int = 0) -> Verdict:
        """The verdict on a manifest."""
        verdict = self.rules.decide(self._facts(found), self.now_ms)
        if not verdict.served or found.tags or not found.within or level >= _LEVELS:
            return verdict
        return self._of_all(r, found, level) or verdict

    def of_blob(self, r: Reader, digest: str) -> Verdict:
        """The verdict on a blob, by its digest, by its age and by all manifests that refer to it."""
        found = find_relations(r, self.repository.id, self.image, digest)
        if found.known:
            return self.of_manifest(r, found)
        facts = evolve(self._facts(found), versions=(digest,))
        rules = [each for each in self.rules.rules if found.within == () or "digests" in each.needs]
        verdict = evolve(self.rules, rules=rules).decide(facts, self.now_ms)
        return (self._of_all(r, found, 0) or SERVED) if verdict.served else verdict

    def _of_all(self, r: Reader, found: Relations, level: int) -> Verdict | None:
        """The verdict on the manifests that refer to something, if all of them are refused; else None."""
        refused: Verdict | None = None
        for each in found.within:
            verdict = self.of_manifest(r, find_relations(r, self.repository.id, self.image, each), level + 1)
            if verdict.served:
                return None
            refused = refused or verdict
        return refused

    def _facts(self, found: Relations) -> Facts:
        return facts_of_image(self.repository, self.image, found)

    @property
    def _source(self) -> str:
        return HOSTED if self.repository.type is RepositoryType.HOSTED else CACHED
