"""
The routes to webhooks: those of the server, of a repository, and of a project, which have the same operations.

=======================================  ============================================  ======================
below                                    gets the events of                            is managed by
=======================================  ============================================  ======================
``/api/system/webhooks``                 the whole server                              system managers
``/api/repository/{id}/webhooks``        the repository                                who may edit it
``/api/project/{key}/webhooks``          the packages that belong to the project       its maintainers
=======================================  ============================================  ======================
"""

from __future__ import annotations

import secrets as random
import uuid
from datetime import timedelta
from typing import Any, Final

from attrs import frozen
from msgspec import UNSET

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.management.api.access_rules import ACCOUNT_HOLDERS, EDITORS, SYSTEM_MANAGERS, AccessRule
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import Created, Parameter, Table
from pkgrepo.management.projects.access import find_project
from pkgrepo.model import ProjectRole
from pkgrepo.outbound.urls import parse_url
from pkgrepo.repositories.clock import format_time, from_ms
from pkgrepo.storage.catalog.server import webhook_deliveries, webhooks
from pkgrepo.storage.catalog.server.webhook_deliveries import NewDelivery
from pkgrepo.storage.catalog.server.webhooks import Webhook
from pkgrepo.webhooks.envelopes import ping
from pkgrepo.webhooks.event_types import PING, check_patterns
from pkgrepo.webhooks.poster import FORBIDDEN, context_of
from pkgrepo.webhooks.sender import PAUSES_S, attempt_of
from pkgrepo.webhooks.signing import check_secret, new_secret

from .schema import (
    DeliveryRecord,
    NewWebhook,
    Rotation,
    WebhookChange,
    WebhookRecord,
    WebhookWithSecret,
    delivery_record,
    webhook_fields,
)

MOST: Final = 100  # webhooks of one place
STATES: Final = (webhook_deliveries.PENDING, webhook_deliveries.DELIVERED, webhook_deliveries.FAILED)
PLACES: Final[tuple[tuple[str, AccessRule, str, str], ...]] = (  # path, who may, of what, and how commands say it
    ("/system/webhooks", SYSTEM_MANAGERS, "of the server", ""),
    ("/repository/<repository>/webhooks", EDITORS, "of a repository", "--repository STORAGE/REPOSITORY"),
    ("/project/<key>/webhooks", ACCOUNT_HOLDERS, "of a project", "--project KEY"),
)

table = Table("webhooks")


@frozen
class _Place:
    """What the webhooks of a route belong to: a repository, a project, or the server."""

    repository_id: int | None = None
    project_id: int | None = None
    repository: str | None = None
    project: str | None = None

    @property
    def name(self) -> str:
        """The place in the audit log."""
        return self.repository or self.project or "server"


async def list_webhooks(call: Call, key: str = "") -> list[WebhookRecord]:
    """Sorted by name."""
    place = await _place(call, key)
    found = await call.catalog.scan(webhooks.list_webhooks, place.repository_id, place.project_id)
    return [WebhookRecord(**await _fields(call, place, each)) for each in found]


async def create_webhook(call: Call, body: NewWebhook, key: str = "") -> Created[WebhookWithSecret]:
    """
    It gets the events from now on.

    The answer has the secret, with which the receiver verifies signatures (Standard Webhooks); it is not shown again.
    """
    place = await _place(call, key)
    if len(await call.catalog.scan(webhooks.list_webhooks, place.repository_id, place.project_id)) >= MOST:
        raise Invalid(f"there are {MOST} webhooks here already, which is the most")
    secret = new_secret() if body.secret is None else check_secret(body.secret)
    uid = str(uuid.uuid4())
    events = check_patterns(body.events)
    webhook = await call.write(
        call.entry(f"{place.name}/{body.name}", {"host": _check_url(call, body.url), "events": events}),
        webhooks.add_webhook,
        name=body.name,
        url=body.url,
        events=events,
        format=body.format,
        active=body.active,
        uid=uid,
        secret=call.services.secrets.seal(secret, context_of(uid)),
        repository_id=place.repository_id,
        project_id=place.project_id,
        now_ms=call.now_ms,
    )
    record = WebhookWithSecret(**await _fields(call, place, webhook), secret=secret)
    return Created(record, f"{_address(call)}/{webhook.uid}")


async def show_webhook(call: Call, id: str, key: str = "") -> WebhookRecord:
    """The secret is not shown."""
    place, webhook = await _find(call, id, key)
    return WebhookRecord(**await _fields(call, place, webhook))


async def change_webhook(call: Call, body: WebhookChange, id: str, key: str = "") -> WebhookRecord:
    """Switching a webhook on again also ends its being switched off by the server."""
    place, webhook = await _find(call, id, key)
    call.check_unchanged(WebhookRecord(**await _fields(call, place, webhook)))
    changes = body.given("name", "url", "events", "format", "active")
    detail = {name: value for name, value in changes.items() if name != "url"}
    if body.events is not UNSET:
        changes["events"] = detail["events"] = check_patterns(body.events)
    if body.url is not UNSET:
        detail["host"] = _check_url(call, body.url)
    webhook = await call.write(
        call.entry(f"{place.name}/{webhook.name}", detail),
        webhooks.update_webhook,
        webhook.uid,
        now_ms=call.now_ms,
        **changes,
    )
    return WebhookRecord(**await _fields(call, place, webhook))


async def delete_webhook(call: Call, id: str, key: str = "") -> None:
    """Its deliveries are removed, too, also those that are pending."""
    place, webhook = await _find(call, id, key)
    call.check_unchanged(WebhookRecord(**await _fields(call, place, webhook)))
    await call.write(call.entry(f"{place.name}/{webhook.name}"), webhooks.remove_webhook, webhook.uid)


async def rotate_secret(call: Call, body: Rotation, id: str, key: str = "") -> WebhookWithSecret:
    """
    The answer has the new secret, which is not shown again.

    For overlap_hours messages have two signatures, one with each secret, so that receivers can change theirs meanwhile.
    """
    place, webhook = await _find(call, id, key)
    secret = new_secret() if body.secret is None else check_secret(body.secret)
    webhook = await call.write(
        call.entry(f"{place.name}/{webhook.name}", {"overlap_hours": body.overlap_hours}),
        webhooks.update_webhook,
        webhook.uid,
        now_ms=call.now_ms,
        secret=call.services.secrets.seal(secret, context_of(webhook.uid)),
        old_secret=webhook.secret,
        old_until=from_ms(call.now_ms) + timedelta(hours=body.overlap_hours),
    )
    return WebhookWithSecret(**await _fields(call, place, webhook), secret=secret)


async def try_webhook(call: Call, id: str, key: str = "") -> DeliveryRecord:
    """
    Send an event of the type ping now, once, and answer with what came of it.

    It is sent also if the webhook is switched off or does not select it.
    """
    place, webhook = await _find(call, id, key)
    message, time = f"ping_{random.token_hex(12)}", format_time(from_ms(call.now_ms))
    event = ping(message, time, call.services.events.source, webhook.name)
    sent = event.body("plain" if webhook.format == "plain" else "cloudevents")
    outcome = await call.services.events.poster.post(webhook, message, sent)
    attempt = attempt_of(outcome, len(PAUSES_S), call.shared.clock.now_ms())
    new = NewDelivery(message, PING, webhook.name, "", sent)
    entry = call.entry(f"{place.name}/{webhook.name}", {"state": attempt.state})
    return delivery_record(await call.write(entry, webhook_deliveries.add_ended, webhook.id, new, attempt))


async def list_deliveries(call: Call, id: str, key: str = "") -> Page[DeliveryRecord]:
    """
    The newest first. Pending deliveries are kept until they are delivered or given up.

    Of the others, the 2,000 newest of a webhook are kept for 30 days.
    """
    _, webhook = await _find(call, id, key)
    state = call.query("state")
    if state and state not in STATES:
        raise Invalid(f"state is one of {', '.join(STATES)}", "state")
    request = call.page_request
    before = request.after(0) or None
    found = await call.catalog.scan(
        webhook_deliveries.list_deliveries, webhook.id, state=state, before=before, limit=request.limit + 1
    )
    return request.page(found, lambda each: each.id, delivery_record)


async def show_delivery(call: Call, id: str, delivery: str, key: str = "") -> DeliveryRecord:
    """With the bodies of the request and of the last response; of a long response, its beginning."""
    _, webhook = await _find(call, id, key)
    return delivery_record(await call.catalog.look(webhook_deliveries.get_delivery, webhook.id, delivery))


async def redeliver(call: Call, id: str, delivery: str, key: str = "") -> DeliveryRecord:
    """It is sent soon, with the same message id, and repeated as if it were new. A webhook must be on for that."""
    place, webhook = await _find(call, id, key)
    if not webhook.active:
        raise Invalid("the webhook is switched off, and sends nothing: switch it on first")
    entry = call.entry(f"{place.name}/{webhook.name}", {"delivery": delivery})
    return delivery_record(await call.write(entry, webhook_deliveries.send_again, webhook.id, delivery, call.now_ms))


WEBHOOK: Final = (
    "webhook: name | id: id | address: url | events: events | format: format | "
    "of: repository or project or 'the server' | state: :webhook | reason: disabled_reason | "
    "failing since: failing_since:time | pending: pending | "
    "old secret until: old_secret_until:time"
)
DELIVERY: Final = (
    "delivery: id | message: message_id | type: type | subject: subject | state: state | attempts: attempts | "
    "last attempt: attempted_at:time | next attempt: next_attempt_at:time | status: status | took: duration_ms:ms | "
    "error: error | request: request | response: response"
)


def _mount() -> None:
    """Add the routes of each place."""
    state = Parameter("state", "Only deliveries in this state.", choices=STATES)
    for path, access, of, place in PLACES:
        one, sent = f"{path}/<id>", f"{path}/<id>/deliveries"
        table.get(path, access, f"List the webhooks {of}")(list_webhooks)
        _command(
            f"list {place}",
            about="List webhooks.",
            columns="ID: id | NAME: name | EVENTS: events | STATE: :webhook | PENDING: pending:number | ADDRESS: url",
            nothing="there are no webhooks here",
        )
        table.post(path, access, f"Add a webhook {of}", audit="webhook.create")(create_webhook)
        _command(
            f"create {place} NAME URL",
            about="Add a webhook, and print its secret, which is not shown again.",
            options="event -e package.*: events, format",
            fields=f"{WEBHOOK} | secret: secret",
        )
        table.get(one, access, f"Show a webhook {of}")(show_webhook)
        _command(f"show {place} ID", about="Show a webhook.", fields=WEBHOOK)
        table.patch(one, access, f"Change a webhook {of}", audit="webhook.update", conditional=True)(change_webhook)
        _command(
            f"edit {place} ID",
            "changed webhook {name}",
            about="Change a webhook.",
            options="name, address: url, event -e: events, format, on/off: active",
        )
        table.delete(one, access, f"Remove a webhook {of}", audit="webhook.delete", conditional=True)(delete_webhook)
        _command(
            f"delete {place} ID",
            "removed webhook {id}",
            about="Remove a webhook.",
            ask="Remove webhook {id}, with what it has not delivered?",
        )
        rotating = f"Give a webhook {of} a new secret"
        table.post(f"{one}/rotate-secret", access, rotating, audit="webhook.rotate")(rotate_secret)
        _command(
            f"rotate {place} ID",
            about="Give a webhook a new secret, and print it.",
            options="overlap: overlap_hours",
            fields=f"{WEBHOOK} | secret: secret",
        )
        table.post(f"{one}/test", access, f"Send a test event to a webhook {of}", audit="webhook.test")(try_webhook)
        _command(
            f"test {place} ID",
            about="Send a test event now, and print what the receiver answered.",
            more="Exit code 1 if it did not take the event.",
            fields=DELIVERY,
            fails=":untaken",
        )
        table.get(sent, access, f"List the deliveries of a webhook {of}", query=[state])(list_deliveries)
        _command(
            f"deliveries {place} ID",
            about="List what was sent, the newest first; or show one delivery with the bodies of request and response.",
            options="state, limit 50",
            columns="ID: id | TYPE: type | SUBJECT: subject | STATE: state | ATTEMPTS: attempts:number | "
            "STATUS: status | WHEN: created_at:ago | ERROR: error",
            nothing="nothing was sent",
        )
        table.get(f"{sent}/<delivery>", access, f"Show a delivery of a webhook {of}")(show_delivery)
        _command(f"deliveries {place} ID DELIVERY", fields=DELIVERY)
        again = f"Send a delivery of a webhook {of} again"
        table.post(f"{sent}/<delivery>/redeliver", access, again, audit="webhook.redeliver")(redeliver)
        _command(
            f"redeliver {place} ID DELIVERY",
            "{delivery} is sent again",
            about="Send a delivery again, with the same message id.",
        )


def _command(usage: str, done: str = "", **rest: Any) -> None:
    """Name the command of the route that was added last."""
    said = {"--repository": "The webhooks of a repository.", "--project": "The webhooks of a project."}
    unfit = "give --repository or --project, not both"
    table.command(f"webhook {usage}", done, said=said, unfit=unfit, **rest)(table.routes[-1].handler)


_mount()


async def _place(call: Call, key: str) -> _Place:
    """The place of the route; the caller's permission is checked."""
    if key:
        project = await find_project(call, key, ProjectRole.MAINTAINER)
        return _Place(project_id=project.id, project=project.key)
    if call.route.path.startswith("/repository/"):
        repository = call.repository.authority
        return _Place(repository_id=repository.id, repository=repository.path)
    return _Place()


async def _find(call: Call, id: str, key: str) -> tuple[_Place, Webhook]:
    """A webhook of the place of the route. :raises NotFound: it has no such one"""
    place = await _place(call, key)
    webhook: Webhook | None = await call.catalog.look(webhooks.find_webhook, id)
    there = (place.repository_id, place.project_id)
    if webhook is None or (webhook.repository_id, webhook.project_id) != there:
        raise NotFound("webhook", id)
    call.object = f"{place.name}/{webhook.name}"
    return place, webhook


async def _fields(call: Call, place: _Place, webhook: Webhook) -> dict[str, Any]:
    pending = await call.catalog.look(webhook_deliveries.count_pending, webhook.id)
    return webhook_fields(webhook, pending, place.repository, place.project)


def _check_url(call: Call, url: str) -> str:
    """The host of a receiver. :raises Invalid: the URL cannot be used"""
    try:
        target = parse_url(url)
    except ValueError as error:
        raise Invalid(f"the address cannot be used: {error}", "/url") from None
    if not call.services.events.poster.permits(target.host):
        raise Invalid(f"the address cannot be used: {FORBIDDEN}", "/url")
    return target.host


def _address(call: Call) -> str:
    path: str = call.request.raw_path.decode("ascii")
    return path.rstrip("/")
