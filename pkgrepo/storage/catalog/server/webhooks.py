"""
Webhooks: receivers of events.

Each has a cursor in the event log: of the events before it, deliveries were made of those that it wants; see
L{webhook_deliveries}.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict, Unpack

from attrs import evolve, frozen

from pkgrepo.errors import AlreadyExists, NotFound, existing
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import SYSTEM
from pkgrepo.storage.catalog.packages.events import append_server_event, last_seq
from pkgrepo.storage.catalog.rows import column, every, exists, find, insert, load, rows, update

from .audit import OK, Entry, append_entry
from .settings import bump_config_serial


@frozen
class Webhook:
    """
    A receiver of events.

    ``repository_id`` or ``project_id`` restrict it to the events of these. ``events`` are patterns of types. Secrets
    are sealed; until ``old_until`` messages are signed with ``old_secret``, too. ``failing_since`` is the time of the
    first attempt that failed, None once one has succeeded. ``disabled`` is why the server switched it off; empty unless
    it did.
    """

    id: int
    uid: str
    repository_id: int | None
    project_id: int | None
    name: str
    url: str
    events: Sequence[str]
    format: str
    active: bool
    secret: str
    old_secret: str
    old_until: datetime | None
    cursor: int
    failing_since: datetime | None
    disabled: str
    created_at: datetime
    updated_at: datetime


class WebhookChanges(TypedDict, total=False):
    """What ``update_webhook`` can change."""

    name: str
    url: str
    events: Sequence[str]
    format: str
    active: bool
    secret: str
    old_secret: str
    old_until: datetime | None


_WEBHOOK, _webhook = rows(Webhook, "webhook", events=load)
_PLACE = "COALESCE(repository_id, 0) = ? AND COALESCE(project_id, 0) = ?"


def add_webhook(
    tx: Transaction,
    *,
    uid: str,
    repository_id: int | None,
    project_id: int | None,
    now_ms: int,
    **values: Unpack[WebhookChanges],
) -> Webhook:
    """
    Add a webhook for events from now on; all values but those of an old secret are required.

    :raises AlreadyExists: one of the same place has this name
    """
    _check_name(tx, values["name"], repository_id, project_id, besides=0)
    insert(
        tx,
        "webhook",
        uid=uid,
        repository_id=repository_id,
        project_id=project_id,
        cursor=last_seq(tx),
        created_at=now_ms,
        updated_at=now_ms,
        **values,
    )
    bump_config_serial(tx)
    return get_webhook(tx, uid)


def update_webhook(tx: Transaction, uid: str, *, now_ms: int, **changes: Unpack[WebhookChanges]) -> Webhook:
    """
    Change the given fields. One that is switched on begins with the events from now on; one that is switched off sends
    none of its pending deliveries.

    :raises NotFound: no such webhook; :raises AlreadyExists: another one of the same place has this name
    """
    before = get_webhook(tx, uid)
    after = evolve(before, **changes)
    _check_name(tx, after.name, after.repository_id, after.project_id, besides=after.id)
    if after.active and not before.active:
        after = evolve(after, cursor=last_seq(tx), failing_since=None, disabled="")
    update(
        tx,
        "webhook",
        after.id,
        **changes,
        cursor=after.cursor,
        failing_since=after.failing_since,
        disabled=after.disabled,
        updated_at=now_ms,
    )
    if before.active and not after.active:
        _give_up(tx, after.id, "the webhook was switched off")
    bump_config_serial(tx)
    return get_webhook(tx, uid)


def disable_webhook(tx: Transaction, webhook_id: int, reason: str, now_ms: int) -> bool:
    """
    Switch a webhook off for a reason that admins find in it, in the audit log and in an event.

    Returns False if it is off already: several of its deliveries may end at a time.
    """
    if not tx.execute(
        "UPDATE webhook SET active = 0, disabled = ?, updated_at = ? WHERE id = ? AND active = 1",
        (reason, now_ms, webhook_id),
    ):
        return False
    _give_up(tx, webhook_id, "the webhook was switched off")
    found = existing(find(tx, _webhook, f"{_WEBHOOK} WHERE id = ?", (webhook_id,)), "webhook", str(webhook_id))
    detail = {"name": found.name, "id": found.uid, "reason": reason}
    append_server_event(tx, "webhook.disabled", detail, SYSTEM, now_ms)
    append_entry(tx, Entry(SYSTEM, "webhook.disable", found.name, OK, detail), now_ms)
    bump_config_serial(tx)
    return True


def remove_webhook(tx: Transaction, uid: str) -> None:
    """Remove a webhook with its deliveries. :raises NotFound: no such webhook"""
    if not tx.execute("DELETE FROM webhook WHERE uid = ?", (uid,)):
        raise NotFound("webhook", uid)
    bump_config_serial(tx)


def find_webhook(r: Reader, uid: str) -> Webhook | None:
    """The webhook with this public id, or None."""
    return find(r, _webhook, f"{_WEBHOOK} WHERE uid = ?", (uid,))


def get_webhook(r: Reader, uid: str) -> Webhook:
    """The webhook with this public id. :raises NotFound: there is none"""
    return existing(find_webhook(r, uid), "webhook", uid)


def list_webhooks(r: Reader, repository_id: int | None, project_id: int | None) -> list[Webhook]:
    """The webhooks of a repository or of a project, or of the server (both None), by name."""
    sql = f"{_WEBHOOK} WHERE {_PLACE} ORDER BY name"
    return every(r, _webhook, sql, (repository_id or 0, project_id or 0))


def disabled_webhooks(r: Reader) -> list[str]:
    """The names of the webhooks that the server has switched off."""
    return column(r, "SELECT name FROM webhook WHERE disabled <> '' ORDER BY name")


def failing_webhooks(r: Reader) -> list[str]:
    """The names of the webhooks that are on, and whose receivers took nothing since an attempt that failed."""
    return column(r, "SELECT name FROM webhook WHERE active = 1 AND failing_since IS NOT NULL ORDER BY name")


def active_webhooks(r: Reader) -> list[Webhook]:
    """All webhooks that are switched on."""
    return every(r, _webhook, f"{_WEBHOOK} WHERE active = 1 ORDER BY id")


def _give_up(tx: Transaction, webhook_id: int, reason: str) -> None:
    tx.execute(
        "UPDATE webhook_delivery SET state = 'failed', error = ? WHERE webhook_id = ? AND state = 'pending'",
        (reason, webhook_id),
    )


def _check_name(tx: Transaction, name: str, repository_id: int | None, project_id: int | None, *, besides: int) -> None:
    sql = f"SELECT 1 FROM webhook WHERE {_PLACE} AND name = ? AND id <> ?"
    if exists(tx, sql, (repository_id or 0, project_id or 0, name, besides)):
        raise AlreadyExists("webhook", name)
