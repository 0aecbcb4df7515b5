"""
Releases, and the write command that publishes them.

Releases of one command are published in phases, with statements for some hundred rows each, whether they are of one
package or of thousands: the writer is occupied for a short time, and other commands have their turn soon.

=============  ====================================================================================================
phase          what happens
=============  ====================================================================================================
guards         each release may refuse
look up        blobs are claimed; files, tombstones, packages and versions that exist are read
decide         which files are new, replaced or there already; a conflict refuses all releases
write          the repository's serial and usage, packages, versions, files, the fragments of indexes, events
=============  ====================================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import Factory, define, evolve, field, frozen

from pkgrepo.auth.permissions.ownership import claim_packages
from pkgrepo.errors import Conflict, FileBurned, FileExists
from pkgrepo.interfaces import Transaction
from pkgrepo.model import BlobInfo, File, NewFile, Package, Repository, RepositoryType, Version, VersionState
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.publish.owner_quotas import Added, check_owner_quotas
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.packages import events, files, packages, release_batches, versions
from pkgrepo.storage.catalog.packages.release_batches import NewPackage, NewVersion, PlacedFile
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.quotas import Usage

from .index import Change, Indexer, PackageIndex


@frozen
class Release:
    """
    What a format publishes: one version of one package, with the files of this request.

    With ``overwrite`` they replace files with the same paths, and files at the ``obsolete`` paths are removed. A file
    with the same bytes stays as it is, unless the release ``renews`` its attributes. With ``reuse`` they may have paths
    of deleted files. ``meta`` is set on a new version, and with ``describes`` on one that exists, too; None for
    ``describes`` means as for ``overwrite``. ``published_ms`` is when a new version was published elsewhere, None for
    now; ``publisher`` is who published it then, None for the actor. ``kind`` is that of the event, which also has
    ``note`` in its data. ``guard`` is called first in the transaction, and raises an error if the release may not be
    published.
    """

    package_key: str
    package_name: str
    version_key: str
    version_text: str
    sort: bytes
    files: tuple[NewFile, ...]
    meta: Mapping[str, Any] = Factory(dict)
    package_meta: Mapping[str, Any] | None = None
    overwrite: bool = False
    renews: bool = False
    reuse: bool = False
    obsolete: tuple[str, ...] = ()
    describes: bool | None = None
    published_ms: int | None = None
    publisher: str | None = None
    kind: str = "published"
    note: Mapping[str, Any] = Factory(dict)
    guard: Callable[[Transaction], None] | None = None


@frozen
class Published:
    """The result of a publish. ``surplus`` are locators of copies that the catalog did not need."""

    changed: bool
    serial: int
    files: tuple[File, ...]
    surplus: tuple[str, ...] = ()


@frozen
class PublishedTogether:
    """
    The results of several releases that were published in one transaction, in their order.

    ``held`` is the id of the stage to which brakes have led all of them; empty if they are published.
    """

    releases: tuple[Published, ...]
    held: str = ""

    @property
    def surplus(self) -> tuple[str, ...]:
        """Locators of copies that the catalog did not need."""
        return tuple(locator for each in self.releases for locator in each.surplus)


def publish_release(
    tx: Transaction, repository: Repository, release: Release, actor: Admitted, indexer: Indexer, now_ms: int
) -> Published:
    """Publish one release as a part of a write command; see L{publish_releases}."""
    return publish_releases(tx, repository, (release,), actor, indexer, now_ms).releases[0]


def publish_releases(
    tx: Transaction,
    repository: Repository,
    releases: Sequence[Release],
    actor: Admitted,
    indexer: Indexer,
    now_ms: int,
) -> PublishedTogether:
    """
    The write command behind L{ContentWriter.publish_together}.

    :raises FileExists, FileBurned: other content is published at a path, or its file was deleted
    :raises Conflict: the files of a release belong to another version
    :raises Forbidden: another pusher became the owner of a package meanwhile
    """
    actor.check(repository, *(each.package_key for each in releases))
    claim_packages(tx, repository, dict.fromkeys(each.package_key for each in releases), actor, now_ms)
    published: list[Published] = []
    for some in _without_common_paths(releases):
        published += _publish(tx, repository, some, actor, indexer, now_ms)
    return PublishedTogether(tuple(published))


def _without_common_paths(releases: Sequence[Release]) -> Iterator[Sequence[Release]]:
    """The releases in their order, in as few groups as have no two files with the same path."""
    some: list[Release] = []
    paths: set[str] = set()
    for each in releases:
        of_this = {new.path for new in each.files}
        if not paths.isdisjoint(of_this):
            yield some
            some, paths = [], set()
        some.append(each)
        paths |= of_this
    yield some


def _publish(
    tx: Transaction,
    repository: Repository,
    releases: Sequence[Release],
    actor: Admitted,
    indexer: Indexer,
    now_ms: int,
) -> list[Published]:
    for each in releases:
        if each.guard is not None:
            each.guard(tx)
    plans = _plan(tx, repository, releases, now_ms)
    changed = [each for each in plans if each.added]
    known = release_batches.find_packages(tx, repository.id, dict.fromkeys(each.release.package_key for each in plans))
    existing = release_batches.find_versions(
        tx,
        dict.fromkeys(
            (known[each.release.package_key].id, each.release.version_key)
            for each in plans
            if each.release.package_key in known
        ),
    )
    _check_unchanged(plans, known, existing)
    if changed:
        _write(tx, repository, changed, known, existing, actor, indexer, now_ms)
    return [each.result(known) for each in plans]


@define
class _Plan:
    """
    What is to be done for one release.

    ``added`` are its files with the blobs that the catalog has, as far as they change anything; those at paths among
    ``replaced`` take the place of others. ``serial`` and ``files`` are known once they are written.
    """

    release: Release
    added: list[NewFile] = field(factory=list)
    replaced: dict[str, File] = field(factory=dict)
    kept: list[File] = field(factory=list)
    removed: list[File] = field(factory=list)
    surplus: list[str] = field(factory=list)
    serial: int = 0
    files: tuple[File, ...] = ()

    @property
    def growth(self) -> int:
        """The bytes that the repository grows by."""
        before = sum(each.size for each in (*self.replaced.values(), *self.removed))
        return sum(each.blob.size for each in self.added) - before

    def result(self, known: Mapping[str, Package]) -> Published:
        """What has become of the release."""
        serial = self.serial or known[self.release.package_key].serial
        files = (*self.files, *self.kept)
        return Published(changed=bool(self.added), serial=serial, files=files, surplus=tuple(self.surplus))


def _plan(tx: Transaction, repository: Repository, releases: Sequence[Release], now_ms: int) -> list[_Plan]:
    """Claim the blobs, and compare the files with what is there."""
    new = [each for release in releases for each in release.files]
    claimed = iter(blobs.claim_blobs(tx, repository.storage_id, [each.blob for each in new], now_ms))
    obsolete = [path for release in releases for path in release.obsolete]
    before = release_batches.find_files(tx, repository.id, dict.fromkeys([*(each.path for each in new), *obsolete]))
    free = [each.path for each in new if each.path not in before]
    burned = release_batches.paths_with_tombstones(tx, repository.id, free)
    # of a proxy they count once it is a hosted repository: until then its upstream decides
    refused = set[str]() if repository.type is RepositoryType.PROXY else burned
    if repository.stage is not None and not repository.is_companion:
        _check_target(tx, repository.authority, releases)
    plans = [_plan_release(release, claimed, before, refused) for release in releases]
    reused = {each.path for plan in plans for each in plan.added if each.path in burned}
    release_batches.remove_tombstones(tx, repository.id, reused)
    return plans


def _check_target(tx: Transaction, target: Repository, releases: Sequence[Release]) -> None:
    """
    Refuse early what the repository that a stage is for would refuse when the stage is approved.

    :raises FileExists, FileBurned: other content is published there at a path, or its file was deleted
    :raises Conflict: a version is yanked there
    """
    known = release_batches.find_packages(tx, target.id, dict.fromkeys(each.package_key for each in releases))
    keys = [(known[each.package_key].id, each.version_key) for each in releases if each.package_key in known]
    for version in release_batches.find_versions(tx, dict.fromkeys(keys)).values():
        if version.state is VersionState.YANKED:
            raise Conflict(f"version {version.text} is yanked in {target.path}: take that back there first")
    new = {each.path: each.blob.sha256 for release in releases if not release.overwrite for each in release.files}
    there = release_batches.find_files(tx, target.id, new)
    for path, file in there.items():
        if file.sha256 != new[path]:
            raise FileExists(files.filename(path), file.sha256)
    if target.policy.get("reuse_deleted_names"):
        return
    for path in release_batches.paths_with_tombstones(tx, target.id, [each for each in new if each not in there]):
        raise FileBurned(files.filename(path))


def _plan_release(release: Release, claimed: Iterable[BlobInfo], before: Mapping[str, File], burned: set[str]) -> _Plan:
    plan = _Plan(release)
    for new, blob in zip(release.files, claimed, strict=False):
        if blob.locator != new.blob.locator:
            plan.surplus.append(new.blob.locator)
        found = before.get(new.path)
        if found is not None and found.sha256 == blob.sha256 and not release.renews:
            plan.kept.append(found)
            continue
        if found is not None and not release.overwrite:
            raise FileExists(files.filename(new.path), found.sha256)
        if found is not None:
            plan.replaced[new.path] = found
        elif new.path in burned and not release.reuse:
            raise FileBurned(files.filename(new.path))
        plan.added.append(new if blob is new.blob else evolve(new, blob=blob))
    if plan.added:
        plan.removed = [before[path] for path in release.obsolete if path in before]
    return plan


def _check_unchanged(
    plans: Sequence[_Plan], known: Mapping[str, Package], existing: Mapping[tuple[int, str], Version]
) -> None:
    """Check that the files of a release that changes nothing are those of its version."""
    begun = {(each.release.package_key, each.release.version_key) for each in plans if each.added}
    for each in plans:
        release = each.release
        package = known.get(release.package_key)
        if each.added or (release.package_key, release.version_key) in begun:
            continue
        if package is None or (package.id, release.version_key) not in existing:
            raise Conflict(f"{release.package_name} {release.version_text}: these files belong to another version")


def _write(
    tx: Transaction,
    repository: Repository,
    changed: Sequence[_Plan],
    known: dict[str, Package],
    existing: dict[tuple[int, str], Version],
    actor: Admitted,
    indexer: Indexer,
    now_ms: int,
) -> None:
    """Write what changes; the packages and versions that are new are added to ``known`` and ``existing``."""
    new_packages = {each.release.package_key for each in changed} - known.keys()
    renamed = any(
        known[each.release.package_key].name != each.release.package_name
        for each in changed
        if each.release.package_key in known
    )
    serial, limited = repositories.record_changes(
        tx,
        repository.id,
        count=len(changed),
        names_changed=renamed or bool(new_packages),
        added=Usage(
            sum(each.growth for each in changed), len(new_packages), _count_new_versions(changed, known, existing)
        ),
        now_ms=now_ms,
    )
    for number, each in enumerate(changed, serial - len(changed) + 1):
        each.serial = number
    _write_packages(tx, repository.id, changed, known, new_packages, now_ms)
    before = set(existing)
    _write_versions(tx, changed, known, existing, actor, now_ms)
    _write_files(tx, repository, changed, known, existing, actor, now_ms)
    happened: list[events.NewEvent] = []
    for each in changed:
        release = each.release
        package = known[release.package_key]
        if package.serial != each.serial or package.name != release.package_name:
            package = evolve(package, name=release.package_name, serial=each.serial)
        at = package.id, release.version_key
        version = existing[at]
        # Another release of this transaction may have files of the same version.
        whole = tuple(sorted(each.files, key=_path)) if len(changed) == 1 and at not in before else None
        index = PackageIndex(tx, package, now_ms)
        indexer(index, Change(version=version, added=each.files, removed=tuple(each.removed), files=whole))
        happened.append(_event(repository, each, package, version))
    events.append_events(tx, happened, actor, now_ms)
    if limited:
        check_owner_quotas(tx, repository, _grown(changed, known, new_packages, before), actor, now_ms)


def _grown(
    changed: Sequence[_Plan],
    known: Mapping[str, Package],
    new_packages: Collection[str],
    before: Collection[tuple[int, str]],
) -> dict[str, Added]:
    """What is added to each package; ``before`` are the versions that existed."""
    grown: dict[str, Added] = {}
    new: set[tuple[int, str]] = set()
    for each in changed:
        key = each.release.package_key
        at = known[key].id, each.release.version_key
        usage = Usage(
            each.growth, int(key in new_packages and key not in grown), int(at not in before and at not in new)
        )
        new.add(at)
        more = Added(usage, max(file.blob.size for file in each.added))
        grown[key] = grown[key] + more if key in grown else more
    return grown


def _count_new_versions(
    changed: Sequence[_Plan], known: Mapping[str, Package], existing: Mapping[tuple[int, str], Version]
) -> int:
    wanted = {(each.release.package_key, each.release.version_key) for each in changed}
    return sum(package not in known or (known[package].id, version) not in existing for package, version in wanted)


def _write_packages(
    tx: Transaction,
    repository_id: int,
    changed: Sequence[_Plan],
    known: dict[str, Package],
    new_keys: set[str],
    now_ms: int,
) -> None:
    new: dict[str, NewPackage] = {}
    for each in changed:
        release = each.release
        key, name, meta = release.package_key, release.package_name, release.package_meta
        if key in new_keys:
            earlier = new[key].meta if key in new else {}
            new[key] = NewPackage(key, name, each.serial, earlier if meta is None else meta)
        else:
            packages.touch_package(tx, known[key].id, serial=each.serial, now_ms=now_ms, name=name, meta=meta)
    known |= release_batches.add_packages(tx, repository_id, list(new.values()), now_ms)


def _write_versions(
    tx: Transaction,
    changed: Sequence[_Plan],
    known: Mapping[str, Package],
    existing: dict[tuple[int, str], Version],
    actor: Admitted,
    now_ms: int,
) -> None:
    """Add the versions that are new, each as its first release describes it; later ones may change its ``meta``."""
    new: dict[tuple[int, str], NewVersion] = {}
    described: list[tuple[tuple[int, str], Mapping[str, Any]]] = []
    for each in changed:
        release = each.release
        at = known[release.package_key].id, release.version_key
        if at not in existing and at not in new:
            new[at] = NewVersion(
                *at, release.version_text, release.sort, release.meta, release.published_ms, release.publisher
            )
        elif release.overwrite if release.describes is None else release.describes:
            described.append((at, release.meta))
    existing |= release_batches.add_versions(tx, list(new.values()), actor, now_ms)
    for at, meta in described:
        versions.set_meta(tx, existing[at].id, meta)


def _write_files(
    tx: Transaction,
    repository: Repository,
    changed: Sequence[_Plan],
    known: Mapping[str, Package],
    existing: Mapping[tuple[int, str], Version],
    actor: Admitted,
    now_ms: int,
) -> None:
    placed: list[PlacedFile] = []
    found: dict[str, File] = {}
    for each in changed:
        package_id = known[each.release.package_key].id
        version_id = existing[package_id, each.release.version_key].id
        for new in each.added:
            if new.path in each.replaced:
                found[new.path] = files.replace_file(
                    tx, repository.id, repository.storage_id, new, package_id, version_id, now_ms
                )
            else:
                placed.append(PlacedFile(new, package_id, version_id))
        for gone in each.removed:
            files.remove_file(tx, gone, actor=actor, tombstone=False, now_ms=now_ms)
    found |= release_batches.add_files(tx, repository.id, repository.storage_id, placed, now_ms)
    for each in changed:
        each.files = tuple(found[new.path] for new in each.added)


def _path(file: File) -> str:
    return file.path


def _event(repository: Repository, plan: _Plan, package: Package, version: Version) -> events.NewEvent:
    return events.NewEvent(
        repository_id=repository.id,
        package_id=package.id,
        package_key=package.key,
        version_key=version.key,
        kind=plan.release.kind,
        data={
            "version": version.text,
            "files": [{"path": file.path, "sha256": file.sha256, "size": file.size} for file in plan.files],
            **plan.release.note,
        },
    )
