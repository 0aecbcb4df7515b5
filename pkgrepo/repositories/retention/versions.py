"""
What the rules select among the versions of packages, and how it is removed.

The builds of a Java snapshot are a list of their own: its version goes with its last build. A version that is yanked
leaves a tombstone also where deleted names may be used again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor, File, Repository, VersionState
from pkgrepo.repositories.format import StoredFormat, VersionKinds
from pkgrepo.repositories.publish.index import Change, PackageIndex
from pkgrepo.repositories.publish.package_changes import (
    append_package_event,
    bump_package_serial,
    remove_files,
    remove_versions,
)
from pkgrepo.storage.catalog.packages import files, packages, tags
from pkgrepo.storage.catalog.packages.pins import pinned_names
from pkgrepo.storage.catalog.packages.retained import (
    PackageName,
    VersionAge,
    ages,
    downloads_of,
    downloads_of_versions,
    fetches_of_versions,
    sizes_of_versions,
    tags_by_version,
)
from pkgrepo.storage.catalog.server.trash import Disposal

from .rules import DAY_MS, Rules, Selected, Unit


@frozen
class Victim:
    """
    Something of a package that goes, ``size`` bytes.

    ``key`` is that of a version, of which only the files at ``paths`` go, if there are any; or it is a tag of an image,
    or the digest of a manifest. ``tags`` are those that an untagging removes.
    """

    package: str
    package_key: str
    key: str
    name: str
    size: int
    action: str
    rule: str
    reason: str
    paths: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    yanked: bool = False


@frozen
class Plan:
    """What goes of some packages, in the order in which it is to be removed; ``examined`` units were looked at."""

    examined: int
    victims: tuple[Victim, ...]


def plan_versions(
    r: Reader, repository: Repository, some: Sequence[PackageName], rules: Rules, kinds: VersionKinds
) -> Plan:
    """Decide about the versions of some packages. Reads all of them: call it on a reader thread."""
    pins = pinned_names(r, repository.id, [each.key for each in some])
    ids = [each.id for each in some]
    found, named, since = ages(r, ids), tags_by_version(r, ids), rules.used_since_day
    used = {} if since is None else downloads_of_versions(r, ids, since)
    if since is not None and rules.cached:
        for version_id, fetched_ms in fetches_of_versions(r, ids).items():
            used[version_id] = max(used.get(version_id, 0), fetched_ms // DAY_MS)
    examined = 0
    chosen: list[tuple[PackageName, VersionAge, Selected]] = []
    builds: list[Victim] = []
    for package in some:
        of_package = found.get(package.id, [])
        plain = [each for each in of_package if not kinds.snapshot(each.text)]
        examined += len(plain)
        if rules.takes_package(package.name):
            pinned = pins.get(package.key, ())
            units = [
                Unit(
                    each.id,
                    each.text,
                    each.published_ms,
                    named.get(each.id, ()),
                    used.get(each.id),
                    pinned=each.text in pinned,
                )
                for each in plain
            ]
            chosen += [
                (package, plain[each.index], each)
                for each in rules.select(package.name, units)
                if each.action != "untag" or each.tags
            ]
        for version in of_package if len(plain) < len(of_package) else ():
            if kinds.snapshot(version.text):
                plan = _plan_builds(r, package, version, rules, kinds, version.text in pins.get(package.key, ()))
                examined += plan.examined
                builds += plan.victims
    sizes = sizes_of_versions(r, [version.id for _, version, selected in chosen if selected.action != "untag"])
    return Plan(examined, (*(_victim(*each, size=sizes.get(each[1].id, 0)) for each in chosen), *builds))


def _plan_builds(
    r: Reader, package: PackageName, version: VersionAge, rules: Rules, kinds: VersionKinds, pinned: bool
) -> Plan:
    """Decide about the builds of one snapshot; files of no build are one, which is older than the others."""
    held = files.files_of_version(r, version.id)
    builds: dict[str, list[File]] = {}
    for file in held:
        builds.setdefault(kinds.build(file.attrs) or "", []).append(file)
    names = sorted(builds, key=lambda name: (name != "", _build_order(name)))
    if not rules.takes_package(package.name):
        return Plan(len(names), ())
    since = rules.used_since_day
    used = {} if since is None else downloads_of(r, "file", [each.id for each in held], since)
    if rules.cached:
        for file in held:  # fetching counts as use
            used[file.id] = max(used.get(file.id, 0), round(file.created_at.timestamp() * 1000) // DAY_MS)
    units = [
        Unit(
            id=number,
            text=version.text,
            published_ms=max(round(each.created_at.timestamp() * 1000) for each in builds[name]),
            used_day=max((used[each.id] for each in builds[name] if each.id in used), default=None),
            snapshot=True,
            pinned=pinned,
        )
        for number, name in enumerate(names)
    ]
    selected = [each for each in rules.select(package.name, units) if each.action != "untag"]
    whole = len(selected) == len(names)
    victims = []
    for each in selected:
        of_build = builds[names[each.index]]
        victims.append(
            evolve(
                _victim(package, version, each, size=sum(file.size for file in of_build)),
                name=f"{version.text} {names[each.index]}".rstrip(),
                paths=tuple(file.path for file in of_build),
                reason=f"{each.reason}{' (the last builds: the version goes)' if whole else ''}",
            )
        )
    return Plan(len(names), tuple(victims))


def _build_order(name: str) -> tuple[str, int]:
    """Builds are numbered, and a timestamp may be that of two of them."""
    timestamp, _, number = name.rpartition("-")
    return timestamp, int(number) if number.isdigit() else 0


def _victim(package: PackageName, version: VersionAge, selected: Selected, *, size: int) -> Victim:
    return Victim(
        package=package.name,
        package_key=package.key,
        key=version.key,
        name=version.text,
        size=size,
        action=selected.action,
        rule=selected.rule,
        reason=selected.reason,
        tags=selected.tags if selected.action == "untag" else (),
        yanked=version.state == VersionState.YANKED,
    )


def remove_planned(
    tx: Transaction,
    repository: Repository,
    format_: StoredFormat,
    package_key: str,
    victims: Sequence[Victim],
    disposals: Mapping[str, Disposal],
    actor: Actor,
    now_ms: int,
) -> None:
    """Remove what a plan, made in this transaction, has of a package; ``disposals`` are by action."""
    burn = not repository.policy.get("reuse_deleted_names", False)
    together: dict[tuple[str, bool], list[str]] = {}
    for each in victims:
        if each.action == "untag":
            _untag(tx, repository, format_, package_key, each.tags, actor, now_ms)
        elif each.paths or format_.index_removed is None:
            remove_files(
                tx,
                repository,
                package_key,
                each.key,
                list(each.paths) or None,
                actor,
                format_.index,
                burn or each.yanked,
                now_ms,
                disposal=disposals[each.action],
            )
        else:
            together.setdefault((each.action, burn or each.yanked), []).append(each.key)
    for (action, burned), keys in together.items():
        assert format_.index_removed is not None
        index, disposal = format_.index_removed, disposals[action]
        remove_versions(tx, repository, package_key, keys, actor, index, burned, now_ms, disposal=disposal)


def _untag(
    tx: Transaction,
    repository: Repository,
    format_: StoredFormat,
    package_key: str,
    names: Sequence[str],
    actor: Actor,
    now_ms: int,
) -> None:
    package = packages.find_package(tx, repository.id, package_key)
    gone = [] if package is None else [each for each in names if tags.remove_tag(tx, package.id, each)]
    if package is None or not gone:
        return
    package = bump_package_serial(tx, repository, package, now_ms)
    format_.index(PackageIndex(tx, package, now_ms), Change())
    for each in gone:
        append_package_event(tx, package, "untagged", {"tag": each}, actor, now_ms)
