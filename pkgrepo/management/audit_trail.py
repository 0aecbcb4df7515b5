"""Lines of the audit log: written with the change that they tell of, or alone when there was none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec
from attrs import Factory, frozen

from pkgrepo.interfaces import ICatalog, Transaction
from pkgrepo.model import Actor
from pkgrepo.repositories.clock import Clock, from_ms
from pkgrepo.storage.catalog.audit import append_audit

T = TypeVar("T")
P = ParamSpec("P")

OK = "ok"
REFUSED = "refused"
FAILED = "failed"


@frozen
class Entry:
    """One line: who did what to which object, and how it ended. ``detail`` must hold no secrets."""

    actor: Actor
    action: str
    object: str
    outcome: str = OK
    detail: Mapping[str, Any] = Factory(dict)


class AuditTrail:
    """Writes audit lines into the catalog, and a copy to ``sink`` once they are durable."""

    def __init__(self, catalog: ICatalog, clock: Clock, sink: Callable[[bytes], None] | None) -> None:
        self._catalog = catalog
        self._clock = clock
        self._sink = sink

    async def record(self, entry: Entry) -> None:
        """Write a line alone."""
        await self._catalog.write(_append, entry, self._clock.now_ms())
        self.copy(entry)

    async def write(
        self, entry: Entry, command: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a write command, with its line in the same transaction: both are durable, or neither happened."""
        result: T = await self._catalog.write(self.audited(entry, command), *args, **kwargs)
        self.copy(entry)
        return result

    def audited(
        self, entry: Entry, command: Callable[Concatenate[Transaction, P], T]
    ) -> Callable[Concatenate[Transaction, P], T]:
        """The command with the line; the caller makes the copy."""
        now_ms = self._clock.now_ms()

        def run(tx: Transaction, /, *args: P.args, **kwargs: P.kwargs) -> T:
            result = command(tx, *args, **kwargs)
            _append(tx, entry, now_ms)
            return result

        return run

    def copy(self, entry: Entry) -> None:
        """Give a durable line to the sink."""
        if self._sink is None:
            return
        actor = entry.actor
        line = {
            "time": from_ms(self._clock.now_ms()),
            "request_id": actor.request_id,
            "actor": actor.name,
            "token_id": actor.token_id,
            "address": actor.address,
            "action": entry.action,
            "object": entry.object,
            "outcome": entry.outcome,
            "detail": entry.detail,
        }
        self._sink(msgspec.json.encode(line) + b"\n")


def _append(tx: Transaction, entry: Entry, now_ms: int) -> None:
    append_audit(
        tx,
        actor=entry.actor,
        action=entry.action,
        now_ms=now_ms,
        object=entry.object,
        outcome=entry.outcome,
        detail=entry.detail,
    )
