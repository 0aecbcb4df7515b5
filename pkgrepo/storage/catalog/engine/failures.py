"""The SQLite errors that come from the disk or the database file, and their domain errors."""

from __future__ import annotations

import apsw

from pkgrepo.errors import PkgrepoError, StorageFailed, StorageFull

NAME = "catalog"  # the storage that the domain errors name

# After one of these SQLite may have rolled back the whole transaction, so no command of the batch can continue.
STORAGE_ERRORS = (
    apsw.FullError,
    apsw.IOError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.NoMemError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    apsw.ProtocolError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.InterruptError,
)


def explain(error: apsw.Error | OSError) -> PkgrepoError:
    """Return the domain error for an error that prevented a commit or a read, with its cause."""
    explained = StorageFull(NAME) if isinstance(error, apsw.FullError) else StorageFailed(NAME)
    explained.__cause__ = error
    return explained
