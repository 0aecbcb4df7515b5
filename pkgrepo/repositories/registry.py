"""Which storages and repositories exist, answered from memory."""

from __future__ import annotations

from pkgrepo.errors import NotFound
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Repository, Storage
from pkgrepo.storage.catalog.server import repositories, storages


class Registry:
    """
    The configuration of storages and repositories as of the last commit.

    The catalog's configuration serial decides when the copy is read again, so that several processes agree. Names
    are found whatever their case; ``Repository.serial`` and the usage figures in it are those of the last reload.
    """

    def __init__(self, catalog: ICatalog) -> None:
        self._catalog = catalog
        self._generation: int | None = None
        self._serial: int | None = None
        self._repositories: dict[tuple[str, str], Repository] = {}
        self._by_uid: dict[str, Repository] = {}
        self._by_id: dict[int, Repository] = {}
        self._storages: dict[int, Storage] = {}

    @property
    def serial(self) -> int:
        """A number that grows with every change of configuration."""
        self._refresh()
        return self._serial or 0

    def find(self, storage: str, name: str) -> Repository | None:
        """The repository at ``storage/name``, or None."""
        self._refresh()
        return self._repositories.get((storage.casefold(), name.casefold()))

    def find_uid(self, uid: str) -> Repository | None:
        """The repository with this id, or None."""
        self._refresh()
        return self._by_uid.get(uid)

    def find_id(self, repository_id: int) -> Repository | None:
        """The repository with this catalog key, or None."""
        self._refresh()
        return self._by_id.get(repository_id)

    def all(self) -> list[Repository]:
        """Every repository, by path."""
        self._refresh()
        return sorted(self._by_uid.values(), key=lambda repository: repository.path)

    def storages(self) -> list[Storage]:
        """Every storage, by name."""
        self._refresh()
        return sorted(self._storages.values(), key=lambda storage: storage.name)

    def storage(self, storage_id: int) -> Storage:
        """The storage with this catalog key. :raises NotFound: it was removed"""
        self._refresh()
        found = self._storages.get(storage_id)
        if found is None:
            raise NotFound("storage", str(storage_id))
        return found

    def _refresh(self) -> None:
        generation = self._catalog.generation()
        if generation == self._generation:
            return
        serial = self._catalog.look_inline(repositories.config_serial)
        if serial != self._serial:
            self._load()
        self._serial, self._generation = serial, generation

    def _load(self) -> None:
        every = self._catalog.look_inline(repositories.all_repositories)
        self._repositories = {(r.storage_name.casefold(), r.name.casefold()): r for r in every}
        self._by_uid = {r.uid: r for r in every}
        self._by_id = {r.id: r for r in every}
        self._storages = {s.id: s for s in self._catalog.look_inline(storages.list_storages)}
