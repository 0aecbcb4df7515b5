"""Single values that all processes share: secrets, serials, cursors."""

from __future__ import annotations

import secrets
import uuid

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import number

CONFIG_SERIAL = "config_serial"
SERVER_UID = "server_uid"
UNCLAIMED_BEFORE = "unclaimed_before"  # ms; of copies from before, a reindex could not tell what they are of


def get(r: Reader, key: str) -> str | None:
    """The value under a key, or None."""
    row = r.one("SELECT value FROM setting WHERE key = ?", (key,))
    return None if row is None else str(row[0])


def put(tx: Transaction, key: str, value: str) -> None:
    """Set the value under a key."""
    tx.execute(
        "INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def ensure_secret(tx: Transaction, key: str) -> str:
    """The secret under a key, 256 random bits made at the first call; every process gets the same one."""
    return _ensure(tx, key, secrets.token_urlsafe(32))


def ensure_server_uid(tx: Transaction) -> str:
    """The id of this installation, made at the first call."""
    return _ensure(tx, SERVER_UID, str(uuid.uuid4()))


def server_uid(r: Reader) -> str | None:
    """The id of this installation, or None before it was made."""
    return get(r, SERVER_UID)


def grow(tx: Transaction, key: str) -> int:
    """Add one to the serial under a key, which starts at nought; the new value."""
    return number(
        tx,
        """
        INSERT INTO setting (key, value) VALUES (?, '1')
        ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(setting.value AS BIGINT) + 1 AS TEXT)
        RETURNING value
        """,
        (key,),
    )


def config_changed(tx: Transaction) -> None:
    """Let every process read storages and repositories anew."""
    grow(tx, CONFIG_SERIAL)


def _ensure(tx: Transaction, key: str, fresh: str) -> str:
    tx.execute("INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING", (key, fresh))
    value = get(tx, key)
    assert value is not None
    return value
