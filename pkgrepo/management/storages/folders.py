"""Finds, checks and creates the folders of storages for requests."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import uuid4

from twisted.logger import Logger

from pkgrepo.errors import Invalid, PkgrepoError, TooManyOpenFiles
from pkgrepo.failure_log import is_out_of_descriptors
from pkgrepo.interfaces import ICatalog
from pkgrepo.management.api.services import ManagementServices
from pkgrepo.model import Storage
from pkgrepo.storage.catalog.server import storages

from .schema import NewStorage

log = Logger()


class FolderSetup:
    """Runs methods of L{StorageFolders} in the disk pool; errors that a request can correct become L{Invalid}."""

    def __init__(self, services: ManagementServices) -> None:
        self._folders = services.folders
        self._disk = services.shared.pools.disk
        self._catalog: ICatalog = services.shared.catalog
        self._registry = services.shared.registry

    def path_of(self, body: NewStorage) -> Path:
        """The folder that a request names for a new storage, or the default one."""
        given = body.path or body.settings.path or (body.config.settings.path if body.config else None)
        return self._folders.locate_new(body.name) if given is None else self._folders.locate(given)

    async def check_free(self, path: Path, storage: Storage | None) -> None:
        """
        Check that no storage but this one uses the folder.

        :raises Invalid: the path contains NUL; :raises Conflict: another storage uses the folder
        """
        if "\0" in str(path):
            raise Invalid("a path holds no NUL", "/settings/path")
        others = [each for each in self._registry.storages() if storage is None or each.id != storage.id]
        await self._disk(self._folders.check_free, path, others)

    async def new_uid(self, path: Path) -> str:
        """
        The id for a new storage: that in its folder, if the storage was made there before without success.

        :raises Invalid: the folder cannot be used
        """
        try:
            found = await self._disk(self._folders.find_empty, path)
        except (PkgrepoError, OSError) as error:
            raise _unusable(error) from error
        present = None if found is None else await self._catalog.look(storages.find_storage, found)
        return found if found is not None and present is None else str(uuid4())

    async def make(self, name: str, path: Path, uid: str) -> dict[str, Any]:
        """Make the folder; the settings of a storage there. :raises Invalid: the folder cannot be used"""
        try:
            await self._disk(self._folders.make, name, path, uid)
        except (PkgrepoError, OSError) as error:
            raise _unusable(error) from error
        return {"path": await self._disk(self._folders.spell, path)}

    async def remove_from_list(self, storage: Storage) -> None:
        """Take a removed storage out of ``storages.json``; a failure is logged."""
        try:
            await self._disk(self._folders.remove_from_list, storage.uid)
        except OSError as error:
            if not is_out_of_descriptors(error):
                log.failure("storage {storage} is gone, and stays noted in storages.json", storage=storage.name)


def _unusable(error: PkgrepoError | OSError) -> Exception:
    """Convert an error to L{Invalid}, except a lack of file descriptors, which the request cannot correct."""
    if isinstance(error, TooManyOpenFiles) or (isinstance(error, OSError) and is_out_of_descriptors(error)):
        return error
    why = error.strerror or "the disk failed" if isinstance(error, OSError) else str(error)
    return Invalid(f"the folder cannot be used: {why}", "/settings/path")
