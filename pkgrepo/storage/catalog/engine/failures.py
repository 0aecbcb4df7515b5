"""Which errors of SQLite speak of the disk or the file, and what they are called in the domain."""

from __future__ import annotations

import apsw

from pkgrepo.errors import PkgrepoError, StorageFailed, StorageFull

NAME = "catalog"  # what the domain errors call the storage that the catalog itself is on

# After one of these SQLite may have rolled the whole transaction back, so nobody in it can go on.
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
    """The domain's error for what kept a batch from being committed, with the cause attached."""
    explained = StorageFull(NAME) if isinstance(error, apsw.FullError) else StorageFailed(NAME)
    explained.__cause__ = error
    return explained
