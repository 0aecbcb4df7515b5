"""The lock of a twin in a bucket, with a store that answers when the test says so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from pkgrepo.client.twins import bucket
from pkgrepo.client.twins.bucket import LOCK, RENEW_S, _Place


class Store:
    """The objects of a bucket; a write of the lock waits for ``held``."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.held: Deferred[None] | None = None

    async def stat(self, key: str) -> tuple[int, datetime] | None:
        return (1, datetime.now(UTC)) if key in self.objects else None

    async def put(self, key: str, body: Any, _type: str, *, same: bool = True) -> None:
        if self.held is not None:
            await self.held
        self.objects[key] = body

    async def delete(self, key: str) -> None:
        self.objects.pop(key, None)


class Stops:
    async def stop(self) -> None:
        """Nothing is open."""


def test_a_lock_that_is_renewed_at_the_end_is_given_back(monkeypatch: Any) -> None:
    store, clock, stops = Store(), Clock(), Stops()
    monkeypatch.setattr(bucket, "Bucket", lambda *_, **__: store)
    monkeypatch.setattr(bucket, "digest_body", lambda data: data)
    place: Any = _Place("s3://twin", stops, "", stops)

    async def read(key: str) -> bytes | None:
        return store.objects.get(key)

    place.read = read
    Deferred.fromCoroutine(place.lock(clock)).addErrback(lambda failure: failure.raiseException())
    assert LOCK in store.objects
    store.held = Deferred()
    clock.advance(RENEW_S)
    closed = Deferred.fromCoroutine(place.close())
    assert not closed.called
    store.held.callback(None)
    assert closed.called
    assert closed.result is None
    assert LOCK not in store.objects
