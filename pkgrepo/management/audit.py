"""The audit log, read by admins; ``api.audit_log`` writes it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.management.api.access_rules import AUDITORS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import Page
from pkgrepo.management.api.route import NDJSON, Lines, Parameter, Table, sorting
from pkgrepo.management.api.schema import Record
from pkgrepo.model import AuditEntry
from pkgrepo.model.structs import meaning
from pkgrepo.storage.catalog.server.audit import AUDIT_ORDERS, list_audit

table = Table("audit")


class AuditRecord(Record):
    """A row of the audit log: actor, client address, action, object and outcome (ok, refused or failed)."""

    id: Annotated[int, meaning("The number of the row.")]
    time: Annotated[datetime, meaning("When it happened.")]
    request_id: Annotated[str, meaning("The id of the request, which is in the server's log.")]
    actor: Annotated[str, meaning("Who did it.")]
    token_id: Annotated[int | None, meaning("The number of the token that was used; null without one.")]
    address: Annotated[str, meaning("The network address of the client.")]
    action: Annotated[str, meaning("What was done.")]
    object: Annotated[str, meaning("What it was done to.")]
    outcome: Annotated[str, meaning("ok, refused or failed.")]
    detail: Annotated[dict[str, Any], meaning("Further facts.")]

    @classmethod
    def of(cls, entry: AuditEntry) -> Self:
        """The record of a row of the audit log."""
        return cls.from_attributes(entry, id=entry.seq, time=entry.at, detail=dict(entry.detail))


@table.get(
    "/audit",
    AUDITORS,
    "Read the audit log",
    query=(
        Parameter("actor", "Only rows of this user name."),
        Parameter("object", "Only rows about this object."),
        Parameter(
            "action",
            "Only rows with this action; a value with a dot at its end, such as user., is a prefix.",
        ),
        Parameter("outcome", "Only rows with this outcome: ok, refused or failed."),
        Parameter("from", "Only rows at or after this time (RFC 3339)."),
        Parameter("to", "Only rows before this time (RFC 3339)."),
        sorting(AUDIT_ORDERS, "-time"),
        Parameter("format", "ndjson returns the rows as one JSON object on each line instead of a page."),
    ),
)
async def list_entries(call: Call) -> Page[AuditRecord] | Lines:
    """The NDJSON form (format, or the Accept field) has the next page in the Link field."""
    await call.services.callers.audit_log.flush_all()
    page = await call.page(
        list_audit,
        by=call.order(AUDIT_ORDERS, "-time"),
        show=AuditRecord.of,
        actor=call.query("actor"),
        object=call.query("object"),
        action=call.query("action"),
        outcome=call.query("outcome"),
        from_ms=_time(call, "from"),
        to_ms=_time(call, "to"),
    )
    accepted = call.request.header(b"accept") or b""
    if call.query("format") == "ndjson" or NDJSON in accepted:
        return Lines(page)
    return page


def _time(call: Call, name: str) -> int | None:
    text = call.query(name)
    if not text:
        return None
    try:
        # a plus sign that was not escaped in the query is decoded as a space
        value = msgspec.convert(text.replace(" ", "+"), datetime)
    except msgspec.ValidationError:
        raise Invalid(f"{name} is a time such as 2026-01-31T12:00:00Z", name) from None
    if value.tzinfo is None:
        raise Invalid(f"{name} names its offset, such as Z", name)
    return round(value.timestamp() * 1000)
