"""Key-value pairs that all processes share (table ``setting``): secrets, serials, cursors."""

from __future__ import annotations

import secrets
import uuid

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.storage.catalog.rows import number, scalar

CONFIG_SERIAL = "config_serial"
SERVER_UID = "server_uid"
CREDENTIALS_KEY = "credentials_key"  # the fingerprint of the key that all nodes have
RETENTION = "retention"  # JSON: the rules of retention that hold for every repository
UNCLAIMED_BEFORE = "unclaimed_before"  # ms; a reindex could not assign every older blob to a package


def get(r: Reader, key: str) -> str | None:
    """The value of a key, or None."""
    return scalar(r, "SELECT value FROM setting WHERE key = ?", (key,))


def put(tx: Transaction, key: str, value: str) -> None:
    """Set the value of a key."""
    tx.execute(
        "INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def remove(tx: Transaction, key: str) -> None:
    """Remove a key, if it has a value."""
    tx.execute("DELETE FROM setting WHERE key = ?", (key,))


def retention_key(repository_uid: str) -> str:
    """The key of the time up to which the schedule of a repository's retention was followed, in ms."""
    return f"{RETENTION}:{repository_uid}"


def mirror_key(repository_uid: str) -> str:
    """The key of the times, as JSON, at which the patterns of a repository's mirror were followed last."""
    return f"mirror:{repository_uid}"


def burst_prefix(repository_uid: str) -> str:
    """What the keys begin with of what is remembered of the publishers of a repository."""
    return f"burst:{repository_uid}:"


def remove_all(tx: Transaction, prefix: str) -> None:
    """Remove all keys that begin with a text, which does not end with the highest character."""
    tx.execute("DELETE FROM setting WHERE key >= ? AND key < ?", (prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)))


def set_retention(tx: Transaction, rules: str | None) -> None:
    """Set the rules of retention that hold for every repository, as JSON; None removes them."""
    if rules is None:
        remove(tx, RETENTION)
    else:
        put(tx, RETENTION, rules)
    bump_config_serial(tx)


def ensure_secret(tx: Transaction, key: str) -> str:
    """The secret of a key: 256 random bits, created by the first call, the same for every process."""
    return ensure(tx, key, secrets.token_urlsafe(32))


def ensure_server_uid(tx: Transaction) -> str:
    """The id of this installation, created by the first call."""
    return ensure(tx, SERVER_UID, str(uuid.uuid4()))


def ensure_credentials_key(tx: Transaction, fingerprint: str, *, alone: bool) -> str:
    """The fingerprint of the nodes' key: that of the first one, or the given one if no other node runs (``alone``)."""
    if alone:
        put(tx, CREDENTIALS_KEY, fingerprint)
    return ensure(tx, CREDENTIALS_KEY, fingerprint)


def server_uid(r: Reader) -> str | None:
    """The id of this installation, or None if it was not created yet."""
    return get(r, SERVER_UID)


def increment(tx: Transaction, key: str) -> int:
    """Add 1 to the number of a key, which is 0 at first. Returns the new number."""
    return number(
        tx,
        """
        INSERT INTO setting (key, value) VALUES (?, '1')
        ON CONFLICT (key) DO UPDATE SET value = CAST(CAST(setting.value AS BIGINT) + 1 AS TEXT)
        RETURNING value
        """,
        (key,),
    )


def bump_config_serial(tx: Transaction) -> None:
    """Increment the config serial, which makes every process read storages and repositories again."""
    increment(tx, CONFIG_SERIAL)


def ensure(tx: Transaction, key: str, fresh: str) -> str:
    """The value of a key, which is ``fresh`` if it had none."""
    tx.execute("INSERT INTO setting (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING", (key, fresh))
    value = get(tx, key)
    assert value is not None
    return value
