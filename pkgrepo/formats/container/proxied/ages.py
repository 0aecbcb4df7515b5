"""
The minimum release age of images, counted from when this server first saw a manifest: registries tell no other time.

=============  =========================================================================================================
asked for      is served
=============  =========================================================================================================
a tag          what it points to if that is old enough, else what it pointed to last that is; refused if nothing is
a digest       if it is old enough; what an old manifest refers to is as old as that
a blob         the same; refused if no manifest that is kept refers to it
=============  =========================================================================================================

Signatures, attestations and SBOMs are served at once: they are made for images that are old already, and no program
runs them. The time at which an image says that it was created is its author's, and is not used.
"""

from __future__ import annotations

from attrs import frozen

from pkgrepo.errors import NotFound
from pkgrepo.formats.container.names import find_digest, is_digest_like
from pkgrepo.formats.container.proxied.holders import Holder
from pkgrepo.formats.container.proxied.manifests import UpstreamManifests
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository
from pkgrepo.proxy.resolving.rules import find_age_rule
from pkgrepo.proxy.trace import HiddenVersion, StepKind, Trace
from pkgrepo.repositories.clock import Clock
from pkgrepo.storage.catalog.images.first_sights import Age, find_age, find_old, next_sight
from pkgrepo.storage.catalog.images.manifests import find_tagged


@frozen
class Chosen:
    """
    The digest that is served instead of that of a tag, None for no other; and until when (Unix s; 0 for ever).

    ``seen_ms`` is when the manifest was first seen, if a rule asked for it.
    """

    digest: str | None = None
    ends_s: int = 0
    seen_ms: int | None = None


class ReleaseAges:
    """Checks what the proxies behind a repository serve."""

    def __init__(self, *, catalog: ICatalog, clock: Clock, manifests: UpstreamManifests) -> None:
        self._catalog = catalog
        self._clock = clock
        self._manifests = manifests

    async def choose(self, holder: Holder, reference: str, trace: Trace) -> Chosen:
        """
        What is served for a tag or digest that is kept.

        :raises TooYoung: nothing is old enough; :raises UpstreamFailed: what is, is not kept and cannot be had
        """
        target, rule = holder.target, find_age_rule(holder.member, holder.target.image)
        if rule is None:
            return Chosen()
        repository, image, now_ms = target.repository, target.image, self._clock.now_ms()
        by_digest = is_digest_like(reference)
        name = f"{image}@{reference}" if by_digest else f"{image}:{reference}"
        digest, age = await self._catalog.look(_read_age, repository, image, reference)
        if age.evidence or not rule.hides(age.seen_ms, now_ms):
            return Chosen(seen_ms=age.seen_ms)
        hidden = [HiddenVersion(digest, age.seen_ms, rule.opening_ms(age.seen_ms))]
        path, owner = repository.path, rule.repository
        trace.add(StepKind.HIDDEN, repository=path, rule=owner, days=rule.days, hidden=hidden, what=name, digest=digest)
        before_ms = now_ms - rule.age_ms
        older = None
        if not by_digest:
            older, next_ms = await self._catalog.look(_read_older, repository.id, image, reference, before_ms)
        if older is None:
            raise rule.refusal(name, age.seen_ms, target.shown)
        try:
            await self._manifests.ensure(target, older, trace)
        except NotFound:  # it was evicted, and is not at the upstream any more
            raise rule.refusal(name, age.seen_ms, target.shown) from None
        found: Age = await self._catalog.look(find_age, repository.id, image, older)
        return Chosen(older, 0 if next_ms is None else (next_ms + rule.age_ms) // 1000 + 1, found.seen_ms)

    async def check_blob(self, holder: Holder, digest: str) -> None:
        """:raises TooYoung: no manifest that is old enough refers to the blob"""
        target, rule = holder.target, find_age_rule(holder.member, holder.target.image)
        if rule is None:
            return
        age: Age = await self._catalog.look(find_age, target.repository.id, target.image, digest)
        if not age.evidence and rule.hides(age.seen_ms, self._clock.now_ms()):
            raise rule.refusal(f"{target.image}@{digest}", age.seen_ms, target.shown)


def _read_age(r: Reader, repository: Repository, image: str, reference: str) -> tuple[str, Age]:
    """The digest of a manifest that is kept, as it is written there, and its age."""
    digest = find_digest(reference) if is_digest_like(reference) else None
    if digest is not None:
        return str(digest), find_age(r, repository.id, image, str(digest))
    found = find_tagged(r, repository.storage_id, repository.id, image, reference)
    return ("", Age(None)) if found is None else (found.digest, find_age(r, repository.id, image, found.digest))


def _read_older(r: Reader, repository_id: int, image: str, tag: str, before_ms: int) -> tuple[str | None, int | None]:
    """The latest digest of a tag that was seen before a time, and when the next one was seen."""
    return find_old(r, repository_id, image, tag, before_ms), next_sight(r, repository_id, image, tag, before_ms)
