"""
How many versions a rule is about now: of what is stored, and of what kept documents of upstreams list.

No upstream is asked. The rule is a block, or has no conditions beside names, versions, digests and sources.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from attrs import evolve, frozen

from pkgrepo.concurrency.gil import GilReleaser
from pkgrepo.errors import BlobMissing, Invalid, NotFound
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.parts.file import PartsFile
from pkgrepo.proxy.parts.layout import PartsDamaged
from pkgrepo.proxy.resolving.resolver import Resolver
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.repositories.policy.conditions import INSIDE, SERVER, CompiledRule, Placed
from pkgrepo.repositories.policy.facts import facts_of_image, known_contents, order_of
from pkgrepo.repositories.policy.judge import Judge
from pkgrepo.repositories.policy.rules import PackageRules
from pkgrepo.repositories.policy.schema import PolicyRule
from pkgrepo.repositories.version_ranges import WILD
from pkgrepo.storage.catalog.cached_units import cached_packages
from pkgrepo.storage.catalog.images.relations import find_relations
from pkgrepo.storage.catalog.images.retained import manifest_ages
from pkgrepo.storage.catalog.packages import files, packages

MOST_PACKAGES: Final = 1000  # of which the versions are counted
MOST_NAMES: Final = 200_000  # that are compared with patterns
_PAGE: Final = 1000


@frozen(kw_only=True)
class Reach:
    """
    The numbers of versions, or manifests of images.

    ``known`` counts versions in kept documents of upstreams, None if no repository has one that can be asked. It is not
    ``whole`` if there are more packages than are looked at.
    """

    stored: int = 0
    known: int | None = None
    whole: bool = True


@frozen(eq=False)
class RuleReach:
    """Counts what rules are about in ``repositories``; the formats are by name."""

    catalog: ICatalog
    formats: Mapping[str, StoredFormat]
    resolver: Resolver
    now_ms: int

    async def count(self, rule: PolicyRule, repositories: Sequence[Repository]) -> Reach:
        """What a rule is about in some repositories; virtual ones have what their members have."""
        leaves: dict[int, Repository] = {}
        for each in repositories:
            virtual = each.type is RepositoryType.VIRTUAL
            leaves |= {one.id: one for one in (self.resolver.flat_members(each) if virtual else [each])}
        stored, known, left = 0, list[int](), MOST_PACKAGES
        whole = True
        for repository in leaves.values():
            format_ = self.formats[repository.format]
            compiled = CompiledRule(Placed(rule, SERVER), order_of(format_))
            keys, all_names = await self.catalog.scan(_packages_of, format_, compiled, repository)
            whole = whole and all_names and len(keys) <= left
            keys, left = keys[:left], max(0, left - len(keys))
            stored += await self.catalog.scan(self._count_stored, compiled, repository, keys)
            listed = repository.type is RepositoryType.PROXY and format_.images is None  # images have no such documents
            for key in keys if listed else ():
                found = await self._count_known(compiled, repository, key)
                known += [] if found is None else [found]
        return Reach(stored=stored, known=sum(known) if known else None, whole=whole)

    def _count_stored(self, r: Reader, rule: CompiledRule, repository: Repository, keys: Collection[str]) -> int:
        count, gil = 0, GilReleaser()
        for key in keys:
            package = packages.find_package(r, repository.id, key)
            if package is not None:
                count += sum(self._stored_matches(r, rule, repository, package.id, key))
            gil.release_if_due()
        return count

    def _stored_matches(
        self, r: Reader, rule: CompiledRule, repository: Repository, package_id: int, key: str
    ) -> Iterator[bool]:
        """Whether the rule is about each version of a package that is stored, or about one of its files."""
        format_ = self.formats[repository.format]
        if format_.images is not None:
            for digest in manifest_ages(r, package_id):
                found = facts_of_image(repository, key, find_relations(r, repository.id, key, digest))
                yield rule.matches(found, self.now_ms).met
            return
        judge = self._judge(rule, repository, key)
        judge = evolve(judge, facts=known_contents(r, format_, key, rule.needs))
        for stored in judge.stored(r, package_id):
            every = [facts for _, facts in stored.files] or [stored.facts]
            yield any(rule.matches(facts, self.now_ms).met for facts in every)

    async def _count_known(self, rule: CompiledRule, repository: Repository, key: str) -> int | None:
        judge = self._judge(rule, repository, key)

        def count(parts: PartsFile) -> int:
            about: set[str] = set()
            for entry in parts.entries((), b""):
                if rule.matches(judge.facts_of_entry(entry, ""), self.now_ms).met:
                    about.add(entry.version)
            return len(about)

        with suppress(NotFound, BlobMissing, PartsDamaged):
            return await self.resolver.read_kept(repository, key, count)
        return None

    def _judge(self, rule: CompiledRule, repository: Repository, key: str) -> Judge:
        rules = PackageRules(key, [rule], {}, rule.needs, "")
        return Judge(self.formats[repository.format], rules, repository, self.now_ms, own=rule.needs & INSIDE)


def _packages_of(
    r: Reader, format_: StoredFormat, rule: CompiledRule, repository: Repository
) -> tuple[list[str], bool]:
    """The keys of the packages of a repository that a rule may be about, and whether all names were compared."""
    names = rule.placed.rule.match.packages
    if names and not any(WILD & {*name} for name in names):
        found: dict[str, None] = {}
        for name in names:
            for spelling in (name, name.lower()):
                with suppress(Invalid):
                    found[format_.package_key(spelling)] = None
        return list(found), True
    digests = [each.lower().partition(":") for each in rule.placed.rule.match.digests]
    if digests and all(algorithm == "sha256" for algorithm, _, _ in digests):
        found_keys = files.packages_with(r, repository.id, [each for _, _, each in digests if len(each) == 64])
        return [each for each in found_keys if rule.takes_package(each)], True
    keys, after, compared = list[str](), "", 0
    gil = GilReleaser()
    while page := cached_packages(r, repository.id, after=after, limit=_PAGE):
        keys += [each for each in page if each and rule.takes_package(each)]
        compared += len(page)
        after = page[-1]
        if compared >= MOST_NAMES or len(keys) > MOST_PACKAGES:
            return keys, False
        gil.release_if_due()
    return keys, True
