"""
Reads all that is stored in folders once in so many days, at a steady pace, and compares it with its digests.

Digests are spread evenly. So the pace needs no sizes: after a tenth of the time the blobs with the first tenth of all
digests have been read. Where it stands is in the catalog, so that a restart goes on there.
"""

from __future__ import annotations

from typing import Final

import msgspec
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from pkgrepo.concurrency.services import PeriodicTask
from pkgrepo.errors import PkgrepoError
from pkgrepo.model import BlobInfo, Storage
from pkgrepo.repositories.context import FAILURES, MaintenanceContext, reason_of
from pkgrepo.repositories.integrity import find_damage
from pkgrepo.storage.catalog.blobs import blobs
from pkgrepo.storage.catalog.server import settings

from .mending import Mender, log_damage

log = Logger()

EVERY_S: Final = 60.0
PART: Final = 1 / 4  # of the time at most is spent with reading, also where a server was off for long
PAGE: Final = 64
DAY_MS: Final = 24 * 3600 * 1000
_BYTES: Final = 8  # of a digest, which tell how far it is


class Position(msgspec.Struct, kw_only=True):
    """How far the reading of a storage has come: since ``since_ms``, up to the digest ``after`` (hex), and what of."""

    since_ms: int
    after: str = ""
    read: int = 0
    damaged: int = 0


class Scrub(PeriodicTask):
    """Reads every storage in a folder once in ``days``, and has what is damaged replaced."""

    def __init__(self, context: MaintenanceContext, *, mender: Mender, days: int, reactor: IReactorTime) -> None:
        super().__init__(self.run_once, reactor, every_s=EVERY_S, what="reading what is stored")
        self._context = context
        self._mender = mender
        self._span_ms = days * DAY_MS
        self._reactor = reactor

    async def run_once(self) -> None:
        """Read what is due; it may be cancelled at any await."""
        await self._context.registry.refresh()
        ends_at = self._reactor.seconds() + EVERY_S * PART
        for storage in self._context.registry.storages():
            if storage.active and storage.is_local and storage.before is None:
                try:
                    await self._go_on(storage, ends_at)
                except FAILURES as error:
                    log.warn("storage {storage} is read later: {reason}", storage=storage.name, reason=reason_of(error))

    async def _go_on(self, storage: Storage, ends_at: float) -> None:
        context, catalog, now_ms = self._context, self._context.catalog, self._context.clock.now_ms()
        at = _position(await catalog.look(settings.get, _key(storage)))
        if at is None or at.since_ms > now_ms:  # the first time, or the clock was set back
            at = Position(since_ms=now_ms)
            await self._save(storage, at)
        due = _due((now_ms - at.since_ms) / self._span_ms)
        while self._reactor.seconds() < ends_at:
            after = bytes.fromhex(at.after)
            page = [
                each for each in await catalog.scan(blobs.list_blobs, storage.id, after, PAGE) if each.sha256 <= due
            ]
            if not page:
                break
            sound = [each.sha256 for each in page if await self._is_sound(storage, each, at)]
            await catalog.write(blobs.set_verified, storage.id, sound, context.clock.now_ms())
            at.read += len(page)
            at.after = page[-1].sha256
            await self._save(storage, at)
        else:
            return
        if now_ms - at.since_ms >= self._span_ms:
            log.info(
                "read all {read} blobs of storage {storage}: {damaged} were damaged",
                read=at.read,
                storage=storage.name,
                damaged=at.damaged,
            )
            await self._save(storage, Position(since_ms=now_ms))

    async def _is_sound(self, storage: Storage, info: BlobInfo, at: Position) -> bool:
        """
        Compare a blob, and count one that is damaged. Returns whether it is as it should be.

        One that cannot be read is passed over, with a warning.

        :raises StorageFailed: the storage is away, or this process cannot tell
        """
        context = self._context
        store = await context.stores.of(storage)
        try:
            damage = await find_damage(context.pools, store, info.locator, info.sha256)
            if damage is None:
                return True
            found = await self._mender.mark(storage, store, info, damage)
        except FAILURES as error:
            await store.check(info.locator)
            log.warn("blob {sha256} was not compared: {reason}", sha256=info.sha256, reason=reason_of(error))
            return False
        if found is not None:
            at.damaged += 1
            log_damage(storage, info, found)
        return False

    async def _save(self, storage: Storage, at: Position) -> None:
        await self._context.catalog.write(settings.put, _key(storage), msgspec.json.encode(at).decode("ascii"))


class Mending(PeriodicTask):
    """Tries every hour to replace what is known to be damaged."""

    def __init__(self, context: MaintenanceContext, *, mender: Mender, reactor: IReactorTime) -> None:
        super().__init__(self.run_once, reactor, every_s=3600.0, what="replacing damaged blobs")
        self._context = context
        self._mender = mender

    async def run_once(self) -> None:
        """Do the work once; it may be cancelled at any await."""
        await self._context.registry.refresh()
        for storage in self._context.registry.storages():
            try:
                mended = await self._mender.try_again(storage)
            except PkgrepoError as error:
                log.warn("storage {storage} is looked at later: {error}", storage=storage.name, error=str(error))
                continue
            if mended:
                log.info("replaced {count} damaged blobs of {storage}", count=mended, storage=storage.name)


def _due(part: float) -> str:
    """The last digest, in hex, that is to be read when a part (0 to 1) of the time has passed."""
    if part >= 1:
        return "f" * 64
    return int(part * (1 << 8 * _BYTES)).to_bytes(_BYTES, "big").hex()


def _position(text: str | None) -> Position | None:
    return None if text is None else msgspec.json.decode(text, type=Position)


def _key(storage: Storage) -> str:
    return f"scrub:{storage.uid}"
