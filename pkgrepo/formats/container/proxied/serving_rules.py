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

Labels are those of all platforms of an index: if one of them is refused, so is the index. What images have inside is
read of the manifest that is asked for: an index is refused if all of its platforms were looked into, and all are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import frozen

from pkgrepo.errors import NotFound
from pkgrepo.formats.container.names import is_digest_like
from pkgrepo.formats.container.proxied.contents import ImageContents
from pkgrepo.formats.container.proxied.labels import ImageLabels
from pkgrepo.formats.container.proxied.manifests import UpstreamManifests
from pkgrepo.formats.container.target import Target
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import RepositoryType
from pkgrepo.proxy.resolving.flat_members import FlatMember
from pkgrepo.proxy.resolving.resolver import Resolver
from pkgrepo.proxy.resolving.rules import note_hidden
from pkgrepo.proxy.rule_matches import RuleMatches
from pkgrepo.proxy.trace import Trace
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.policy.image_judge import ImageJudge
from pkgrepo.repositories.policy.refusals import RuleRefused, refusal
from pkgrepo.repositories.policy.rules import Verdict
from pkgrepo.repositories.policy.schema import Datum

MOST_READ = 10  # former digests of a tag whose labels and contents are read for one that is not refused
READ_LATE: Final[frozenset[Datum]] = frozenset({"labels", "contents"})  # when an image is asked for


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
        contents: ImageContents,
        resolver: Resolver,
        matches: RuleMatches,
    ) -> None:
        self._catalog = catalog
        self._clock = clock
        self._manifests = manifests
        self._labels = labels
        self._contents = contents
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
        judge = ImageJudge(rules, repository, image, self._clock.now_ms())
        verdict, age_ms, digest = await self._catalog.look(judge.of_reference, reference)
        if digest and rules.needs & READ_LATE:
            await self._read(target, judge, digest)
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
        self, target: Target, judge: ImageJudge, tag: str, digest: str, trace: Trace
    ) -> tuple[str | None, int | None]:
        """The digest that is served for a tag instead of a refused one, and since when it is known; None for none."""
        for _ in range(MOST_READ):
            older, older_ms = await self._catalog.look(judge.find_former, tag, digest)
            if older is None:
                break
            if target.repository.type is RepositoryType.PROXY:
                try:
                    await self._manifests.ensure(target, older, trace)
                except NotFound:  # it was evicted, and is not at the upstream any more
                    break
            if not judge.rules.needs & READ_LATE:
                return older, older_ms
            await self._read(target, judge, older)
            if (await self._catalog.look(judge.of_reference, older))[0].served:
                return older, older_ms
        return None, None

    async def hidden_tags(self, target: Target, tags: Sequence[str]) -> HiddenTags:
        """The tags, of some, that are not served, for lists of tags."""
        flat = self._flat(target)
        rules = None if flat.policy is None else flat.policy.of(target.image)
        if rules is None or not tags:
            return NOTHING_HIDDEN
        now_ms = self._clock.now_ms()
        judge = ImageJudge(rules, target.repository, target.image, now_ms)
        hidden: Mapping[str, int | None] = await self._catalog.scan(judge.hidden_tags, tags)
        ends = [each // 1000 + 1 for each in hidden.values() if each is not None]
        # These are noted when a manifest is asked for, which changes no image.
        return HiddenTags(frozenset(hidden), min(ends, default=0), settled=not rules.needs & READ_LATE, judged=True)

    async def check_blob(self, target: Target, digest: str) -> None:
        """:raises RuleRefused: a rule names the blob, or refuses all manifests that refer to it"""
        repository, image = target.repository, target.image
        flat = self._flat(target)
        rules = None if flat.policy is None else flat.policy.of(image)
        if rules is None:
            return
        judge = ImageJudge(rules, repository, image, self._clock.now_ms())
        await self._read(target, judge, digest)
        verdict: Verdict = await self._catalog.look(judge.of_blob, digest)
        if not verdict.served:
            self._matches.add(repository, image, verdict)
            raise refusal(f"{image}@{digest}", verdict, target.shown, repository)

    async def _read(self, target: Target, judge: ImageJudge, digest: str) -> None:
        """
        Read what rules ask of a manifest or blob, and of the manifests around it.

        :raises UpstreamFailed, NotFound: it cannot be had, and a rule may refuse the manifest by it
        """
        if "labels" in judge.rules.needs:
            await self._labels.ensure(target, digest, judge.rules)
        if "contents" in judge.rules.needs:
            await self._contents.ensure(target, digest, judge)

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
