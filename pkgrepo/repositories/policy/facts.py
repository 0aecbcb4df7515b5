"""The facts about what is stored, as rules ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
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
from pkgrepo.storage.catalog.file_facts import LOCKED, FileFacts, Known, facts_of_package, is_dependency_name
from pkgrepo.storage.catalog.images.relations import Relations
from pkgrepo.storage.catalog.rows import to_ms

from .conditions import CACHED, HOSTED, INSIDE, TRUST, Facts
from .schema import NAMED_DIGESTS, Datum, Order, PolicyRule, ServingPolicy, check_rules, find_faults, stamped

# What cannot be read is said so in the metadata of a version that has one description, and in the attributes of a file
# where each has its own, when it comes from an upstream: rules ask later, also when there is no upstream any more.
UNREADABLE: Final = "pkgrepo:unreadable"

# When a version was published (ms), in what a file says of it that says nothing else.
PUBLISHED: Final = "pkgrepo:published_ms"


NOTHING_TOLD: Final = FileFacts()


def order_of(format_: StoredFormat) -> Order:
    """What rules need of a format."""
    is_image = format_.images is not None
    has: dict[Datum, bool] = {
        "age": True,
        "digests": True,
        "licences": not is_image,
        "advisories": format_.ecosystem is not None,
        "install_scripts": format_.runs_at_install is not None,
        "contents": bool(format_.contents),
        "licences_inside": format_.inside is not None,
        "trust": format_.attests is not None,
        "labels": is_image,
        "differs": bool(format_.differs),
    }
    tells = frozenset(datum for datum, there in has.items() if there)
    data: dict[str, Any] = {
        "tells": tells,
        "contents": format_.contents,
        "differs": format_.differs,
        "algorithms": frozenset({"sha256"} if is_image else NAMED_DIGESTS),
        "ecosystem": "" if format_.ecosystem is None else format_.ecosystem.name,
    }
    return Order.of(format_.ranges, format_.package_key, tags=is_image, name=format_.name, **data)


def own_rules_checked(
    format_: StoredFormat, settings: Mapping[str, Any], stored: Mapping[str, Any] = MappingProxyType({})
) -> Mapping[str, Any]:
    """
    The settings of a repository, in which the rules that were not in its ``stored`` ones say what they do not know.

    :raises Invalid: such a rule cannot be meant; with the JSON pointer
    """
    rules, before = _rules_in(settings), _rules_in(stored)
    check_rules(rules, [order_of(format_)], "/policy/rules", before)
    written = stamped(rules, before)
    if written == rules:
        return settings
    return {**settings, "policy": {**settings["policy"], "rules": msgspec.to_builtins(written)}}


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
    first_seen = False
    if cached:  # the version was published when the upstream says so, not when it was kept
        dated = [(each.published_ms, each.first_seen) for each in origins if each and each.published_ms is not None]
        published, first_seen = min(dated, default=(None, False))
    return Facts(
        package=package,
        versions=(version.text,),
        published_ms=published,
        first_seen=first_seen,
        source=CACHED if cached else HOSTED,
        route=next((each.route for each in origins if each is not None), ""),
        digests=frozenset[str]().union(*(digests_of(each.digests, each.sha256) for each in kept)),
        unreadable=UNREADABLE in version.meta or any(UNREADABLE in each.attrs for each in kept),
        **declared(format_, version.meta, [each.path for each in kept]),
    )


def facts_of_image(repository: Repository, image: str, found: Relations, *, listing: bool = False) -> Facts:
    """
    What is known of a manifest, or of a blob of an image.

    An index has inside what all of its platforms have: each of these is judged by itself when it is asked for. With
    ``listing`` that is so of everything that was not read yet.
    """
    whole = None not in found.insides
    known = [each for each in found.insides if each is not None and each.contents != LOCKED]
    words = [frozenset(each.contents or ()) for each in known]
    unread: dict[Datum, bool] = {
        "labels": listing and bool(found.unread),
        "contents": not whole and (listing or bool(found.lists)),
    }
    return Facts(
        package=image,
        versions=(*found.tags, found.digest),
        published_ms=0 if found.age.evidence else found.age.seen_ms,
        source=CACHED if repository.type is RepositoryType.PROXY else HOSTED,
        route=found.route,
        digests=frozenset({found.digest, *found.lists}),
        labels=found.labels,
        contents=frozenset.intersection(*words) if words and whole else None,
        shape=known[0].shape if len(found.insides) == len(known) == 1 else None,
        unread=frozenset(datum for datum, is_so in unread.items() if is_so),
    )


def declared(format_: StoredFormat, meta: Mapping[str, Any], paths: Sequence[str]) -> dict[str, Any]:
    """The licences, whether a program runs at the installation, and what is compared, as the metadata tell."""
    runs, told = format_.runs_at_install, None
    with suppress(Invalid):  # what is not known then
        told = format_.shape_of(meta)
    scripts = None if runs is None else runs(meta, paths)
    return {"licences": licences_of(meta) or None, "install_scripts": scripts, "told": told}


def known_contents(r: Reader, format_: StoredFormat, package: str, needs: frozenset[Datum]) -> Known:
    """What was read of the bytes of files of a package (a key), and of attestations, if rules ask for that."""
    inside = needs & (INSIDE | TRUST) and (format_.inside is not None or format_.attests is not None)
    if not inside and "digests" not in needs:
        return {}
    _, found = facts_of_package(r, format_.name, package)
    own = {
        name: each
        if is_dependency_name(name)
        else FileFacts(
            contents=each.contents,
            digests=each.digests,
            shape=each.shape,
            attested=each.attested,
            explained=each.explained,
        )
        for name, each in found.items()
    }
    return {name: each for name, each in own.items() if each != NOTHING_TOLD}


def with_own(facts: Facts, own: FileFacts | None) -> Facts:
    """The facts with those that a file tells of itself, which count more than what documents say of it."""
    if own is None:
        return facts
    return evolve(
        facts,
        licences=facts.licences if own.licences is None else own.licences or None,
        install_scripts=facts.install_scripts if own.install_scripts is None else own.install_scripts,
        contents=_both_contents(facts.contents, own.contents),
        shape=facts.shape if own.shape is None else own.shape,
        looked_into=facts.looked_into or own.is_read,
        digests=facts.digests.union(own.digests),
        unreadable=facts.unreadable or own.unreadable,
        published_ms=facts.published_ms if own.published_ms is None else own.published_ms,
        first_seen=facts.first_seen and own.published_ms is None,
    )


def _both_contents(known: frozenset[str] | None, more: tuple[str, ...] | None) -> frozenset[str] | None:
    """What two files of a version have inside; what is known of one does not tell of the other that is locked."""
    if more is None:
        return known
    return None if more == LOCKED else frozenset({*(known or ()), *more})


def licences_of(meta: Mapping[str, Any]) -> tuple[str, ...]:
    """The licences that the metadata of a version declare, as they are written."""
    if not meta:
        return ()
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

    Unless what is known is ``complete``, there may be others. A version that has no place in the order is malware if
    any is; what affects all versions affects what has none.
    """
    if known is None or format_.versions is None:
        return facts
    if not known:
        return evolve(facts, advisories=(), complete=complete)
    try:
        sorts = [format_.versions.sort(each) for each in facts.versions]
    except Invalid:
        hostile = [each for each in known if each.affects_all or each.is_malware]
        return evolve(facts, advisories=hostile, complete=False)
    found = [each for each in known if each.affects_any(sorts) or (not sorts and each.affects_all)]
    return evolve(facts, advisories=found, complete=complete)


def advisories_on(r: Reader, format_: StoredFormat, package: str) -> Sequence[Advisory] | None:
    """The advisories on a package; None for a format that databases of vulnerabilities have no records of."""
    if format_.ecosystem is None:
        return None
    return advisories.advisories_of(r, format_.ecosystem.name, [package]).get(package, ())
