"""The facts about what is stored, as rules ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec
from attrs import evolve

from pkgrepo.errors import Invalid
from pkgrepo.interfaces import Reader
from pkgrepo.model import File, Repository, RepositoryType, Version
from pkgrepo.model.advisories import Advisory
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.storage.catalog import advisories
from pkgrepo.storage.catalog.images.relations import Relations
from pkgrepo.storage.catalog.packages import files, versions
from pkgrepo.storage.catalog.rows import to_ms

from .conditions import CACHED, HOSTED, Facts
from .rules import PackageRules
from .schema import Order, PolicyRule, ServingPolicy, check_rules, find_faults

NAMED_DIGESTS: Final = ("sha256", "sha512", "sha1", "md5")

UNREADABLE: Final = "pkgrepo:unreadable"  # in the metadata of a version of which the file has some that cannot be read


def order_of(format_: StoredFormat) -> Order:
    """What rules need of a format."""
    if format_.images is not None:
        return Order.of(format_.images.tag_sort, format_.package_key, tags=True)
    return Order.of(None if format_.versions is None else format_.versions.sort, format_.package_key)


def check_own_rules(
    format_: StoredFormat, settings: Mapping[str, Any], stored: Mapping[str, Any] = MappingProxyType({})
) -> None:
    """
    Check the rules in the settings of a repository that were not there in its ``stored`` ones.

    :raises Invalid: they cannot be meant; with the JSON pointer
    """
    check_rules(_rules_in(settings), [order_of(format_)], "/policy/rules", _rules_in(stored))


def own_faults(format_: StoredFormat, repository: Repository) -> list[str]:
    """A sentence about each rule of a repository that would be refused now."""
    return find_faults(_rules_in(repository.settings), [order_of(format_)])


def _rules_in(settings: Mapping[str, Any]) -> list[PolicyRule]:
    return msgspec.convert({"rules": (settings.get("policy") or {}).get("rules") or []}, ServingPolicy).rules


def digests_of(digests: Mapping[str, str], sha256: str = "") -> frozenset[str]:
    """Digests by algorithm (hex) as rules name them."""
    found = {f"{name}:{value.lower()}" for name, value in digests.items() if name in NAMED_DIGESTS}
    return frozenset({*found, f"sha256:{sha256}"} if sha256 else found)


def facts_of_version(
    format_: StoredFormat, repository: Repository, package: str, version: Version, stored: Iterable[File]
) -> Facts:
    """What is known of a version that is stored, with its files, without advisories."""
    kept = list(stored)
    origins = [each.origin for each in kept]
    cached = repository.type is RepositoryType.PROXY
    published: int | None = to_ms(version.published_at)
    if cached:  # the version was published when the upstream says so, not when it was kept
        published = min((each.published_ms for each in origins if each and each.published_ms is not None), default=None)
    return Facts(
        package=package,
        versions=(version.text,),
        published_ms=published,
        source=CACHED if cached else HOSTED,
        route=next((each.route for each in origins if each is not None), ""),
        digests=frozenset[str]().union(*(digests_of(each.digests, each.sha256) for each in kept)),
        unreadable=UNREADABLE in version.meta,
        **declared(format_, version.meta, [each.path for each in kept]),
    )


def facts_of_image(repository: Repository, image: str, found: Relations) -> Facts:
    """What is known of a manifest, or of a blob of an image."""
    return Facts(
        package=image,
        versions=(*found.tags, found.digest),
        published_ms=0 if found.age.evidence else found.age.seen_ms,
        source=CACHED if repository.type is RepositoryType.PROXY else HOSTED,
        route=found.route,
        digests=frozenset({found.digest, *found.lists}),
        labels=found.labels,
    )


def declared(format_: StoredFormat, meta: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """The licences, and whether a program runs at the installation, as the metadata of a version tell."""
    runs = format_.runs_at_install
    return {"licences": licences_of(meta) or None, "install_scripts": None if runs is None else runs(meta, paths)}


def licences_of(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """The licences that the metadata of a version declare, as they are written."""
    found: list[str] = []
    for key in ("license_expression", "license", "licenses"):
        value = meta.get(key)
        for each in value if isinstance(value, list) else [value]:
            name = each.get("type") or each.get("name") if isinstance(each, dict) else each
            if isinstance(name, str) and name.strip():
                found.append(name.strip())
    classifiers = [each for each in meta.get("classifiers") or () if isinstance(each, str)]
    found += [each.rpartition("::")[2].strip() for each in classifiers if each.startswith("License ::")]
    return tuple(dict.fromkeys(found))


def with_advisories(facts: Facts, format_: StoredFormat, known: Sequence[Advisory] | None, *, complete: bool) -> Facts:
    """
    The facts with the advisories that affect a version, out of those on its package.

    Unless what is known is ``complete``, that nothing is found is not known, either.
    """
    if known is None or format_.versions is None:
        return facts
    try:
        sorts = [format_.versions.sort(each) for each in facts.versions]
    except Invalid:
        return facts
    found = [each for each in known if each.affects_any(sorts)]
    return evolve(facts, advisories=found) if found or complete else facts


def advisories_on(r: Reader, format_: StoredFormat, package: str) -> Sequence[Advisory] | None:
    """The advisories on a package; None for a format that databases of vulnerabilities have no records of."""
    if format_.ecosystem is None:
        return None
    return advisories.advisories_of(r, format_.ecosystem.name, [package]).get(package, ())


def stored_facts(
    r: Reader,
    format_: StoredFormat,
    repository: Repository,
    package: str,
    package_id: int,
    rules: PackageRules,
    *,
    complete: bool,
) -> list[tuple[Version, Sequence[File], Facts]]:
    """
    All versions of a package that is stored, in their order, with their files and what is known of them.

    Advisories are read only if ``rules`` ask for them; ``complete`` tells whether all of them are known.
    """
    by_version: dict[int, list[File]] = {}
    for each in files.files_of_package(r, package_id):
        if each.version_id is not None:
            by_version.setdefault(each.version_id, []).append(each)
    known = advisories_on(r, format_, package) if "advisories" in rules.needs else None
    found: list[tuple[Version, Sequence[File], Facts]] = []
    for version in versions.list_versions(r, package_id):
        stored = by_version.get(version.id, ())
        facts = facts_of_version(format_, repository, package, version, stored)
        found.append((version, stored, with_advisories(facts, format_, known, complete=complete)))
    return found
