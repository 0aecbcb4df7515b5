"""A cache of all storages and repositories."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import Factory, frozen

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.model import Repository, RepositoryType, Storage
from pkgrepo.repositories.addresses import AddressTable, stored_addresses
from pkgrepo.storage.catalog.advisories import find_load
from pkgrepo.storage.catalog.malware import read_names
from pkgrepo.storage.catalog.rows import load
from pkgrepo.storage.catalog.server import quotas, repositories, settings, storages
from pkgrepo.storage.catalog.server.policy import StoredPolicy, read_policy
from pkgrepo.storage.catalog.snapshot import Snapshot


@frozen
class _Configuration:
    """All storages, repositories and addresses, as of a serial of the configuration; None is that of no catalog."""

    serial: int | None = None
    repositories: Mapping[tuple[str, str], Repository] = Factory(dict)
    by_uid: Mapping[str, Repository] = Factory(dict)
    by_id: Mapping[int, Repository] = Factory(dict)
    staged: Mapping[tuple[str, RepositoryType], Repository] = Factory(dict)
    storages: Mapping[int, Storage] = Factory(dict)
    limited: bool = False
    configured: AddressTable = Factory(AddressTable)
    addresses: AddressTable = Factory(AddressTable)
    retention: Mapping[str, Any] | None = None
    policy: StoredPolicy = Factory(StoredPolicy)
    malware_of: str = ""


class Registry:
    """
    The storages and repositories as of the last commit that this process knows of.

    The cache is loaded again when the catalog's configuration serial has changed, also by another process. Names are
    case-insensitive. ``Repository.serial`` and the usage figures in it are those of the last reload.

    Look-ups answer from memory and never wait. If the catalog can answer at once, they reload the cache when needed.
    Otherwise they are as of the last ``refresh``, which every request and every periodic task awaits first.

    ``configured`` are the addresses in the configuration file, which come before those that the API has set. Known
    malware of the advisories from the source ``malware_of`` is blocked; empty: none is.

    ``on_change`` is called, in any thread, after the cache was loaded with something new.
    """

    def __init__(self, catalog: ICatalog, configured: AddressTable | None = None, malware_of: str = "") -> None:
        self.configured = configured or AddressTable()
        none = _Configuration(configured=self.configured, addresses=self.configured, malware_of=malware_of)
        self.on_change: Callable[[], object] = lambda: None
        self._snapshot = Snapshot(catalog, _read, none, self._changed)

    def _changed(self) -> None:
        self.on_change()

    def refresh_now(self) -> bool:
        """Whether what is in memory is of the catalog's current generation, or could be read again at once."""
        return self._snapshot.refresh_now()

    async def refresh(self) -> None:
        """Read the configuration again if it may have changed; requests that wait at the same time share one query."""
        await self._snapshot.refresh()

    @property
    def serial(self) -> int:
        """A number that grows with each change of a storage or repository."""
        return self._snapshot.latest().serial or 0

    @property
    def limited(self) -> bool:
        """Whether there is any quota. The transaction of a publish decides; without any, none is read before it."""
        return self._snapshot.latest().limited

    @property
    def addresses(self) -> AddressTable:
        """The hosts and path prefixes that stand for repositories."""
        return self._snapshot.latest().addresses

    def find_path(self, path: str) -> Repository | None:
        """Return the repository at a path as ``storage/name``, or None."""
        storage, _, name = path.partition("/")
        return self.find(storage, name)

    @property
    def retention(self) -> Mapping[str, Any] | None:
        """The rules of retention that hold for every repository, in the form of a configuration; None without any."""
        return self._snapshot.latest().retention

    @property
    def policy(self) -> StoredPolicy:
        """The rules of the server, blocks, and decisions on what is in quarantine."""
        return self._snapshot.latest().policy

    def find(self, storage: str, name: str) -> Repository | None:
        """Return the repository at ``storage/name``, or None."""
        return self._snapshot.latest().repositories.get((storage.casefold(), name.casefold()))

    def find_uid(self, uid: str) -> Repository | None:
        """Return the repository with this public id, or None."""
        return self._snapshot.latest().by_uid.get(uid)

    def find_id(self, repository_id: int) -> Repository | None:
        """Return the repository with this catalog key, or None."""
        return self._snapshot.latest().by_id.get(repository_id)

    def all(self) -> list[Repository]:
        """Return all repositories, sorted by path."""
        return sorted(self._snapshot.latest().by_uid.values(), key=lambda repository: repository.path)

    def listed(self) -> list[Repository]:
        """Return all repositories that stand for themselves, sorted by path: no companions, and none of a stage."""
        return [each for each in self.all() if each.parent is None]

    def companions_of(self, parent: Repository) -> list[Repository]:
        """Return the companions of a repository, sorted by path."""
        return [
            each for each in self.all() if each.is_companion and each.parent is not None and each.parent.id == parent.id
        ]

    def of_stage(self, stage: str, type: RepositoryType) -> Repository | None:
        """Return the repository of a type that a stage has, or None if the stage has ended."""
        return self._snapshot.latest().staged.get((stage, type))

    def find_folder(self, storage: str, folder: str) -> Repository | None:
        """Return the repository of a folder in the readable layout, or None; see L{Repository.folder}."""
        return self.find(storage, folder.replace(".", "/"))

    def storages(self) -> list[Storage]:
        """Return all storages, sorted by name."""
        return sorted(self._snapshot.latest().storages.values(), key=lambda storage: storage.name)

    def storage(self, storage_id: int) -> Storage:
        """Return the storage with this catalog key. :raises NotFound: it was removed"""
        found = self._snapshot.latest().storages.get(storage_id)
        if found is None:
            raise NotFound("storage", str(storage_id))
        return found


def _read(reader: Reader, before: _Configuration) -> _Configuration:
    serial = repositories.config_serial(reader)
    if serial == before.serial:
        return before
    every, retention = repositories.all_repositories(reader), settings.get(reader, settings.RETENTION)
    return _Configuration(
        serial=serial,
        repositories={(r.storage_name.casefold(), r.name.casefold()): r for r in every},
        by_uid={r.uid: r for r in every},
        by_id={r.id: r for r in every},
        staged={(r.stage, r.type): r for r in every if r.stage is not None and not r.is_companion},
        storages={s.id: s for s in storages.list_storages(reader)},
        limited=quotas.any_limits(reader),
        configured=before.configured,
        addresses=stored_addresses(reader).joined(before.configured),
        retention=None if retention is None else load(retention),
        policy=_policy(reader, before),
        malware_of=before.malware_of,
    )


def _policy(reader: Reader, before: _Configuration) -> StoredPolicy:
    loaded = find_load(reader)
    if loaded is None:
        return read_policy(reader)
    known = (loaded.exported_ms, loaded.changes)
    if before.malware_of != loaded.source:
        return read_policy(reader, known)
    unchanged = before.policy.malware if before.policy.advisories == known else None
    return read_policy(reader, known, unchanged or read_names(reader))
