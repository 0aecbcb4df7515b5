"""
Opens connections to PostgreSQL, with the same settings everywhere, and names the errors of the server.

==========================  ==================================================================================
setting                     why
==========================  ==================================================================================
repeatable read, read only  a query of several statements reads one snapshot, and cannot change anything
connect timeout             a node that does not answer is given up
TCP user timeout            so is one that vanished without closing its connections
idle in transaction         a writer that was paused loses its turn, so that the other nodes go on
statement timeout           a writer waits that long for its turn, and a statement runs that long
keepalives                  the locks of a node that vanished are released
target session attributes   of several hosts in the address, the primary, or a replica where one is wanted
==========================  ==================================================================================

Parameters are sent without a type, so that the server infers it as the dialect says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import psycopg
from attrs import field, frozen
from psycopg import RawCursor, errors
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Dumper, Loader
from psycopg.types.string import StrDumperUnknown

from pkgrepo.errors import Invalid, PkgrepoError, StorageFailed, StorageFull

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


CONNECT_TIMEOUT_S: Final = 5
REPLICA_TIMEOUT_S: Final = 2  # the primary answers what it does not
LOST_AFTER_MS: Final = 10_000  # milliseconds without an acknowledgement of what was sent
STATEMENT_TIMEOUT_MS: Final = 30_000
IDLE_IN_TRANSACTION_MS: Final = 5_000
KEEPALIVE_S: Final = 5  # how often the server asks a machine whose connection is idle whether it is there
KEEPALIVES: Final = 4  # unanswered ones, after which it ends the connection: later than this side, LOST_AFTER_MS
STATEMENTS: Final = 400  # prepared statements kept by a connection; all statements of the program fit
PREPARED_AFTER: Final = 2  # executions from which a statement is prepared
READING: Final[Mapping[str, Any]] = {
    "default_transaction_isolation": "repeatable\\ read",
    "default_transaction_read_only": "on",
}
Session = psycopg.Connection[tuple[Any, ...]]


@frozen
class Pace:
    """How long a catalog waits for others, in seconds, and how often it tries."""

    patience_s: float = 0.25  # for other processes to hear of a commit
    trusted_s: float = 4.0  # a token that another node revokes is dead here within this and RECHECK_S
    look_s: float = 2.0  # for a short query of a replica
    away_s: float = 5.0  # without asking a replica that has failed
    attempts: int = 5  # of a transaction that conflicts with one of another program


PACE: Final = Pace()


def explain(error: psycopg.Error) -> PkgrepoError:
    """Return the domain error for an error that prevented a commit or a read, with its cause."""
    explained = StorageFull(NAME) if isinstance(error, errors.DiskFull) else StorageFailed(NAME)
    explained.__cause__ = error
    return explained


def first_line(error: psycopg.Error) -> str:
    """Return what the server said, without its details."""
    return str(error).partition("\n")[0]


@frozen
class Address:
    """A connection string of libpq, and the password, which is never shown."""

    url: str
    password: str | None = field(default=None, repr=False)


class _IntegerDumper(Dumper):
    """Integers, and truth values as 1 and 0."""

    def dump(self, obj: int) -> Buffer:
        return str(int(obj)).encode("ascii")

    def quote(self, obj: int) -> Buffer:
        return self.dump(obj)


class _TextDumper(StrDumperUnknown):
    """Texts; PostgreSQL has none with NUL characters."""

    def dump(self, obj: str) -> Buffer | None:
        if "\0" in obj:
            raise Invalid("a text must not contain NUL characters")
        return super().dump(obj)


class _NumericLoader(Loader):
    """Sums of integers, which PostgreSQL gives as numerics."""

    def load(self, data: Buffer) -> int | float:
        text = bytes(data)
        return float(text) if b"." in text else int(text)


def _adapters() -> AdaptersMap:
    adapters = AdaptersMap(psycopg.adapters)
    for kind in (int, bool):
        adapters.register_dumper(kind, _IntegerDumper)
    adapters.register_dumper(str, _TextDumper)
    adapters.register_loader("numeric", _NumericLoader)
    return adapters


class _Adapted:
    """What psycopg asks for adapters."""

    adapters: Final = _adapters()
    connection: Final = None


def open_reader(address: Address) -> Session:
    """
    Open a connection to the primary on which nothing can be written. :raises psycopg.Error: that is not possible

    Of several hosts none is a replica, which may lag: only ``open_replica`` is for those who ask how far it is.
    """
    return _open(address, "primary", **READING)


def open_replica(address: Address) -> Session:
    """Open a connection to a replica. :raises psycopg.Error: as above"""
    return _open(address, "standby", connect_timeout=REPLICA_TIMEOUT_S, **READING)


def open_writer(address: Address, idle_in_transaction_ms: int = IDLE_IN_TRANSACTION_MS) -> Session:
    """Open a connection for writing. :raises psycopg.Error: that is not possible"""
    return _open(
        address,
        "read-write",
        default_transaction_isolation="read\\ committed",
        idle_in_transaction_session_timeout=idle_in_transaction_ms,
        synchronous_commit="on",
    )


def open_listener(address: Address) -> Session:
    """Open a connection for notifications, none of which need be on a disk. :raises psycopg.Error: as above"""
    return _open(address, "read-write", synchronous_commit="off")


def open_member(address: Address) -> Session:
    """Open a connection for locks, which the server ends when this machine vanishes. :raises psycopg.Error: as above"""
    return _open(
        address,
        "read-write",
        idle_session_timeout=0,
        tcp_keepalives_idle=KEEPALIVE_S,
        tcp_keepalives_interval=KEEPALIVE_S,
        tcp_keepalives_count=KEEPALIVES,
    )


def _open(
    address: Address, attributes: str, *, connect_timeout: int = CONNECT_TIMEOUT_S, **settings: object
) -> Session:
    settings["statement_timeout"] = STATEMENT_TIMEOUT_MS
    try:
        connection = psycopg.connect(
            address.url,
            password=address.password,
            autocommit=True,
            context=_Adapted(),
            cursor_factory=RawCursor,
            prepare_threshold=PREPARED_AFTER,
            connect_timeout=connect_timeout,
            tcp_user_timeout=LOST_AFTER_MS,
            target_session_attrs=attributes,
            application_name="pkgrepo",
            options=" ".join(f"-c {name}={value}" for name, value in settings.items()),
        )
    except psycopg.ProgrammingError:  # its text may have all of the address, and what was mistyped may be a password
        raise psycopg.OperationalError("the address of the database is not valid") from None
    connection.prepared_max = STATEMENTS
    return connection
