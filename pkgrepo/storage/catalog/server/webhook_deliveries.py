"""
Deliveries of events to the receivers of webhooks.

=========  ========================================  ==========================================================
state      changes to                                after a crash
=========  ========================================  ==========================================================
pending    delivered, failed; or stays so, with a    sent again, with the same message id: the receiver may have
           later ``due_at``, after an attempt that   taken it
           failed
delivered  pending, when a person asks for it again  the row stays, until it is pruned
failed     pending, when a person asks for it again  the row stays, until it is pruned
=========  ========================================  ==========================================================

Of the pending deliveries of a webhook with one ``thread`` only the first may be sent.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from attrs import frozen

from pkgrepo.errors import existing
from pkgrepo.interfaces import Reader, Transaction, Value
from pkgrepo.storage.catalog.rows import (
    batches,
    column,
    every,
    find,
    insert,
    non_null,
    number,
    optional_conditions,
    placeholders,
    rows,
)

from .webhooks import Webhook

PENDING, DELIVERED, FAILED = "pending", "delivered", "failed"
KEPT: Final = 2000  # ended deliveries of a webhook; some 4 MB
KEPT_MS: Final = 30 * 86_400_000  # how long an ended delivery is kept


@frozen
class NewDelivery:
    """An event for a webhook; ``message`` is the id that all attempts to deliver it carry."""

    message: str
    type: str
    subject: str
    thread: str
    body: str


@frozen
class Delivery:
    """
    A message for a receiver, and what came of the last attempt.

    ``status`` is that of the response, None if there was none. ``error`` says why an attempt failed; ``response`` is
    the beginning of the body of the response.
    """

    id: int
    uid: str
    webhook_id: int
    message: str
    type: str
    subject: str
    thread: str
    state: str
    attempts: int
    due_at: datetime
    created_at: datetime
    attempted_at: datetime | None
    status: int | None
    took_ms: int | None
    error: str
    response: str
    body: str


@frozen
class Attempt:
    """What came of an attempt; ``due_ms`` is when the next one is due if the delivery stays pending."""

    state: str
    status: int | None
    took_ms: int
    error: str
    response: str
    at_ms: int
    due_ms: int


@frozen
class Head:
    """The first pending delivery of a thread, and when it may be sent."""

    id: int
    thread: str
    due_at: datetime


_DELIVERY, _delivery = rows(Delivery, "webhook_delivery")
_HEAD, _head = rows(Head, "webhook_delivery d", of="d")
_FILTERS = ("state = ?", "id < ?")


def add_all_deliveries(
    tx: Transaction, cursor: int, wanted: Sequence[tuple[Webhook, Sequence[NewDelivery]]], now_ms: int
) -> None:
    """Do for several webhooks what L{add_deliveries} does for one, in one transaction."""
    for webhook, new in wanted:
        add_deliveries(tx, webhook, cursor, new, now_ms)


def add_deliveries(tx: Transaction, webhook: Webhook, cursor: int, new: Sequence[NewDelivery], now_ms: int) -> bool:
    """
    Add pending deliveries, and move the cursor of the webhook. Returns False, without a change, if it was moved or the
    webhook was switched off since it was read: another process has made them.
    """
    if not tx.execute(
        "UPDATE webhook SET cursor = ? WHERE id = ? AND cursor = ? AND active = 1",
        (cursor, webhook.id, webhook.cursor),
    ):
        return False
    for some in batches(new):
        values: list[Value] = []
        for each in some:
            values += (str(uuid.uuid4()), webhook.id, each.message, each.type, each.subject, each.thread, PENDING)
            values += (now_ms, now_ms, each.body)
        tx.send(
            f"""
            INSERT INTO webhook_delivery (uid, webhook_id, message, type, subject, thread, state, due_at, created_at,
                                          body)
            VALUES {placeholders(len(some), "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")}
            """,
            values,
        )
    return True


def add_ended(tx: Transaction, webhook_id: int, new: NewDelivery, attempt: Attempt) -> Delivery:
    """Add a delivery that was attempted already, such as that of a test."""
    delivery_id = insert(
        tx,
        "webhook_delivery",
        uid=str(uuid.uuid4()),
        webhook_id=webhook_id,
        message=new.message,
        type=new.type,
        subject=new.subject,
        thread=new.thread,
        state=attempt.state,
        attempts=1,
        due_at=attempt.due_ms,
        created_at=attempt.at_ms,
        attempted_at=attempt.at_ms,
        status=attempt.status,
        took_ms=attempt.took_ms,
        error=attempt.error,
        response=attempt.response,
        body=new.body,
    )
    return existing(find(tx, _delivery, f"{_DELIVERY} WHERE id = ?", (delivery_id,)), "delivery", str(delivery_id))


def pending_heads(r: Reader, webhook_id: int, limit: int) -> list[Head]:
    """The first pending delivery of each thread, the oldest first."""
    sql = f"""
        {_HEAD} WHERE d.webhook_id = ? AND d.state = 'pending' AND NOT EXISTS (
            SELECT 1 FROM webhook_delivery e
            WHERE e.webhook_id = d.webhook_id AND e.state = 'pending' AND e.thread = d.thread AND e.id < d.id
        ) ORDER BY d.id LIMIT ?
        """
    return every(r, _head, sql, (webhook_id, limit))


def with_pending(r: Reader) -> set[int]:
    """The catalog keys of the webhooks that have pending deliveries."""
    return set(
        column(
            r,
            """
            SELECT id FROM webhook w WHERE EXISTS (
                SELECT 1 FROM webhook_delivery d WHERE d.webhook_id = w.id AND d.state = 'pending'
            )
            """,
        )
    )


def count_pending(r: Reader, webhook_id: int) -> int:
    """The number of pending deliveries of a webhook."""
    return number(r, "SELECT COUNT(*) FROM webhook_delivery WHERE webhook_id = ? AND state = 'pending'", (webhook_id,))


def pending_counts(r: Reader) -> dict[int, int]:
    """The numbers of pending deliveries by the catalog keys of the webhooks that have any."""
    return dict(r.all("SELECT webhook_id, COUNT(*) FROM webhook_delivery WHERE state = 'pending' GROUP BY webhook_id"))


def get_deliveries(r: Reader, ids: Sequence[int]) -> list[Delivery]:
    """The pending deliveries with these catalog keys, the oldest first."""
    if not ids:
        return []
    sql = f"{_DELIVERY} WHERE id IN ({placeholders(len(ids))}) AND state = 'pending' ORDER BY id"
    return every(r, _delivery, sql, list(ids))


def list_deliveries(
    r: Reader, webhook_id: int, *, state: str = "", before: int | None = None, limit: int = 50
) -> list[Delivery]:
    """Deliveries of a webhook, the newest first; those with a state only, unless it is empty."""
    values = (state or None, before)
    sql = f"{_DELIVERY} WHERE webhook_id = ? AND {optional_conditions(_FILTERS, values)} ORDER BY id DESC LIMIT ?"
    return every(r, _delivery, sql, (webhook_id, *non_null(values), limit))


def get_delivery(r: Reader, webhook_id: int, uid: str) -> Delivery:
    """A delivery of a webhook. :raises NotFound: it has none with this public id"""
    sql = f"{_DELIVERY} WHERE webhook_id = ? AND uid = ?"
    return existing(find(r, _delivery, sql, (webhook_id, uid)), "delivery", uid)


def send_again(tx: Transaction, webhook_id: int, uid: str, now_ms: int) -> Delivery:
    """Make a delivery pending, due now, with all its attempts before it. :raises NotFound: there is no such one"""
    found = get_delivery(tx, webhook_id, uid)
    tx.execute(
        "UPDATE webhook_delivery SET state = 'pending', attempts = 0, due_at = ? WHERE id = ?", (now_ms, found.id)
    )
    return get_delivery(tx, webhook_id, uid)


def record_attempts(tx: Transaction, attempts: Sequence[tuple[Delivery, Attempt]]) -> None:
    """Note what came of attempts to send pending deliveries, in their order; see L{record_attempt}."""
    for delivery, attempt in attempts:
        record_attempt(tx, delivery, attempt)


def record_attempt(tx: Transaction, delivery: Delivery, attempt: Attempt) -> None:
    """
    Note what came of an attempt to send a pending delivery.

    A delivery that succeeded ends the webhook's ``failing_since``; one that failed begins it.
    """
    if not tx.execute(
        """
        UPDATE webhook_delivery
        SET state = ?, attempts = attempts + 1, due_at = ?, attempted_at = ?, status = ?, took_ms = ?, error = ?,
            response = ?
        WHERE id = ? AND state = 'pending'
        """,
        (
            attempt.state,
            attempt.due_ms,
            attempt.at_ms,
            attempt.status,
            attempt.took_ms,
            attempt.error,
            attempt.response,
            delivery.id,
        ),
    ):
        return  # it was given up meanwhile, or its webhook removed
    if attempt.state == DELIVERED:
        tx.send(
            "UPDATE webhook SET failing_since = NULL WHERE id = ? AND failing_since IS NOT NULL",
            (delivery.webhook_id,),
        )
    else:
        tx.send(
            "UPDATE webhook SET failing_since = ? WHERE id = ? AND failing_since IS NULL",
            (attempt.at_ms, delivery.webhook_id),
        )


def prune_webhook(tx: Transaction, webhook_id: int, limit: int) -> int:
    """Remove ended deliveries of a webhook beyond the ``KEPT`` newest, ``limit`` at most. Returns how many."""
    return tx.execute(
        """
        DELETE FROM webhook_delivery WHERE id IN (
            SELECT id FROM webhook_delivery WHERE webhook_id = ? AND state <> 'pending' AND id <= (
                SELECT id FROM webhook_delivery WHERE webhook_id = ? ORDER BY id DESC LIMIT 1 OFFSET ?
            ) ORDER BY id LIMIT ?
        )
        """,
        (webhook_id, webhook_id, KEPT, limit),
    )


def prune_deliveries(tx: Transaction, now_ms: int, limit: int) -> int:
    """Remove ended deliveries that are older than ``KEPT_MS``, ``limit`` at most. Returns how many."""
    return tx.execute(
        """
        DELETE FROM webhook_delivery WHERE id IN (
            SELECT id FROM webhook_delivery WHERE state <> 'pending' AND created_at < ? ORDER BY created_at LIMIT ?
        )
        """,
        (now_ms - KEPT_MS, limit),
    )
