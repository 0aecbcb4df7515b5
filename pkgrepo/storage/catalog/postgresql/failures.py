"""PostgreSQL's errors that come from the server or the network, and their domain errors."""

from __future__ import annotations

from typing import Final

import psycopg
from psycopg import errors

from pkgrepo.errors import PkgrepoError, StorageFailed, StorageFull

NAME: Final = "catalog"  # the storage that the domain errors name

# Not the fault of a command: the connection, the server, its disk, or a server that has become a standby.
SERVER_ERRORS: Final[tuple[type[psycopg.Error], ...]] = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    errors.ReadOnlySqlTransaction,
    errors.IdleInTransactionSessionTimeout,
)
# The transaction was undone, and succeeds when it runs again.
RETRIED: Final[tuple[type[psycopg.Error], ...]] = (errors.SerializationFailure, errors.DeadlockDetected)


def explain(error: psycopg.Error) -> PkgrepoError:
    """Return the domain error for an error that prevented a commit or a read, with its cause."""
    explained = StorageFull(NAME) if isinstance(error, errors.DiskFull) else StorageFailed(NAME)
    explained.__cause__ = error
    return explained


def first_line(error: psycopg.Error) -> str:
    """Return what the server said, without its details."""
    return str(error).partition("\n")[0]
