"""
The folders of the storages: where they are, and whether they belong to this catalog.

The catalog stores the path of a storage inside the data folder relative to it, so that a data folder can be moved
and copied. The file ``owner.json`` in a storage's folder has the id of the catalog that the storage belongs to. For a
storage outside of the data folder it also has the path of that data folder, because a copied catalog has the same id.
The catalog of several nodes, each with a data folder, has instead what distinguishes its database from a copy. It also
opens the storages of a catalog that was in the node's own data folder, from which it was copied.

=======================  ====================================  ====================================================
the storage's folder is  ``owner.json`` names                   the storage belongs to
=======================  ====================================  ====================================================
in the data folder       nothing, or this catalog              this catalog
in the data folder       another catalog                       a lost catalog; ``reindex`` takes the storage over
elsewhere                this catalog, and this data folder    this catalog
                         or this database
elsewhere                nothing; not in another data folder   this catalog, which writes the file on opening
elsewhere                anything else                         another catalog; it is not opened until
                                                               ``storage adopt``
=======================  ====================================  ====================================================

The file ``storages.json`` beside the database lists the storages and where they are. It is written when a storage is
opened or removed, and read only to rebuild a lost catalog.

Symbolic links are resolved before a folder is compared with the data folder. Every method blocks.
"""

from __future__ import annotations

import fcntl
import os
import shlex
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from pkgrepo.errors import Conflict
from pkgrepo.model import Storage
from pkgrepo.small_files import replace_file
from pkgrepo.storage.blobs.durability import Durability
from pkgrepo.storage.blobs.paths import StorePaths, find_storage_id
from pkgrepo.untrusted.strict_json import ERRORS

STORAGES_JSON = "storages.json"


OWNER = "owner.json"
DATABASE = "pkgrepo.db"


class StorageEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A storage; ``uid`` is also in its folder, ``path`` may be relative to the data folder."""

    uid: str
    name: str
    path: str


class StoragesFile:
    """The file in ``folder``. Every method blocks. A file lock serialises the changes of several processes."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / STORAGES_JSON

    def list(self) -> list[StorageEntry]:
        """
        Return the storages, sorted by name; none if the file is missing or damaged.

        :raises OSError: it cannot be read
        """
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=list[StorageEntry])
        except (FileNotFoundError, *ERRORS):
            return []

    def add(self, storage: StorageEntry) -> None:
        """
        Add a storage, or replace its entry; entries of an earlier catalog stay.

        :raises OSError: it could not be written
        """
        self._change(lambda listed: listed | {storage.uid: storage})

    def remove(self, uid: str) -> None:
        """Remove a storage. :raises OSError: it could not be written"""
        self._change(lambda listed: {key: each for key, each in listed.items() if key != uid})

    def _change(self, change: Callable[[dict[str, StorageEntry]], dict[str, StorageEntry]]) -> None:
        with _exclusive_lock(self._path.parent):
            before = {each.uid: each for each in self.list()}
            after = change(before)
            if after == before:
                return
            listed = sorted(after.values(), key=lambda each: (each.name, each.uid))
            replace_file(self._path, msgspec.json.format(msgspec.json.encode(listed), indent=1) + b"\n")


@contextmanager
def _exclusive_lock(folder: Path) -> Iterator[None]:
    """Lock the folder, so that no other process changes the file meanwhile."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


class Owner(msgspec.Struct, frozen=True):
    """
    The content of ``owner.json``.

    ``data`` is the resolved data folder or the database, None for a storage inside the data folder.
    """

    catalog: str
    data: str | None = None


class StorageFolders:
    """
    The storages of the catalog with the id ``catalog_uid`` and the data folder ``data``.

    ``new`` is the folder of storages that are made without a path, ``storages`` in the data folder unless it is given.
    ``home`` is the database of a catalog that is not in the data folder.
    """

    def __init__(
        self,
        data: Path,
        catalog_uid: str,
        durability: Durability,
        *,
        new: Path | None = None,
        home: str | None = None,
    ) -> None:
        self.data = data.absolute()
        self._new = Path("storages") if new is None else new.absolute()
        self._home = home
        self._catalog_uid = catalog_uid
        self._durability = durability
        self._file = StoragesFile(self.data)

    def locate(self, path: str) -> Path:
        """Return the folder for the path of a storage as the catalog stores it."""
        return self.data / path

    def locate_new(self, name: str) -> Path:
        """Return the folder of a new storage that is given no path."""
        return self.data / self._new / name

    def folder(self, storage: Storage) -> Path:
        """Return the folder of a storage. :raises Conflict: it is in a bucket"""
        if not storage.is_local:
            raise Conflict(f"storage {storage.name!r} is in a bucket and has no folder")
        return self.locate(str(storage.settings["path"]))

    def spell(self, folder: Path) -> str:
        """Return the path of a folder as the catalog stores it: relative if it is inside the data folder."""
        folder = self.data / folder
        if ".." in folder.parts:
            folder = folder.resolve()
        for below, path in ((self.data, folder), (self.data.resolve(), folder.resolve())):
            if path.is_relative_to(below):
                return str(path.relative_to(below))
        return str(folder)

    def check(self, name: str, uid: str, folder: Path) -> None:
        """
        Check that the folder holds the storage with the id ``uid``, and that it belongs to this catalog.

        :raises Conflict: otherwise; the message says what can be done
        """
        found = find_storage_id(folder)
        if found is None:
            raise Conflict(
                f"storage {name!r} is not at {folder}, and nothing is made there: mount or restore that folder, or "
                f"tell with 'pkgrepo storage move {name} PATH' where it is (with --empty, to begin an empty one)"
            )
        if found != uid:
            raise Conflict(f"{folder} belongs to storage {found}, not to {uid}; is another disk mounted there?")
        self.check_owner(name, folder)

    def check_owner(self, name: str, folder: Path) -> None:
        """Check that a storage belongs to this catalog. :raises Conflict: otherwise, with what can be done about it"""
        if self.owns(folder):
            return
        if self._inside(folder):
            owner, first = "an earlier catalog", "'pkgrepo reindex' builds that one again from what it holds"
            adopted = name
        else:
            owner = f"the catalog in {self._data_of(folder) or 'another data folder'}"
            first = f"'pkgrepo storage move {name} PATH' uses another folder, such as a copy of this one"
            adopted = f"{name} {shlex.quote(str(folder))}"  # a catalog that is rebuilt does not have its path yet
        raise Conflict(
            f"storage {name!r} at {folder} belongs to {owner}: {first}; 'pkgrepo storage adopt {adopted}' takes this "
            f"one over for good"
        )

    def owns(self, folder: Path) -> bool:
        """Whether this catalog may open the storage there."""
        owner = _owner(folder)
        if owner is None:
            # The file is not read again: another node of this catalog may write it just now.
            return self._inside(folder) or _catalog_above(folder) is None
        if owner.catalog != self._catalog_uid:
            return False
        return self._inside(folder) or owner.data in (self._own_home(), str(self.data.resolve()))

    def take_over(self, name: str, folder: Path) -> None:
        """
        Make a storage of a lost catalog belong to this one.

        :raises Conflict: it is outside of the data folder, and its catalog still exists
        """
        if not self._inside(folder) and not self.owns(folder):
            data = self._data_of(folder)
            if data is not None and data != str(self.data.resolve()) and (_is_database(data) or _has_catalog(data)):
                self.check_owner(name, folder)
        self.claim(folder)

    def make(self, name: str, folder: Path, uid: str | None = None) -> str:
        """
        Create the folder of a new storage, or check an existing one. Returns the storage's id.

        :raises Conflict: the folder holds other things, or belongs to another storage or another catalog
        :raises OSError: it cannot be created
        """
        if find_storage_id(folder) is not None:
            self.check_owner(name, folder)
        uid = StorePaths(folder).prepare(self._durability, uid)
        self.claim(folder)
        return uid

    def find_empty(self, folder: Path) -> str | None:
        """
        Return the id of a storage of this catalog that has no blobs in this folder, or None.

        Such a folder is left when the storage could not be added to the catalog after its folder was created.

        :raises Conflict: its owner file is damaged; :raises OSError: its id cannot be read
        """
        uid = find_storage_id(folder)
        if uid is None or not self.owns(folder):
            return None
        return None if any(files for _, _, files in os.walk(StorePaths(folder).blobs)) else uid

    def claim(self, folder: Path) -> None:
        """
        Make a storage belong to this catalog, whatever catalog it belonged to.

        :raises OSError: the owner file cannot be written
        """
        owner = Owner(self._catalog_uid, None if self._inside(folder) else self._own_home())
        if _owner(folder) != owner:
            replace_file(folder / OWNER, msgspec.json.encode(owner) + b"\n")

    def check_free(self, folder: Path, others: Iterable[Storage]) -> None:
        """
        Check that a folder neither contains the folder of one of ``others`` nor lies in it; buckets have none.

        :raises Conflict: it does
        """
        path = folder.resolve()
        for other in (each for each in others if each.is_local):
            taken = self.folder(other).resolve()
            if path == taken or path in taken.parents or taken in path.parents:
                raise Conflict(f"the folder overlaps with that of storage {other.name!r}")

    def listed(self) -> list[StorageEntry]:
        """Return the storages in ``storages.json``. :raises OSError: it cannot be read"""
        return self._file.list()

    def add_to_list(self, storage: Storage) -> None:
        """Add a storage to ``storages.json``. :raises OSError: it could not be written"""
        path = self.spell(self.folder(storage))
        self._file.add(StorageEntry(uid=storage.uid, name=storage.name, path=path))

    def remove_from_list(self, uid: str) -> None:
        """Remove a storage from ``storages.json``. :raises OSError: it could not be written"""
        self._file.remove(uid)

    def _inside(self, folder: Path) -> bool:
        return folder.resolve().is_relative_to(self.data.resolve())

    def _own_home(self) -> str:
        return self._home or str(self.data.resolve())

    def _data_of(self, folder: Path) -> str | None:
        """Return the data folder or the database of the catalog that an outside storage belongs to, None if unknown."""
        owner = _owner(folder)
        if owner is not None and owner.data is not None:
            return owner.data
        return _catalog_above(folder)


def _owner(folder: Path) -> Owner | None:
    try:
        return msgspec.json.decode((folder / OWNER).read_bytes(), type=Owner)
    except FileNotFoundError:
        return None
    except ERRORS:
        raise Conflict(
            f"{folder / OWNER} is damaged; remove it to let the storage belong to the server that opens it"
        ) from None


def _catalog_above(folder: Path) -> str | None:
    """Return the data folder that an outside storage lies in, or None."""
    return next((str(each) for each in folder.resolve().parents if _has_catalog(each)), None)


def _is_database(home: str) -> bool:
    return not os.path.isabs(home)


def _has_catalog(folder: str | Path) -> bool:
    return any(os.path.exists(os.path.join(folder, name)) for name in (DATABASE, STORAGES_JSON))
