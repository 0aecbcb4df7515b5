"""The parts of a server that need no network: catalog, blob stores, repositories, formats."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

from twisted.internet.defer import Deferred
from twisted.logger import Logger

from pkgrepo.auth.login.passwords import PERMITS, HashingThreads, Passwords
from pkgrepo.auth.permissions.format_rights import make_known
from pkgrepo.composition.backup_place import backed_up
from pkgrepo.composition.databases import make_catalog
from pkgrepo.composition.processes.exclusive import ChangeRelay
from pkgrepo.composition.processes.nodes import clock_of, nodes_of, peers_of
from pkgrepo.concurrency import proxy_loop
from pkgrepo.concurrency.batches import BatchDelay
from pkgrepo.concurrency.pools import Pools
from pkgrepo.config import Config
from pkgrepo.errors import StorageFailed
from pkgrepo.failure_log import is_out_of_descriptors
from pkgrepo.formats.cargo import facts as cargo
from pkgrepo.formats.conda import facts as conda
from pkgrepo.formats.container import facts as container
from pkgrepo.formats.go import facts as go
from pkgrepo.formats.helm import facts as helm
from pkgrepo.formats.maven import facts as maven
from pkgrepo.formats.npm import facts as npm
from pkgrepo.formats.python import facts as python
from pkgrepo.formats.raw import facts as raw
from pkgrepo.formats.rubygems import facts as rubygems
from pkgrepo.gateway.format import Format, FormatFacts, LateFormat
from pkgrepo.gateway.image_addresses import ImageAddresses
from pkgrepo.gateway.publishing.stages import held_opening
from pkgrepo.interfaces import IBlobStore
from pkgrepo.model import Repository, Storage
from pkgrepo.process.workers.peers import NoPeers, Peers
from pkgrepo.repositories.addresses import AddressTable
from pkgrepo.repositories.advisories.known import KnownAdvisories
from pkgrepo.repositories.companions import Companions
from pkgrepo.repositories.context import MaintenanceContext
from pkgrepo.repositories.descriptions import Descriptions
from pkgrepo.repositories.downloads import DownloadRecorder
from pkgrepo.repositories.integrity import FirstReads
from pkgrepo.repositories.layout.follower import LayoutFollower
from pkgrepo.repositories.publish.content import ContentWriter
from pkgrepo.repositories.publish.package_changes import ChangeListener
from pkgrepo.repositories.registry import Registry
from pkgrepo.repositories.retention.run import RetentionWork
from pkgrepo.repositories.stores import Stores
from pkgrepo.repositories.upkeep.gc import GarbageCollector
from pkgrepo.repositories.upkeep.jobs import Jobs
from pkgrepo.repositories.upkeep.mending import Mender
from pkgrepo.sigstore.roots import TrustedRoot, root_of
from pkgrepo.storage.blobs.durability import Durability, storage_error
from pkgrepo.storage.blobs.filesystem import FilesystemBlobStore
from pkgrepo.storage.blobs.moving import MovingBlobStore
from pkgrepo.storage.blobs.s3.store import BucketBlobStore
from pkgrepo.storage.buckets import StorageBuckets
from pkgrepo.storage.catalog.server import settings, storages
from pkgrepo.storage.folders import StorageFolders
from pkgrepo.storage.process_lock import KeyLeases, ProcessLock, boot_id
from pkgrepo.storage.secret_box import SecretBox


def _cargo(_config: Config) -> Format:
    from pkgrepo.formats.cargo.format import cargo  # noqa: PLC0415 - a format that no repository has is not imported

    return cargo()


def _conda(_config: Config) -> Format:
    from pkgrepo.formats.conda.format import conda  # noqa: PLC0415 - as above

    return conda()


def _container(config: Config) -> Format:
    from pkgrepo.formats.container.format import container  # noqa: PLC0415 - as above

    own = config.container
    return container(service=own.service, ping=own.ping, trusted_keys=own.trusted_keys)


def _go(_config: Config) -> Format:
    from pkgrepo.formats.go.format import go  # noqa: PLC0415 - as above

    return go()


def _helm(_config: Config) -> Format:
    from pkgrepo.formats.helm.format import helm  # noqa: PLC0415 - as above

    return helm()


def _maven(_config: Config) -> Format:
    from pkgrepo.formats.maven.format import maven  # noqa: PLC0415 - as above

    return maven()


def _npm(_config: Config) -> Format:
    from pkgrepo.formats.npm.format import npm  # noqa: PLC0415 - as above

    return npm()


def _python(_config: Config) -> Format:
    from pkgrepo.formats.python.format import python  # noqa: PLC0415 - as above

    return python()


def _raw(_config: Config) -> Format:
    from pkgrepo.formats.raw.format import raw  # noqa: PLC0415 - as above

    return raw()


def _ruby(_config: Config) -> Format:
    from pkgrepo.formats.rubygems.format import ruby  # noqa: PLC0415 - as above

    return ruby()


# The facts of each format of the server, and what makes it. A new format is added here and nowhere else.
FORMATS: Final[list[tuple[FormatFacts, Callable[[Config], Format]]]] = [
    (cargo.FACTS, _cargo),
    (conda.FACTS, _conda),
    (container.FACTS, _container),
    (go.FACTS, _go),
    (helm.FACTS, _helm),
    (maven.FACTS, _maven),
    (npm.FACTS, _npm),
    (python.FACTS, _python),
    (raw.FACTS, _raw),
    (rubygems.FACTS, _ruby),
]


def make_formats(config: Config, loaded: Callable[[Format], None] = lambda _: None) -> dict[str, Format]:
    """Every format of the server, by name; of each only the facts are there, see L{LateFormat}."""
    formats = [LateFormat(facts, partial(make, config), loaded) for facts, make in FORMATS]
    make_known({each.name: each.rights for each in formats})
    return {each.name: each for each in formats}


log = Logger()

# Fetched documents or files that wait to be stored: an install has hundreds. A small one is in memory until then, a
# larger one has two descriptors.
MOST_WAITING = 512
MOST_WAITING_BYTES = 16 * 1024 * 1024
SPOOL = "spool"  # name of the folder in the data folder for temporary files of storages in buckets
KEY_FILE = "credentials.key"  # name of the file in the data folder


class Core:
    """
    Catalog, blob stores, repositories and formats, without a network. Offline commands use only this.

    ``peers`` are the other worker processes of a server, which are in ``workers``, too; None: it is not one of several.
    With a database for several nodes ``nodes`` are its processes.
    """

    def __init__(self, config: Config, reactor: Any, peers: Peers | None = None) -> None:
        self.config = config
        self.reactor = reactor
        self.pools = Pools(reactor)
        self.catalog = make_catalog(config, reactor)
        self.nodes = nodes_of(self.catalog)
        self.workers = peers
        self.lease_folder = config.database_path.parent if config.database_path else config.data.dir
        self.peers = peers_of(self.catalog, peers, reactor)
        self.clock = clock_of(self.catalog)
        malware_of = config.advisories.source if config.advisories.block_malware else ""
        self.registry = Registry(self.catalog, AddressTable(config.hosts, config.aliases), malware_of)
        self.stores = Stores(self._open_store)
        self.alone = True  # whether no other node ran when this one started
        self.exclusive_since: dict[int, datetime] = {}
        self._buckets: list[BucketBlobStore] = []
        self._process_locks: dict[Path, ProcessLock] = {}
        known = config.advisories
        self.advisories = KnownAdvisories(self.catalog, self.clock, source=known.source, max_age_s=known.max_age_s)
        self.downloads = DownloadRecorder(
            catalog=self.catalog,
            clock=self.clock,
            reactor=reactor,
            log_days=config.downloads.log_days,
            addressed=config.downloads.log_addresses,
        )
        permits = None if peers is None else self.lease_folder / "password-permits"
        hashing = HashingThreads(self.pools.add("password", PERMITS), permits)
        self.passwords = Passwords(hashing, reactor, parallel=PERMITS, min_length=config.auth.password_min)
        self.images = ImageAddresses(self.registry, default=config.container.default_repository)
        self.on_format: Callable[[Format], None] = lambda _: None  # called when one is loaded later, in the reactor
        self.formats = make_formats(config, self._format_loaded)
        self.companions = Companions(self.formats)
        self.context = MaintenanceContext(
            catalog=self.catalog,
            registry=self.registry,
            stores=self.stores,
            pools=self.pools,
            clock=self.clock,
            formats=self.formats,
        )
        self.mender = Mender(self.context, partial(backed_up, config, self.pools))
        self.first_reads = FirstReads(self.pools, self.mender.told)
        self.follower = LayoutFollower(self.context)
        self.descriptions = Descriptions(self.catalog, reactor)
        self.relay = (
            None if isinstance(self.peers, NoPeers) else ChangeRelay(self.follow, self.registry, self.peers, reactor)
        )
        self.on_change: ChangeListener = self.follow if self.relay is None else self.relay.notify
        self.batch_delay = BatchDelay(reactor, config.proxy.store_delay_s, MOST_WAITING, MOST_WAITING_BYTES)
        self.content = ContentWriter(
            catalog=self.catalog,
            registry=self.registry,
            stores=self.stores,
            clock=self.clock,
            on_change=self.on_change,
            delay=self.batch_delay,
            opening=partial(held_opening, self.formats),
        )
        self.retention = RetentionWork(self.context, self.content)
        self.collector = GarbageCollector(self.context, on_change=self.on_change)
        self._leases = KeyLeases(self.lease_folder / "jobs")
        self.jobs = Jobs(catalog=self.catalog, clock=self.clock, reactor=reactor, leases=self._leases)

    @cached_property
    def trusted_root(self) -> TrustedRoot:
        """That by which attestations are verified. :raises Invalid: the file of the settings cannot be read"""
        return root_of(self.config.auth.trusted_root)

    def loaded_formats(self) -> list[Format]:
        """The formats that are loaded."""
        return [each for each in self.formats.values() if each.is_loaded]

    def load_used_formats(self) -> None:
        """Load the formats of all repositories; blocks."""
        for name in {each.format for each in self.registry.all()} & self.formats.keys():
            self.formats[name].load()

    def _format_loaded(self, format_: Format) -> None:
        self.reactor.callFromThread(lambda: self.on_format(format_))

    def follow(self, repository: Repository | None = None) -> None:
        """Have the events followed that may have come: for the readable layout, and for what searches know."""
        self.follower.notify(repository)
        self.descriptions.notify()

    async def start(self) -> None:
        """Open the catalog. :raises PkgrepoError: it cannot be used, or a setting of a format is invalid"""
        if self.config.container.trusted_keys:  # which are read
            self.formats[container.FACTS.name].load()
        for each in self.loaded_formats():
            each.check_settings()
        data = self.config.data
        data.dir.mkdir(parents=True, exist_ok=True, mode=0o750)
        self.pools.start()
        await self.catalog.start()
        uid: str | None = await self.catalog.look(settings.server_uid)
        if uid is None:
            uid = await self.catalog.write(settings.ensure_server_uid)
        home = None if self.nodes is None else await self.nodes.database()
        place = home or await self.pools.disk(_place_of, self.config.database_path)
        proxy_loop.use_key(f"{uid} {place}")
        self.folders = StorageFolders(data.dir, uid, Durability(data.fsync), new=data.storages, home=home)
        self.secrets: SecretBox = await self.pools.disk(SecretBox.load, data.dir / KEY_FILE)
        self.buckets = StorageBuckets(
            secrets=self.secrets, pools=self.pools, spool=data.dir / SPOOL, low_water=data.low_water
        )

    async def open_storages(self) -> None:
        """
        Open every storage. Paths inside the data folder are stored relative to it from now on.

        One in a bucket that does not answer is opened later, by the first request for it.

        :raises Conflict: one is missing, or belongs to another catalog; :raises StorageFailed: one cannot be opened
        """
        await self.registry.refresh()
        for storage in self.registry.storages():
            if not storage.is_local or storage.before is not None:
                await self._open_bucket(storage)
                continue
            await self.stores.open(storage)
            path = self.folders.spell(self.folders.folder(storage))
            if path != storage.settings["path"]:
                changed = {**storage.settings, "path": path}
                await self.catalog.write(
                    storages.update_storage, storage.id, settings=changed, now_ms=self.clock.now_ms()
                )

    async def stop(self) -> None:
        """Finish the work in progress, then close everything."""
        await self.wait_idle()
        for bucket in self._buckets:
            await bucket.stop()
        await self.catalog.stop()
        await self.pools.stop()
        self._leases.close()
        for lock in self._process_locks.values():
            lock.release()

    async def wait_idle(self) -> None:
        """
        Wait for work whose client has disconnected: uploads are kept or removed, publishes finished.

        No other code waits for that work. Each of its steps waits for a thread or the catalog and starts the next step
        in the same reactor turn, so when both are idle after a turn, the work is done.
        """
        while any([await self.catalog.wait_idle(), await self.pools.wait_idle()]):
            next_turn: Deferred[None] = Deferred()
            self.reactor.callLater(0, next_turn.callback, None)
            await next_turn

    async def _open_bucket(self, storage: Storage) -> None:
        try:
            await self.stores.open(storage)
        except StorageFailed as error:
            log.warn("storage {storage} is opened later: {error}", storage=storage.name, error=str(error))

    async def _open_store(self, storage: Storage) -> IBlobStore:
        place, before = await self._open_place(storage), storage.before
        return place if before is None else MovingBlobStore(await self._open_place(before), place)

    async def _open_place(self, storage: Storage) -> FilesystemBlobStore | BucketBlobStore:
        if not storage.is_local:
            store = await self.buckets.open(storage)
            self._buckets.append(store)
            return store
        return await self._open_folder(storage)

    async def _open_folder(self, storage: Storage) -> FilesystemBlobStore:
        folder = self.folders.folder(storage)
        try:
            await self.pools.disk(self.folders.check, storage.name, storage.uid, folder)
        except OSError as error:
            raise storage_error(storage.name, error) from error
        store = FilesystemBlobStore(
            folder,
            name=storage.name,
            pools=self.pools,
            uid=storage.uid,
            low_water=self.config.data.low_water,
            fsync=self.config.data.fsync,
        )
        await store.start(create=False)
        await self._lock_folder(storage.id, store.paths.root)
        try:
            await self.pools.disk(self.folders.claim, folder)
            await self.pools.disk(self.folders.add_to_list, storage)
        except OSError as error:
            if not is_out_of_descriptors(error):
                log.failure("storage {storage} could not be noted as one of this catalog", storage=storage.name)
        return store

    async def _lock_folder(self, storage_id: int, root: Path) -> None:
        """Lock the folder of a storage for this process; an earlier lock of the same folder is released afterwards."""
        lock = ProcessLock(root)
        since = await self.pools.disk(lock.acquire)
        if since is not None and self.alone:
            self.exclusive_since[storage_id] = since
        earlier = self._process_locks.get(root)
        if earlier is None or lock.is_open:
            self._process_locks[root] = lock
            if earlier is not None:
                earlier.release()


def _place_of(path: Path | None) -> str:
    """A text that all processes with this database file share, and those of a copy of it do not."""
    boot = ""
    with suppress(OSError):
        boot = boot_id()
    found = os.stat(path or os.devnull)
    return f"{boot} {found.st_dev} {found.st_ino}"
