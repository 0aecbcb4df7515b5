"""``pkgrepo webhook``: receivers of events, and what was sent to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from pkgrepo.client.http import Failed
from pkgrepo.client.printer import Column, aged, time_with_age
from pkgrepo.client.session import Session, confirmed, remote
from pkgrepo.errors import Invalid

F = TypeVar("F", bound=Callable[..., Any])


def _state(record: Any) -> str:
    if record["disabled_reason"]:
        return "switched off by the server"
    if not record["active"]:
        return "off"
    return "failing" if record["failing_since"] else "on"


FORMATS = click.Choice(["cloudevents", "plain"])
COLUMNS = (
    Column("ID", "id"),
    Column("NAME", "name"),
    Column("EVENTS", lambda each: ", ".join(each["events"])),
    Column("STATE", _state),
    Column("PENDING", "pending", right=True),
    Column("ADDRESS", "url"),
)
DELIVERIES = (
    Column("ID", "id"),
    Column("TYPE", "type"),
    Column("SUBJECT", "subject"),
    Column("STATE", "state"),
    Column("ATTEMPTS", "attempts", right=True),
    Column("STATUS", lambda each: "" if each["status"] is None else str(each["status"])),
    Column("WHEN", aged("created_at")),
    Column("ERROR", "error"),
)


def placed(command: F) -> F:
    """Add the options that say whose webhooks a command is about."""
    command = click.option("--project", default="", metavar="KEY", help="The webhooks of a project.")(command)
    option = click.option(
        "--repository", default="", metavar="STORAGE/REPOSITORY", help="The webhooks of a repository."
    )
    return option(command)


@click.group()
def webhook() -> None:
    """Webhooks: of the whole server, of a repository (--repository), or of a project (--project)."""


@webhook.command("list")
@placed
@remote
async def list_webhooks(session: Session, repository: str, project: str) -> None:
    """List webhooks."""
    found = await session.client.get(*_place(repository, project))
    session.printer.table(COLUMNS, found, "there are no webhooks here")


@webhook.command("show")
@click.argument("id")
@placed
@remote
async def show_webhook(session: Session, id: str, repository: str, project: str) -> None:
    """Show a webhook."""
    record = await session.client.get(*_place(repository, project), id)
    session.printer.record(record, _rows(record))


@webhook.command("create")
@click.argument("name")
@click.argument("address", metavar="URL")
@click.option(
    "--event", "-e", "events", multiple=True, help="A type of event or a pattern, such as package.*; may be repeated."
)
@click.option(
    "--format", "format_", type=FORMATS, default="cloudevents", show_default=True, help="The form of the bodies."
)
@placed
@remote
async def create_webhook(
    session: Session, name: str, address: str, events: tuple[str, ...], format_: str, repository: str, project: str
) -> None:
    """Add a webhook, and print its secret, which is not shown again. Without --event it gets package.*."""
    body = {"name": name, "url": address, "events": list(events) or ["package.*"], "format": format_}
    made = await session.client.change("POST", *_place(repository, project), body=body)
    session.printer.record(made, [*_rows(made), ("secret", made["secret"])])


@webhook.command("edit")
@click.argument("id")
@click.option("--name", help="Its name.")
@click.option("--address", "address", metavar="URL", help="The address of the receiver.")
@click.option("--event", "-e", "events", multiple=True, help="The types of events, in place of the former ones.")
@click.option("--format", "format", type=FORMATS, help="The form of the bodies.")
@click.option("--on/--off", "active", default=None, help="Switch it on or off.")
@placed
@remote
async def edit_webhook(
    session: Session, /, id: str, events: tuple[str, ...], repository: str, project: str, **given: Any
) -> None:
    """Change a webhook."""
    body = {"url" if name == "address" else name: value for name, value in given.items() if value is not None}
    if events:
        body["events"] = list(events)
    if not body:
        raise Invalid("say what to change: see --help")
    changed = await session.client.change("PATCH", *_place(repository, project), id, body=body)
    session.printer.done(f"changed webhook {changed['name']}", changed)


@webhook.command("delete")
@click.argument("id")
@placed
@confirmed("Remove webhook {id}, with what it has not delivered?")
@remote
async def delete_webhook(session: Session, id: str, repository: str, project: str) -> None:
    """Remove a webhook."""
    await session.client.change("DELETE", *_place(repository, project), id)
    session.printer.done(f"removed webhook {id}")


@webhook.command("rotate")
@click.argument("id")
@click.option(
    "--overlap", type=click.IntRange(0, 168), default=24, show_default=True, help="Hours in which both secrets sign."
)
@placed
@remote
async def rotate_secret(session: Session, id: str, overlap: int, repository: str, project: str) -> None:
    """Give a webhook a new secret, and print it."""
    body = {"overlap_hours": overlap}
    changed = await session.client.change("POST", *_place(repository, project), id, "rotate-secret", body=body)
    session.printer.record(changed, [*_rows(changed), ("secret", changed["secret"])])


@webhook.command("test")
@click.argument("id")
@placed
@remote
async def try_webhook(session: Session, id: str, repository: str, project: str) -> None:
    """
    Send a test event now, and print what the receiver answered.

    Exit code 1 if it did not take the event.
    """
    sent = await session.client.change("POST", *_place(repository, project), id, "test")
    _show_delivery(session, sent)
    if sent["state"] != "delivered":
        raise Failed("the receiver did not take the event")


@webhook.command("deliveries")
@click.argument("id")
@click.argument("delivery", required=False)
@click.option("--state", type=click.Choice(["pending", "delivered", "failed"]), help="Only those in this state.")
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="At most so many.")
@placed
@remote
async def list_deliveries(
    session: Session, id: str, delivery: str | None, state: str | None, limit: int, repository: str, project: str
) -> None:
    """List what was sent, the newest first; or show one delivery with the bodies of request and response."""
    place = (*_place(repository, project), id, "deliveries")
    if delivery is not None:
        _show_delivery(session, await session.client.get(*place, delivery))
        return
    found = await session.client.all_items(*place, most=limit, state=state)
    session.printer.table(DELIVERIES, found, "nothing was sent")


@webhook.command("redeliver")
@click.argument("id")
@click.argument("delivery")
@placed
@remote
async def redeliver(session: Session, id: str, delivery: str, repository: str, project: str) -> None:
    """Send a delivery again, with the same message id."""
    place = (*_place(repository, project), id, "deliveries", delivery, "redeliver")
    session.printer.done(f"{delivery} is sent again", await session.client.change("POST", *place))


def _place(repository: str, project: str) -> tuple[str, ...]:
    if repository and project:
        raise Invalid("give --repository or --project, not both")
    if repository:
        return "repository", repository, "webhooks"
    return ("project", project, "webhooks") if project else ("system", "webhooks")


def _rows(record: Any) -> list[tuple[str, Any]]:
    return [
        ("webhook", record["name"]),
        ("id", record["id"]),
        ("address", record["url"]),
        ("events", ", ".join(record["events"])),
        ("format", record["format"]),
        ("of", record["repository"] or record["project"] or "the server"),
        ("state", _state(record)),
        ("reason", record["disabled_reason"]),
        ("failing since", time_with_age(record["failing_since"])),
        ("pending", record["pending"]),
        ("old secret until", time_with_age(record["old_secret_until"])),
    ]


def _show_delivery(session: Session, record: Any) -> None:
    session.printer.record(
        record,
        [
            ("delivery", record["id"]),
            ("message", record["message_id"]),
            ("type", record["type"]),
            ("subject", record["subject"]),
            ("state", record["state"]),
            ("attempts", record["attempts"]),
            ("last attempt", time_with_age(record["attempted_at"])),
            ("next attempt", time_with_age(record["next_attempt_at"])),
            ("status", record["status"]),
            ("took", "" if record["duration_ms"] is None else f"{record['duration_ms']} ms"),
            ("error", record["error"]),
            ("request", record["request"]),
            ("response", record["response"]),
        ],
    )
