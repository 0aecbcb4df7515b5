"""The structs of webhooks and of their deliveries."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from pkgrepo.management.api.fields import CreatedAt, ObjectId, UpdatedAt
from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.model.structs import meaning
from pkgrepo.storage.catalog.server.webhook_deliveries import PENDING, Delivery
from pkgrepo.storage.catalog.server.webhooks import Webhook
from pkgrepo.webhooks.envelopes import Format

MOST_PATTERNS = 50
Url = Annotated[str, Meta(min_length=1, max_length=2000)]
Patterns = Annotated[list[Word], Meta(max_length=MOST_PATTERNS)]


class NewWebhook(Body):
    """
    A new webhook.

    cache.stored and cache.evicted are not part of *. Without a secret, one is made.
    """

    name: Annotated[Word, meaning("The name for people.")]
    url: Annotated[Url, meaning("The address to which messages are sent.")]
    events: Annotated[Patterns, meaning("Types of events, such as package.published, or patterns: package.* or *.")]
    format: Annotated[Format, meaning("The form of the messages: cloudevents or plain.")] = "cloudevents"
    active: Annotated[bool, meaning("Whether messages are sent.")] = True
    secret: Annotated[str | None, meaning("The secret that signs messages; one is made if none is given.")] = None


class WebhookChange(Body):
    """
    The fields of a webhook that can be changed.

    One that is switched off gives up what it has not delivered, and one that is switched on begins with the events from
    then on.
    """

    name: Annotated[Word | UnsetType, meaning("The name for people.")] = UNSET
    url: Annotated[Url | UnsetType, meaning("The address to which messages are sent.")] = UNSET
    events: Annotated[
        Patterns | UnsetType, meaning("Types of events, such as package.published, or patterns: package.* or *.")
    ] = UNSET
    format: Annotated[Format | UnsetType, meaning("The form of the messages: cloudevents or plain.")] = UNSET
    active: Annotated[bool | UnsetType, meaning("Whether messages are sent.")] = UNSET


class Rotation(Body):
    """The new secret of a webhook; without one, it is made. The old one also signs for overlap_hours."""

    secret: Annotated[str | None, meaning("The new secret; one is made if none is given.")] = None
    overlap_hours: Annotated[int, Meta(ge=0, le=24 * 7), meaning("For how many hours the old secret signs, too.")] = 24


class WebhookRecord(Record):
    """A webhook, without its secret."""

    measured: ClassVar[frozenset[str]] = frozenset({"failing_since", "pending", "old_secret_until"})

    id: ObjectId
    name: Annotated[str, meaning("The name for people.")]
    url: Annotated[str, meaning("The address to which messages are sent.")]
    events: Annotated[list[str], meaning("Types of events, such as package.published, or patterns: package.* or *.")]
    format: Annotated[str, meaning("The form of the messages: cloudevents or plain.")]
    active: Annotated[bool, meaning("Whether messages are sent.")]
    repository: Annotated[str | None, meaning("The repository whose events it gets; null for others.")]
    project: Annotated[str | None, meaning("The key of the project whose events it gets; null for others.")]
    disabled_reason: Annotated[str, meaning("Why the server switched it off; empty if it did not.")]
    failing_since: Annotated[datetime | None, meaning("When the first attempt failed; null once one has succeeded.")]
    pending: Annotated[int, meaning("How many messages wait.")]
    old_secret_until: Annotated[
        datetime | None, meaning("Until when messages are also signed with the old secret; null for not.")
    ]
    created_at: CreatedAt
    updated_at: UpdatedAt


class WebhookWithSecret(WebhookRecord):
    """A webhook with its secret, which is shown this once."""

    secret: Annotated[str, meaning("The secret that signs messages; one is made if none is given.")]


class DeliveryRecord(Record):
    """A message for the receiver of a webhook."""

    id: ObjectId
    message_id: Annotated[str, meaning("What the receiver gets as webhook-id, the same with each attempt.")]
    type: Annotated[str, meaning("The type of the event.")]
    subject: Annotated[str, meaning("What the event is about.")]
    state: Annotated[Literal["pending", "delivered", "failed"], meaning("pending, delivered or failed.")]
    attempts: Annotated[int, meaning("How many attempts there were.")]
    created_at: CreatedAt
    attempted_at: Annotated[datetime | None, meaning("When it was last tried; null for never.")]
    next_attempt_at: Annotated[datetime | None, meaning("When it is tried next; null unless it is pending.")]
    status: Annotated[int | None, meaning("The HTTP status of the last attempt; null if there was no response.")]
    duration_ms: Annotated[int | None, meaning("How long the last attempt took, in milliseconds; null without one.")]
    error: Annotated[str, meaning("What went wrong in the last attempt.")]
    request: Annotated[str, meaning("The message as it was sent.")]
    response: Annotated[str, meaning("The response to the last attempt.")]


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
