"""
What rules about the served packages need of the catalog: blocks, decisions on what is in quarantine, and counts.

The rules themselves are in the configurations of repositories, and for the server in a setting. Blocks and decisions
hold at once in every process: a change of them increases the config serial, with which rule sets are made again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from attrs import Factory, frozen

from pkgrepo.errors import Conflict, existing
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import SYSTEM, Actor
from pkgrepo.model.advisories import MalwareNames
from pkgrepo.storage.catalog.packages.events import append_repository_event
from pkgrepo.storage.catalog.rows import at_or_none, batches, dump, every, find, insert, load, number, rows
from pkgrepo.storage.catalog.server import freezes, settings
from pkgrepo.storage.catalog.server.freezes import Freeze

RULES: Final = "policy_rules"  # the setting: JSON, the rules for all repositories
MOST_BLOCKS: Final = 1000  # each process makes them rules in 5 ms for each repository that is read
MOST_WAITING: Final = 10_000  # versions in quarantine, for which nobody has decided yet
WAITING: Final = "waiting"
APPROVED: Final = "approved"
DENIED: Final = "denied"


@frozen
class Block:
    """A block: what is refused in the repositories whose path matches ``repository``, until ``ends_at``."""

    id: int
    uid: str
    repository: str
    package: str
    versions: str
    digests: Sequence[str]
    reason: str
    ends_at: datetime | None
    created_at: datetime
    actor: str


@frozen
class Quarantined:
    """A version that a rule holds back, and the decision about it."""

    id: int
    uid: str
    repository_id: int
    package_key: str
    version: str
    rule: str
    reason: str
    state: str
    since: datetime
    decided_at: datetime | None
    decided_by: str
    comment: str


Decision = tuple[bool, str]  # whether a version was approved, and the comment
Rulings = Mapping[int, Mapping[tuple[str, str], Decision]]  # by repository, and by package key and version


@frozen
class StoredPolicy:
    """
    All that rule sets are made of beside the configurations of repositories.

    ``rules`` are those of the server, as stored. ``advisories`` differs whenever other advisories are known.
    ``malware`` are the packages that the server blocks by itself; None if it does not look for any.
    """

    rules: Sequence[Mapping[str, Any]] = ()
    blocks: Sequence[Block] = ()
    freezes: Sequence[Freeze] = ()
    rulings: Rulings = Factory(dict)
    advisories: tuple[int, int] = (0, 0)
    malware: MalwareNames | None = None


_BLOCK, _block = rows(Block, "policy_block", digests=load, ends_at=at_or_none)
_QUARANTINED, _quarantined = rows(Quarantined, "quarantined", decided_at=at_or_none)


def read_policy(r: Reader, advisories: tuple[int, int] = (0, 0), malware: MalwareNames | None = None) -> StoredPolicy:
    """All of it, with what is known of advisories."""
    rulings: dict[int, dict[tuple[str, str], Decision]] = {}
    for each in every(r, _quarantined, f"{_QUARANTINED} WHERE state <> ?", (WAITING,)):
        found = rulings.setdefault(each.repository_id, {})
        found[each.package_key, each.version] = (each.state == APPROVED, each.comment)
    return StoredPolicy(server_rules(r), list_blocks(r), freezes.list_freezes(r), rulings, advisories, malware)


def server_rules(r: Reader) -> Sequence[Mapping[str, Any]]:
    """The rules of the server, as stored."""
    stored = settings.get(r, RULES)
    found: Sequence[Mapping[str, Any]] = () if stored is None else load(stored)
    return found


def set_server_rules(tx: Transaction, rules: Sequence[Mapping[str, Any]]) -> None:
    """Replace the rules of the server."""
    settings.put(tx, RULES, dump(rules))
    settings.bump_config_serial(tx)


def list_blocks(r: Reader) -> list[Block]:
    """All blocks, the oldest first."""
    return every(r, _block, f"{_BLOCK} ORDER BY id")


def find_block(r: Reader, uid: str) -> Block | None:
    """The block with this id, or None."""
    return find(r, _block, f"{_BLOCK} WHERE uid = ?", (uid,))


def add_block(
    tx: Transaction,
    *,
    repository: str,
    package: str,
    versions: str,
    digests: Sequence[str],
    reason: str,
    ends_ms: int | None,
    actor: str,
    now_ms: int,
) -> Block:
    """
    Add a block; it holds from the commit on.

    :raises Conflict: there are too many
    """
    uid = str(uuid.uuid4())
    if number(tx, "SELECT COUNT(*) FROM policy_block") >= MOST_BLOCKS:
        raise Conflict(f"there are {MOST_BLOCKS} blocks: remove some, or write rules")
    insert(
        tx,
        "policy_block",
        uid=uid,
        repository=repository,
        package=package,
        versions=versions,
        digests=dump(list(digests)),
        reason=reason,
        ends_at=ends_ms,
        created_at=now_ms,
        actor=actor,
    )
    settings.bump_config_serial(tx)
    return existing(find_block(tx, uid), "block", uid)


def remove_block(tx: Transaction, uid: str) -> Block:
    """Remove a block. :raises NotFound: there is none"""
    found = existing(find_block(tx, uid), "block", uid)
    tx.execute("DELETE FROM policy_block WHERE uid = ?", (uid,))
    settings.bump_config_serial(tx)
    return found


Held = tuple[int, str, str, str, str]  # repository, package key, version, rule, reason


def note_quarantined(tx: Transaction, held: Iterable[Held], now_ms: int, most: int = MOST_WAITING) -> list[Quarantined]:
    """
    Note versions that a rule holds back; returns those that nobody knew of.

    Clients make them known by asking, so at most ``most`` wait: the oldest go, and come again when asked for.
    """
    new: list[Quarantined] = []
    for repository_id, package_key, version, rule, reason in held:
        if find_quarantined_version(tx, repository_id, package_key, version) is not None:
            continue
        uid = str(uuid.uuid4())
        insert(
            tx,
            "quarantined",
            uid=uid,
            repository_id=repository_id,
            package_key=package_key,
            version=version,
            rule=rule,
            reason=reason,
            state=WAITING,
            since=now_ms,
        )
        new.append(existing(find_quarantined(tx, uid), "quarantined version", uid))
        _announce(tx, new[-1], "package.quarantined", SYSTEM, now_ms)
    surplus = number(tx, "SELECT COUNT(*) FROM quarantined WHERE state = ?", (WAITING,)) - most if new else 0
    if surplus > 0:
        oldest = "SELECT id FROM quarantined WHERE state = ? ORDER BY id LIMIT ?"
        tx.execute(f"DELETE FROM quarantined WHERE id IN ({oldest})", (WAITING, surplus))
    return new


def find_quarantined(r: Reader, uid: str) -> Quarantined | None:
    """What waits, or was decided, under this id; or None."""
    return find(r, _quarantined, f"{_QUARANTINED} WHERE uid = ?", (uid,))


def find_quarantined_version(r: Reader, repository_id: int, package_key: str, version: str) -> Quarantined | None:
    """What waits, or was decided, of a version; or None."""
    sql = f"{_QUARANTINED} WHERE repository_id = ? AND package_key = ? AND version = ?"
    return find(r, _quarantined, sql, (repository_id, package_key, version))


def list_quarantined(r: Reader, state: str, after: int, limit: int) -> list[Quarantined]:
    """At most ``limit`` versions in a state (empty: all), the newest first, with a smaller number than ``after``."""
    if state:
        sql = f"{_QUARANTINED} WHERE state = ? AND id < ? ORDER BY id DESC LIMIT ?"
        return every(r, _quarantined, sql, (state, after, limit))
    return every(r, _quarantined, f"{_QUARANTINED} WHERE id < ? ORDER BY id DESC LIMIT ?", (after, limit))


def decide_quarantined(
    tx: Transaction, uid: str, *, approved: bool, comment: str, actor: Actor, now_ms: int
) -> Quarantined:
    """Approve or deny a version; it holds from the commit on. :raises NotFound: there is none"""
    existing(find_quarantined(tx, uid), "quarantined version", uid)
    tx.execute(
        "UPDATE quarantined SET state = ?, comment = ?, decided_by = ?, decided_at = ? WHERE uid = ?",
        (APPROVED if approved else DENIED, comment, actor.name, now_ms, uid),
    )
    settings.bump_config_serial(tx)
    found = existing(find_quarantined(tx, uid), "quarantined version", uid)
    _announce(tx, found, "package.released" if approved else "package.denied", actor, now_ms)
    return found


def _announce(tx: Transaction, found: Quarantined, kind: str, actor: Actor, now_ms: int) -> None:
    data = {"package": found.package_key, "version": found.version, "rule": found.rule, "reason": found.reason}
    if found.comment:
        data["comment"] = found.comment
    append_repository_event(tx, found.repository_id, kind, data, actor, now_ms)


Counted = tuple[str, str, int, int]  # owner, rule, repository, day


def add_counts(tx: Transaction, counts: Mapping[Counted, int]) -> None:
    """Add to the counts of rules."""
    for some in batches(sorted(counts.items())):
        for (owner, rule, repository_id, day), count in some:
            tx.execute(
                """
                INSERT INTO rule_count (owner, rule, repository_id, day, count)
                SELECT ?, ?, id, ?, ? FROM repository WHERE id = ?
                ON CONFLICT (owner, rule, repository_id, day) DO UPDATE SET count = rule_count.count + excluded.count
                """,
                (owner, rule, day, count, repository_id),
            )


def counts_since(r: Reader, day: int) -> dict[tuple[str, str], int]:
    """How often each rule (by owner and name) matched since a day, numbered since the epoch."""
    found = r.all("SELECT owner, rule, SUM(count) FROM rule_count WHERE day >= ? GROUP BY owner, rule", (day,))
    return {(owner, rule): int(count) for owner, rule, count in found}
