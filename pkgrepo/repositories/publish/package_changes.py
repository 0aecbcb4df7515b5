"""
Write commands that change what is published: states of versions, removal of files and versions, metadata.

Each ends with a new serial and an event. ``if_active`` makes a command fail once its repository was switched off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, TypeVarTuple

from attrs import evolve

from pkgrepo.errors import NotFound, ReadOnly, RepositoryInactive, existing
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor, File, Package, Repository, RepositoryType, Version, VersionState
from pkgrepo.model.admission import Admitted
from pkgrepo.repositories.publish.index import Change, Indexer, PackageIndex, VersionsIndexer
from pkgrepo.repositories.publish.trash import keep_files, keep_versions
from pkgrepo.storage.catalog.packages import events, files, packages, tags, versions
from pkgrepo.storage.catalog.packages.versions import VersionRow
from pkgrepo.storage.catalog.server import repositories
from pkgrepo.storage.catalog.server.quotas import Usage
from pkgrepo.storage.catalog.server.trash import TO_TRASH, Disposal, add_to_trash, keeps

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
EVICTED = "evicted"  # the kind of the event when something is removed from a cache
# The kind of the event when a version gets this state.
_KINDS = {VersionState.LIVE: "restored", VersionState.YANKED: "yanked", VersionState.DEPRECATED: "deprecated"}


class ChangeListener(Protocol):
    """Called in the reactor thread when something in a repository has changed."""

    def __call__(self, repository: Repository, /) -> None:
        """Look for new events soon."""


def bump_package_serial(tx: Transaction, repository: Repository, package: Package, now_ms: int) -> Package:
    """Increase the repository's serial and set it on the package. Returns the changed package."""
    serial = repositories.bump_serial(tx, repository.id)
    packages.touch_package(tx, package.id, serial=serial, now_ms=now_ms)
    return evolve(package, serial=serial)


def append_package_event(
    tx: Transaction,
    package: Package,
    kind: str,
    data: Mapping[str, Any],
    actor: Actor,
    now_ms: int,
    *,
    version: Version | None = None,
) -> None:
    """Append an event for a package; with ``version`` for that version, whose text is added to the data."""
    events.append_event(
        tx,
        repository_id=package.repository_id,
        package_id=package.id,
        package_key=package.key,
        version_key="" if version is None else version.key,
        kind=kind,
        data=data if version is None else {"version": version.text, **data},
        actor=actor,
        now_ms=now_ms,
    )


def if_active(command: Callable[[Transaction, Repository, *Ts], T]) -> Callable[[Transaction, Repository, *Ts], T]:
    """
    Wrap a command so that it fails if the repository was switched off, removed or made hosted since it was begun.

    It then raises L{RepositoryInactive} or L{NotFound}, and L{ReadOnly} for a virtual repository, which has no content
    of its own.
    """

    def run(tx: Transaction, repository: Repository, /, *args: *Ts) -> T:
        if repository.type is RepositoryType.VIRTUAL:
            raise ReadOnly(f"repository {repository.path} is virtual: packages are in its members")
        type_, active = repositories.get_state(tx, repository.id)
        # what was to be evicted from the cache of a proxy is content of a hosted repository now
        if not active or type_ is not repository.type:
            raise RepositoryInactive(repository.path)
        return command(tx, repository, *args)

    return run


def set_version_state(
    tx: Transaction,
    repository: Repository,
    package_key: str,
    version_key: str,
    state: VersionState,
    reason: str,
    actor: Admitted,
    indexer: Indexer,
    now_ms: int,
) -> Version:
    """
    Yank, deprecate or restore a version; ``reason`` is shown to people who request it anyway.

    :raises NotFound: no such package or version
    """
    actor.check(repository, package_key)
    return _set_state(tx, repository, package_key, version_key, state, reason, actor, indexer, now_ms)


def yank_version(
    tx: Transaction,
    repository: Repository,
    package_key: str,
    version_key: str,
    reason: str,
    actor: Actor,
    indexer: Indexer,
    now_ms: int,
) -> Version:
    """Yank a version, which makes nothing visible. :raises NotFound: no such package or version"""
    state = VersionState.YANKED
    return _set_state(tx, repository, package_key, version_key, state, reason, actor, indexer, now_ms)


def _set_state(
    tx: Transaction,
    repository: Repository,
    package_key: str,
    version_key: str,
    state: VersionState,
    reason: str,
    actor: Actor,
    indexer: Indexer,
    now_ms: int,
) -> Version:
    package, version = _find(tx, repository, package_key, version_key)
    if version.state == state and version.reason == reason:
        return version
    versions.set_state(tx, version.id, state, reason)
    version = evolve(version, state=state, reason=reason)
    package = bump_package_serial(tx, repository, package, now_ms)
    indexer(PackageIndex(tx, package, now_ms), Change(version=version))
    append_package_event(tx, package, _KINDS[state], {"reason": reason}, actor, now_ms, version=version)
    return version


def set_version_states(
    tx: Transaction,
    repository: Repository,
    package: Package,
    rows: Sequence[VersionRow],
    actor: Admitted,
    indexer: VersionsIndexer,
    now_ms: int,
) -> None:
    """Yank, deprecate or restore many versions: each gets the state and the reason of its row."""
    actor.check(repository, package.key)
    if not rows:
        return
    versions.set_states(tx, rows)
    package = bump_package_serial(tx, repository, package, now_ms)
    indexer(PackageIndex(tx, package, now_ms), rows)
    happened = [(row, _KINDS[row.state], {"reason": row.reason}) for row in rows]
    versions.append_events(tx, package, happened, actor, now_ms)


def remove_files(
    tx: Transaction,
    repository: Repository,
    package_key: str,
    version_key: str,
    paths: Sequence[str] | None,
    actor: Actor,
    indexer: Indexer,
    tombstone: bool,
    now_ms: int,
    *,
    kind: str = "deleted",
    disposal: Disposal = TO_TRASH,
) -> list[str]:
    """
    Remove files of a version, or all of them if ``paths`` is None. Returns the removed paths.

    A version without files is removed too, and so is a package without versions. With ``tombstone`` the paths may not
    be used again. What the trash does not keep is removed by garbage collection. ``kind`` is that of the event.

    :raises NotFound: no such package, version or file
    """
    package, version = _find(tx, repository, package_key, version_key)
    present = {file.path: file for file in files.files_of_version(tx, version.id)}
    doomed: list[File] = []
    for path in present if paths is None else paths:
        if path not in present:
            raise NotFound("file", path)
        doomed.append(present[path])
    gone = len(doomed) == len(present)
    kept = []
    if keeps(tx, repository, disposal):
        named = tags.names_by_version(tx, package.id).get(version.id, ()) if gone else None
        kept.append(keep_files(package, version, doomed, tags=named))
    for file in doomed:
        files.remove_file(tx, file, actor=actor, tombstone=tombstone, now_ms=now_ms)
    freed = sum(file.size for file in doomed)
    repositories.add_usage(tx, repository.id, Usage(-freed, versions=-int(gone)))
    append_package_event(tx, package, kind, {"paths": [file.path for file in doomed]}, actor, now_ms, version=version)
    if gone:
        versions.remove_version(tx, version.id)
    package = bump_package_serial(tx, repository, package, now_ms)
    last = versions.count_versions(tx, package.id) == 0
    add_to_trash(tx, package, kept, actor, disposal, now_ms, whole=last)
    indexer(PackageIndex(tx, package, now_ms), Change(version=version, removed=tuple(doomed), last=last))
    if last:
        _remove_package(tx, repository, package)
    return [file.path for file in doomed]


def remove_versions(
    tx: Transaction,
    repository: Repository,
    package_key: str,
    version_keys: Iterable[str],
    actor: Actor,
    indexer: VersionsIndexer,
    tombstone: bool,
    now_ms: int,
    *,
    disposal: Disposal = TO_TRASH,
) -> None:
    """
    Remove many versions with all their files, like ``remove_files``; versions that do not exist are skipped.

    :raises NotFound: no such package
    """
    package = _find_package(tx, repository, package_key)
    rows = versions.version_rows(tx, package.id, version_keys)
    if not rows:
        return
    found = versions.paths_and_sizes(tx, rows)
    happened = [(row, "deleted", {"paths": [path for path, _ in found.get(row.id, ())]}) for row in rows]
    versions.append_events(tx, package, happened, actor, now_ms)
    if tombstone:
        versions.add_tombstones(tx, package.key, rows, actor, now_ms)
    freed = sum(size for each in found.values() for _, size in each)
    repositories.add_usage(tx, repository.id, Usage(-freed, versions=-len(rows)))
    package = bump_package_serial(tx, repository, package, now_ms)
    last = len(rows) == versions.count_versions(tx, package.id)
    if keeps(tx, repository, disposal):
        kept = keep_versions(tx, package, [row.id for row in rows])
        add_to_trash(tx, package, kept, actor, disposal, now_ms, whole=last)
    if last:
        _remove_package(tx, repository, package)
    else:
        versions.remove_versions(tx, rows)
        indexer(PackageIndex(tx, package, now_ms), rows)


def remove_package(
    tx: Transaction, repository: Repository, package_key: str, actor: Actor, tombstone: bool, now_ms: int
) -> None:
    """
    Remove a package with all its versions and files, like ``remove_versions``.

    :raises NotFound: no such package
    """
    package = _find_package(tx, repository, package_key)
    keys = versions.version_keys(tx, package.id)
    remove_versions(tx, repository, package_key, keys, actor, _no_documents, tombstone, now_ms)
    if not keys:
        append_package_event(tx, package, "deleted", {"paths": []}, actor, now_ms)
        bump_package_serial(tx, repository, package, now_ms)
        _remove_package(tx, repository, package)


def set_package_meta(
    tx: Transaction,
    repository: Repository,
    package_key: str,
    meta: Mapping[str, Any],
    actor: Admitted,
    indexer: Indexer,
    now_ms: int,
) -> Package:
    """
    Set keys of a package's own metadata, and update its fragments.

    :raises NotFound: no such package
    """
    actor.check(repository, package_key)
    package = _find_package(tx, repository, package_key)
    merged = {**package.meta, **meta}
    serial = repositories.bump_serial(tx, repository.id)
    packages.touch_package(tx, package.id, serial=serial, now_ms=now_ms, meta=merged)
    repositories.bump_names_serial(tx, repository.id)  # formats exclude packages from lists by their metadata
    package = evolve(package, serial=serial, meta=merged)
    indexer(PackageIndex(tx, package, now_ms), Change())
    append_package_event(tx, package, "changed", dict(meta), actor, now_ms)
    return package


def present(reader: Reader, repository_id: int, paths: Sequence[str]) -> list[str]:
    """Return those of the paths that exist."""
    return [path for path in paths if files.find_file(reader, repository_id, path) is not None]


def _no_documents(index: PackageIndex, rows: Sequence[VersionRow]) -> None:
    """The indexer of a package that is removed as a whole, with its fragments."""


def _remove_package(tx: Transaction, repository: Repository, package: Package) -> None:
    packages.remove_package(tx, package.id)
    repositories.add_usage(tx, repository.id, Usage(packages=-1))
    repositories.bump_names_serial(tx, repository.id)


def _find_package(tx: Transaction, repository: Repository, package_key: str) -> Package:
    return existing(packages.find_package(tx, repository.id, package_key), "package", package_key)


def _find(tx: Transaction, repository: Repository, package_key: str, version_key: str) -> tuple[Package, Version]:
    package = _find_package(tx, repository, package_key)
    version = existing(versions.find_version(tx, package.id, version_key), "version", f"{package_key} {version_key}")
    return package, version
