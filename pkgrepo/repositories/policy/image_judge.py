"""The decision about the manifests, tags and blobs of an image, which serving, explanations and rehearsals ask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import evolve, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.storage.catalog.images.manifests import find_tagged
from pkgrepo.storage.catalog.images.relations import Relations, find_relations, former_digests

from .conditions import CACHED, HOSTED, Facts
from .facts import facts_of_image
from .rules import SERVED, PackageRules, Verdict
from .schema import Datum

MOST_HOLDERS: Final = 8  # manifests that refer to a blob, which are looked into for it
MOST_FORMER: Final = 200  # digests of a tag that are tried in place of a refused one
_LEVELS: Final = 4  # of indexes in indexes
_OF_MANIFESTS: Final[frozenset[Datum]] = frozenset({"labels", "contents"})  # what no blob has


@frozen(eq=False)
class ImageJudge:
    """
    The rules about an image; its methods are queries.

    With ``listing`` labels and contents that were not read yet decide nothing: they are when the image is asked for.
    """

    rules: PackageRules
    repository: Repository
    image: str
    now_ms: int
    listing: bool = False

    def of_reference(self, r: Reader, reference: str) -> tuple[Verdict, int | None, str]:
        """The verdict on a tag or digest, since when it is known, and its digest; empty if it is not kept."""
        if ":" in reference:
            digest = reference
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
            if each != digest and self._for_lists.of_manifest(r, found).served:
                return each, found.age.seen_ms
        return None, None

    def hidden_tags(self, r: Reader, tags: Sequence[str]) -> dict[str, int | None]:
        """The tags, of some, that are not served, with the time (ms) at which that ends by itself; None for never."""
        by_digest: dict[str, Verdict] = {}
        hidden: dict[str, int | None] = {}
        gil = GilReleaser()
        for tag in tags:
            tagged = find_tagged(r, self.repository.storage_id, self.repository.id, self.image, tag)
            digest = "" if tagged is None else tagged.digest
            verdict = by_digest.get(digest) if digest else None
            if verdict is None:
                verdict, _, _ = self._for_lists.of_reference(r, tag)
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
        if not verdict.served or found.tags or not found.within:
            return verdict
        if level >= _LEVELS:  # whether what it is part of is served is not known
            refusing = next((each for each in self.rules.rules if each.refuses), None)
            return verdict if refusing is None else Verdict(by=refusing.placed, missing="what it is part of")
        return self._of_all(r, found, level) or verdict

    def of_blob(self, r: Reader, digest: str) -> Verdict:
        """The verdict on a blob, by its digest, by its age and by all manifests that refer to it."""
        found = find_relations(r, self.repository.id, self.image, digest)
        if found.known:
            return self.of_manifest(r, found)
        facts = evolve(self._facts(found), versions=(digest,))
        hosted = self.repository.type is RepositoryType.HOSTED  # it may be part of a push, and has none of that itself
        rules = [
            each
            for each in self.rules.rules
            if "digests" in each.needs or (found.within == () and not (hosted and each.needs & _OF_MANIFESTS))
        ]
        verdict = evolve(self.rules, rules=rules).decide(facts, self.now_ms)
        return (self._of_all(r, found, 0) or SERVED) if verdict.served else verdict

    def unread(self, r: Reader, digest: str) -> Sequence[str]:
        """
        The digests of the manifests that are to be looked into before a manifest, or a blob, is served.

        What an index lists is looked into when it is asked for itself. Of a blob these are the manifests that refer to
        it, ``MOST_HOLDERS`` at most; none if one of them was looked into, and is served.
        """
        found = find_relations(r, self.repository.id, self.image, digest)
        if found.known:
            return [digest] if self._lacks(found) else []
        unread = []
        for each in found.within:
            its = find_relations(r, self.repository.id, self.image, each)
            if self._lacks(its):
                unread.append(each)
            elif self.of_manifest(r, its).served:
                return []
        return unread[:MOST_HOLDERS]

    def _lacks(self, found: Relations) -> bool:
        """Whether a manifest, which is no index, is to be looked into: other conditions do not decide already."""
        lacks = not found.lists and None in found.insides
        return lacks and "contents" in self.rules.may_ask(self._facts(found), self.now_ms)

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
        return facts_of_image(self.repository, self.image, found, listing=self.listing)

    @property
    def _for_lists(self) -> ImageJudge:
        return evolve(self, listing=True)

    @property
    def _source(self) -> str:
        return HOSTED if self.repository.type is RepositoryType.HOSTED else CACHED
