"""
Publishing: from bytes that arrive to a version that readers see.

==================  ====================================================  =========================================
step                what is true after it                                 what a crash leaves
==================  ====================================================  =========================================
receive, seal       the bytes are here, and are those that were           nothing
                    announced
inspect             the format has looked into the file                   nothing, or what commit leaves
commit              the bytes of all files are durable in the store       copies that nothing names; swept later
                    under locators that no row names yet; a file that
                    comes alone is on its way while it is inspected
publish             one transaction: blob row, file, version, package,    either everything or nothing
                    index documents and event
answer              the client knows                                      -
==================  ====================================================  =========================================
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

from attrs import Factory, evolve, frozen
from twisted.logger import Logger

from pkgrepo.concurrency.single_flight import shield
from pkgrepo.errors import Conflict, RepositoryInactive, StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import Actor, BlobInfo, File, NewFile, Repository
from pkgrepo.repositories.clock import Clock
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.stores import Stores
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.packages import events, files, packages, versions
from pkgrepo.storage.catalog.server import repositories

from .index import Change, Indexer, PackageIndex
from .staged import Claim, Staged

log = Logger()

T = TypeVar("T")
C = TypeVar("C", bound="CommandResult")


@frozen
class Release:
    """
    What a format wants published: one version of one package, with the files that came now.

    With ``overwrite`` they replace others of the same paths; what is then at the ``obsolete`` paths goes. With
    ``reuse`` they may have the paths of deleted files. ``guard`` is asked in the transaction, before anything is
    written, and raises what must not be published.
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
    reuse: bool = False
    obsolete: tuple[str, ...] = ()
    guard: Callable[[Transaction], None] | None = None


@frozen
class Published:
    """What became of a release. ``surplus`` are locators of copies that the catalog did not take."""

    changed: bool
    serial: int
    files: tuple[File, ...]
    surplus: tuple[str, ...] = ()


class CommandResult(Protocol):
    """What a command says that took staged blobs into the catalog."""

    @property
    def surplus(self) -> tuple[str, ...]:
        """Locators of copies that the catalog did not take."""


class ChangeListener(Protocol):
    """Told, in the reactor thread, that something in a repository changed."""

    def __call__(self, repository: Repository, /) -> None:
        """Look for new events when convenient."""


class Publisher:
    """The one upload path of every format."""

    def __init__(
        self, *, catalog: ICatalog, registry: Registry, stores: Stores, clock: Clock, on_change: ChangeListener
    ) -> None:
        self._catalog = catalog
        self._registry = registry
        self._stores = stores
        self._clock = clock
        self._on_change = on_change

    @asynccontextmanager
    async def stage(self, repository: Repository) -> AsyncIterator[Staged]:
        """A place for the incoming bytes of one request; whatever is unpublished at its end is removed."""
        storage = self._registry.storage(repository.storage_id)
        if not storage.active:
            raise StorageFailed(storage.name)
        store = await self._stores.of(storage)
        staged = Staged(store)
        try:
            yield staged
        finally:
            await staged.clear()

    async def publish(
        self, repository: Repository, release: Release, staged: Staged, actor: Actor, indexer: Indexer
    ) -> Published:
        """
        Make a release visible, in one durable transaction.

        Publishing the same bytes again changes nothing and succeeds. Once begun it is finished, also when the client
        leaves: a transaction that is under way owns the staged bytes.

        :raises FileExists: other content is published under that name; :raises FileBurned: a file of that name
            was deleted
        """
        mine = staged.claim([each.blob.locator for each in release.files])
        return await shield(self._publish(repository, release, mine, actor, indexer))

    async def _publish(
        self, repository: Repository, release: Release, mine: Claim, actor: Actor, indexer: Indexer
    ) -> Published:
        published = await self._claim(mine, publish_release, repository, release, actor, indexer)
        if published.changed:
            self._on_change(repository)
            log_published(repository, release.package_key, release.version_text, actor)
        return published

    async def take(
        self,
        command: Callable[..., CommandResult],
        repository: Repository,
        staged: Staged,
        blobs: Sequence[BlobInfo],
        *args: Any,
    ) -> None:
        """
        Run a write command that claims staged blobs, and tell the on_change.

        As with ``publish`` it is finished once begun, and removes the copies that the catalog did not take.
        """
        mine = staged.claim([each.locator for each in blobs])
        await shield(self._claim(mine, command, repository, *args))
        self._on_change(repository)

    async def _claim(self, mine: Claim, command: Callable[..., C], repository: Repository, *args: Any) -> C:
        await mine.commit()
        try:
            result: C = await self._catalog.write(_if_active(command), repository, *args, self._clock.now_ms())
        except (StorageFull, StorageFailed):
            # Nobody knows whether the transaction will be there after a restart: the copies stay, and are swept when
            # nothing names them.
            raise
        except BaseException:
            await mine.delete()
            raise
        await mine.delete(result.surplus)
        return result

    async def change(self, command: Callable[..., T], repository: Repository, *args: Any) -> T:
        """Run a write command that changes a repository's content (see L{remove}), and tell the on_change."""
        result: T = await shield(self._catalog.write(_if_active(command), repository, *args, self._clock.now_ms()))
        self._on_change(repository)
        return result


def log_published(repository: Repository, package: str, version: str, actor: Actor) -> None:
    """Tell the log of a publish: what, by whom, and in which request, whose line the access log has."""
    log.info(
        "published {package} {version} in {repository} by {user} (request {request})",
        package=package,
        version=version,
        repository=repository.path,
        user=actor.name or "nobody",
        request=actor.request_id or "-",
    )


def _if_active(command: Callable[..., T]) -> Callable[..., T]:
    """
    The command, unless the repository was switched off or removed meanwhile: an upload may take hours.

    It then raises L{RepositoryInactive} or L{NotFound}.
    """

    def run(tx: Transaction, /, repository: Repository, *args: Any) -> T:
        if not repositories.get_repository(tx, repository.id).active:
            raise RepositoryInactive(repository.path)
        return command(tx, repository, *args)

    return run


def publish_release(
    tx: Transaction, repository: Repository, release: Release, actor: Actor, indexer: Indexer, now_ms: int
) -> Published:
    """The write command behind L{Publisher.publish}."""
    if release.guard is not None:
        release.guard(tx)
    claimed = [blobs.claim_blob(tx, repository.storage_id, each.blob, now_ms) for each in release.files]
    surplus = tuple(
        new.blob.locator for new, taken in zip(release.files, claimed, strict=True) if taken.locator != new.blob.locator
    )
    package, new_package = packages.ensure_package(
        tx, repository.id, key=release.package_key, name=release.package_name, serial=0, now_ms=now_ms
    )
    version, new_version = versions.ensure_version(
        tx,
        package.id,
        key=release.version_key,
        text=release.version_text,
        sort=release.sort,
        meta=release.meta,
        publisher=actor,
        now_ms=now_ms,
    )
    added: list[File] = []
    kept: list[File] = []
    grown = 0
    for new, blob in zip(release.files, claimed, strict=True):
        before = files.find_file(tx, repository.id, new.path)
        if before is not None and before.sha256 == blob.sha256:
            kept.append(before)
            continue
        put = files.replace_file if before is not None and release.overwrite else files.add_file
        file = put(
            tx,
            repository.id,
            repository.storage_id,
            evolve(new, blob=blob),
            package.id,
            version.id,
            now_ms,
            reuse=release.reuse,
        )
        grown += file.size - (before.size if before is not None else 0)
        added.append(file)
    if not added:
        if new_version:
            raise Conflict(f"{release.package_name} {release.version_text}: these files belong to another version")
        return Published(changed=False, serial=package.serial, files=tuple(kept), surplus=surplus)
    found = (files.find_file(tx, repository.id, path) for path in release.obsolete)
    gone = [each for each in found if each is not None]
    for each in gone:
        files.remove_file(tx, each, actor=actor, tombstone=False, now_ms=now_ms)
        grown -= each.size
    serial = repositories.bump_serial(tx, repository.id)
    if new_package or package.name != release.package_name:
        repositories.names_changed(tx, repository.id)
    repositories.add_usage(tx, repository.id, grown, int(new_package))
    packages.touch_package(
        tx, package.id, serial=serial, now_ms=now_ms, name=release.package_name, meta=release.package_meta
    )
    package = evolve(package, name=release.package_name, serial=serial)
    if not new_version and release.overwrite:
        versions.set_meta(tx, version.id, release.meta)
    index = PackageIndex(tx, package, now_ms)
    indexer(index, Change(version=version, added=tuple(added), removed=tuple(gone)))
    events.append_event(
        tx,
        repository_id=repository.id,
        package_id=package.id,
        package_key=package.key,
        version_key=version.key,
        kind="published",
        data={
            "version": version.text,
            "files": [{"path": file.path, "sha256": file.sha256, "size": file.size} for file in added],
        },
        actor=actor,
        now_ms=now_ms,
    )
    return Published(changed=True, serial=serial, files=tuple(added + kept), surplus=surplus)
