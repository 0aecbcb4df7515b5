"""
Stages: releases that wait for an approval before the clients of a repository get them.

A stage has two repositories, whose ``stage`` is its id and whose parent decides who may do what in them. The hosted one
has what is staged. The virtual one shows that on top of the repository that was addressed, at an address of its own:
``<name>+stage-<id>``. Names that people give have no plus sign.

========  =============================================  =======================================================
state     changes to                                     its repositories
========  =============================================  =======================================================
open      approved, with all of it published in the      take packages, and serve them to members
          same transaction; rejected; expired, if it is
          open for ``stage_days``
others    nothing                                        removed in the transaction that ends it, purged later
========  =============================================  =======================================================

A stage that has ended is kept as a record for ``KEPT_DAYS``.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from attrs import frozen

from pkgrepo.errors import Conflict, existing
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import SYSTEM, Actor, Repository, RepositoryType
from pkgrepo.storage.catalog.packages.events import append_repository_event
from pkgrepo.storage.catalog.rows import (
    column,
    dump,
    every,
    find,
    insert,
    load,
    non_null,
    number,
    optional_conditions,
    rows,
    scalar,
)
from pkgrepo.storage.catalog.server import settings
from pkgrepo.storage.catalog.server.repositories import add_repository, get_repository
from pkgrepo.storage.catalog.server.settings import bump_config_serial

OPEN, APPROVED, REJECTED, EXPIRED = "open", "approved", "rejected", "expired"
STATES: Final = (OPEN, APPROVED, REJECTED, EXPIRED)
STAGE_DAYS: Final = "stage_days"  # the setting that the configuration of the server is copied to
DEFAULT_DAYS: Final = 30
KEPT_DAYS: Final = 400
DAY_MS: Final = 24 * 3600 * 1000
MOST_OPEN: Final = 500  # stages of one repository: each is two more repositories that every process has in memory
MOST_ITEMS: Final = 1000  # versions, tags and files of a stage, which one transaction publishes
ENDED: Final = 20  # stages that expire in one transaction
SHOWN: Final = 100  # of these that events name


@frozen
class StageItem:
    """
    Something that is staged: a version of a package, a tag of an image, a manifest without one, or a plain file.

    ``kind`` is version, tag, manifest or file. ``name`` is the text of the version, the tag, the digest or the path;
    ``size`` is in bytes, of an image that of its manifest. ``package`` is the name, ``key`` its normalised spelling.
    """

    kind: str
    package: str
    key: str
    name: str
    size: int

    @property
    def title(self) -> str:
        """Package and version, as people write them."""
        if self.kind == "file":
            return self.name
        return f"{self.package}{':' if self.kind == 'tag' else '@'}{self.name}"


def _items(text: str) -> tuple[StageItem, ...]:
    return tuple(StageItem(**each) for each in load(text))


@frozen
class Stage:
    """
    A stage; ``repository_id`` is the repository that its content is for.

    ``content`` is what it had at its end, and empty before. ``reason`` is why it was rejected.
    """

    id: int
    uid: str
    repository_id: int
    state: str
    description: str
    user_id: int | None
    actor: str
    created_at: datetime
    ended_at: datetime | None
    ended_by: str
    reason: str
    content: tuple[StageItem, ...]


_STAGE, _stage = rows(Stage, "stage", content=_items)
_FILTERS: Final = ("repository_id = ?", "state = ?")
_KEPT: Final = "repository_id IN (SELECT id FROM repository WHERE deleted_at IS NULL)"


Configs = tuple[Mapping[str, Any], Mapping[str, Any]]  # the fixed object and the settings of a repository


def open_stage(
    tx: Transaction,
    repository: Repository,
    base: Repository,
    configs: Configs,
    overlay: Configs,
    uid: str,
    staged_uid: str,
    description: str,
    actor: Actor,
    now_ms: int,
) -> Stage:
    """
    Add a stage for a hosted repository, which is shown on top of ``base``.

    ``configs`` and ``overlay`` are the configurations and settings of its hosted and its virtual repository;
    ``staged_uid`` is the id of the hosted one, which the other names as a member.

    :raises Conflict: too many are open
    """
    sql = "SELECT COUNT(*) FROM stage WHERE repository_id = ? AND state = 'open'"
    if number(tx, sql, (repository.id,)) >= MOST_OPEN:
        raise Conflict(f"{MOST_OPEN} stages of {repository.path} wait for an approval, which is the most")
    given = ((repository, "staged", RepositoryType.HOSTED, configs), (base, "stage", RepositoryType.VIRTUAL, overlay))
    for parent, word, type_, (config, own) in given:
        add_repository(
            tx,
            storage_id=parent.storage_id,
            name=f"{parent.name}+{word}-{uid}",
            format=parent.format,
            type=type_,
            visibility=parent.visibility,
            config=config,
            settings=own,
            now_ms=now_ms,
            uid=staged_uid if type_ is RepositoryType.HOSTED else str(uuid.uuid4()),
            parent_id=parent.id,
            stage=uid,
        )
    insert(
        tx,
        "stage",
        uid=uid,
        repository_id=repository.id,
        state=OPEN,
        description=description,
        user_id=actor.user_id,
        actor=actor.name,
        created_at=now_ms,
    )
    append_repository_event(tx, repository.id, "stage.created", {"stage": uid, "name": uid}, actor, now_ms)
    return existing(find_stage(tx, uid), "stage", uid)


def find_stage(r: Reader, uid: str) -> Stage | None:
    """The stage with this id, or None; none of a removed repository."""
    return find(r, _stage, f"{_STAGE} WHERE uid = ? AND {_KEPT}", (uid,))


def get_open(r: Reader, uid: str) -> Stage:
    """The stage with this id. :raises NotFound: there is none; :raises Conflict: it has ended"""
    stage = existing(find_stage(r, uid), "stage", uid)
    if stage.state != OPEN:
        by = f" by {stage.ended_by}" if stage.ended_by and stage.state != EXPIRED else ""
        raise Conflict(f"stage {uid} is {stage.state}{by} already")
    return stage


Position = tuple[int, str]  # of a stage in lists: when it was made in ms, and its uid


def position(stage: Stage) -> Position:
    """The position of a stage in lists."""
    return round(stage.created_at.timestamp() * 1000), stage.uid


def list_stages(
    r: Reader, *, repository_id: int | None = None, state: str = "", after: Position | None = None, limit: int
) -> list[Stage]:
    """A page of stages, the newest first, of one repository or of all, of one state or of all."""
    values = (repository_id, state or None)
    beyond = "" if after is None else "AND (created_at, uid) < (?, ?)"
    chosen = optional_conditions(_FILTERS, values)
    sql = f"{_STAGE} WHERE {_KEPT} AND {chosen} {beyond} ORDER BY created_at DESC, uid DESC LIMIT ?"
    return every(r, _stage, sql, (*non_null(values), *(after or ()), limit))


def staged_id(r: Reader, uid: str) -> int:
    """The catalog key of the hosted repository of an open stage. :raises NotFound: it is not open"""
    sql = "SELECT id FROM repository WHERE stage = ? AND type = ? AND deleted_at IS NULL ORDER BY id LIMIT 1"
    return int(existing(scalar(r, sql, (uid, RepositoryType.HOSTED)), "open stage", uid))


def repositories_of(r: Reader, uid: str) -> list[Repository]:
    """The hosted and the virtual repository of an open stage, in this order, and their companions."""
    found = column(r, "SELECT id FROM repository WHERE stage = ? AND deleted_at IS NULL ORDER BY id", (uid,))
    return [get_repository(r, each) for each in found]


def content_of(r: Reader, staged: int) -> list[StageItem]:
    """What the hosted repository of a stage (its catalog key) has, sorted; at most one more than ``MOST_ITEMS``."""
    found = r.all(
        """
        SELECT 'version', p.name, p.key, v.text, COALESCE((SELECT SUM(size) FROM file WHERE version_id = v.id), 0)
        FROM version v JOIN package p ON p.id = v.package_id WHERE p.repository_id = ?
        UNION ALL
        SELECT 'tag', p.name, p.key, t.name, m.size FROM tag t JOIN package p ON p.id = t.package_id
        JOIN manifest m ON m.package_id = t.package_id AND m.digest = t.digest WHERE p.repository_id = ?
        UNION ALL
        SELECT 'manifest', p.name, p.key, m.digest, m.size FROM manifest m JOIN package p ON p.id = m.package_id
        WHERE p.repository_id = ? AND NOT EXISTS (
            SELECT 1 FROM tag t WHERE t.package_id = m.package_id AND t.digest = m.digest
        ) AND NOT EXISTS (
            SELECT 1 FROM manifest_ref f WHERE f.package_id = m.package_id AND f.digest = m.digest
            AND f.kind = 'manifest'
        )
        UNION ALL
        SELECT 'file', '', '', path, size FROM file WHERE repository_id = ? AND package_id IS NULL
        ORDER BY 1, 3, 4 LIMIT ?
        """,
        (staged, staged, staged, staged, MOST_ITEMS + 1),
    )
    return [StageItem(kind, name, key, text, int(size)) for kind, name, key, text, size in found]


def end_stage(
    tx: Transaction,
    stage: Stage,
    state: str,
    content: Sequence[StageItem],
    actor: Actor,
    now_ms: int,
    reason: str = "",
) -> None:
    """
    End a stage, and remove its repositories.

    What they use is not counted any more: their rows are purged later, and what is published is counted where it is.
    Their events are removed: they were announced to no program, which events of a removed repository are.
    """
    tx.send(
        "UPDATE stage SET state = ?, ended_at = ?, ended_by = ?, reason = ?, content = ? WHERE id = ?",
        (state, now_ms, actor.name, reason, dump([_plain(each) for each in content]), stage.id),
    )
    tx.send("DELETE FROM event WHERE repository_id IN (SELECT id FROM repository WHERE stage = ?)", (stage.uid,))
    tx.send(
        """
        UPDATE repository SET deleted_at = ?, purge = 1, bytes_used = 0, package_count = 0, version_count = 0
        WHERE stage = ? AND deleted_at IS NULL
        """,
        (now_ms, stage.uid),
    )
    data: dict[str, Any] = {"stage": stage.uid, "name": stage.uid, "content": [each.title for each in content[:SHOWN]]}
    if reason:
        data["reason"] = reason
    append_repository_event(tx, stage.repository_id, f"stage.{state}", data, actor, now_ms)
    bump_config_serial(tx)


def _plain(item: StageItem) -> dict[str, Any]:
    return {"kind": item.kind, "package": item.package, "key": item.key, "name": item.name, "size": item.size}


def kept_days(r: Reader) -> int:
    """The days after which a stage that nobody approved expires. The default until a server has started."""
    return int(settings.get(r, STAGE_DAYS) or DEFAULT_DAYS)


def put_kept_days(tx: Transaction, days: int) -> None:
    """Store the setting of the server."""
    if settings.get(tx, STAGE_DAYS) != str(days):
        settings.put(tx, STAGE_DAYS, str(days))


def expire_stages(tx: Transaction, now_ms: int, limit: int) -> int:
    """End what is open for too long, and forget what ended long ago; ``limit`` at most. Returns how many."""
    late = every(
        tx,
        _stage,
        f"{_STAGE} WHERE state = 'open' AND created_at < ? AND {_KEPT} ORDER BY created_at LIMIT ?",
        (now_ms - kept_days(tx) * DAY_MS, min(limit, ENDED)),
    )
    for each in late:
        end_stage(tx, each, EXPIRED, content_of(tx, staged_id(tx, each.uid)), SYSTEM, now_ms)
    gone = tx.execute(
        "DELETE FROM stage WHERE id IN (SELECT id FROM stage WHERE state <> 'open' AND created_at < ? LIMIT ?)",
        (now_ms - KEPT_DAYS * DAY_MS, limit),
    )
    return len(late) + gone
