"""The structs of webhooks and of their deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.storage.catalog.server.webhook_deliveries import PENDING, Delivery
from pkgrepo.storage.catalog.server.webhooks import Webhook
from pkgrepo.webhooks.envelopes import Format

MOST_PATTERNS = 50
Url = Annotated[str, Meta(min_length=1, max_length=2000)]
Patterns = Annotated[list[Word], Meta(max_length=MOST_PATTERNS)]


class NewWebhook(Body):
    """
    A new webhook.

    events are types of events, such as package.published, or patterns: package.* or *. cache.stored and cache.evicted
    are not part of *. Without a secret, one is made.
    """

    name: Word
    url: Url
    events: Patterns
    format: Format = "cloudevents"
    active: bool = True
    secret: str | None = None


class WebhookChange(Body):
    """
    The fields of a webhook that can be changed.

    One that is switched off gives up what it has not delivered, and one that is switched on begins with the events from
    then on.
    """

    name: Word | UnsetType = UNSET
    url: Url | UnsetType = UNSET
    events: Patterns | UnsetType = UNSET
    format: Format | UnsetType = UNSET
    active: bool | UnsetType = UNSET


class Rotation(Body):
    """The new secret of a webhook; without one, it is made. The old one also signs for overlap_hours."""

    secret: str | None = None
    overlap_hours: Annotated[int, Meta(ge=0, le=24 * 7)] = 24


class WebhookRecord(Record):
    """
    A webhook, without its secret.

    repository or project are those whose events it gets; both are null if it gets those of the whole server.
    disabled_reason says why the server switched it off. failing_since is the time of the first attempt that failed,
    null once one has succeeded. old_secret_until is the time until which messages are also signed with the old secret.
    """

    measured: ClassVar[frozenset[str]] = frozenset({"failing_since", "pending", "old_secret_until"})

    id: str
    name: str
    url: str
    events: list[str]
    format: str
    active: bool
    repository: str | None
    project: str | None
    disabled_reason: str
    failing_since: datetime | None
    pending: int
    old_secret_until: datetime | None
    created_at: datetime
    updated_at: datetime


class WebhookWithSecret(WebhookRecord):
    """A webhook with its secret, which is shown this once."""

    secret: str


class DeliveryRecord(Record):
    """
    A message for the receiver of a webhook.

    message_id is what the receiver gets as webhook-id, the same with each attempt. status, duration_ms, error and
    response are those of the last attempt; status is null if there was no response. next_attempt_at is null unless the
    delivery is pending.
    """

    id: str
    message_id: str
    type: str
    subject: str
    state: Literal["pending", "delivered", "failed"]
    attempts: int
    created_at: datetime
    attempted_at: datetime | None
    next_attempt_at: datetime | None
    status: int | None
    duration_ms: int | None
    error: str
    request: str
    response: str


def webhook_fields(webhook: Webhook, pending: int, repository: str | None, project: str | None) -> dict[str, Any]:
    """The fields of the record of a webhook; ``repository`` and ``project`` are a path and a key."""
    return {
        "id": webhook.uid,
        "name": webhook.name,
        "url": webhook.url,
        "events": list(webhook.events),
        "format": webhook.format,
        "active": webhook.active,
        "repository": repository,
        "project": project,
        "disabled_reason": webhook.disabled,
        "failing_since": webhook.failing_since,
        "pending": pending,
        "old_secret_until": webhook.old_until,
        "created_at": webhook.created_at,
        "updated_at": webhook.updated_at,
    }


def delivery_record(delivery: Delivery) -> DeliveryRecord:
    """The record of a delivery."""
    return DeliveryRecord.from_attributes(
        delivery,
        id=delivery.uid,
        message_id=delivery.message,
        next_attempt_at=delivery.due_at if delivery.state == PENDING else None,
        duration_ms=delivery.took_ms,
        request=delivery.body,
    )
