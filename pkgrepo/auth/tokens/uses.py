"""Collects uses of tokens in memory and writes them periodically instead of at every request."""

from __future__ import annotations

import time
from collections.abc import Callable

from attrs import define

from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import TokenUse
from pkgrepo.storage.catalog.people.tokens import record_use

FLUSH_EVERY_S = 60  # seconds; a crash loses uses of this time
BATCH = 500  # rows per transaction, so that publishes do not wait long
MAX_CLIENT = 200  # characters of a User-Agent stored


@define
class _Pending:
    count: int = 0
    at: float = 0.0
    address: str = ""
    client: str = ""


class TokenUses:
    """
    Collects uses; ``flush`` writes them.

    Call ``flush`` every ``FLUSH_EVERY_S`` and at stop. ``clock`` returns seconds since the epoch.
    """

    def __init__(self, catalog: ICatalog, *, clock: Callable[[], float] = time.time, batch: int = BATCH) -> None:
        self._batch = batch
        self._catalog = catalog
        self._clock = clock
        self._pending: dict[int, _Pending] = {}

    def note(self, token_id: int, address: str = "", client: str = "") -> None:
        """Record one use; an empty address or client keeps the last known one."""
        pending = self._pending.get(token_id)
        if pending is None:
            pending = self._pending[token_id] = _Pending()
        pending.count += 1
        pending.at = self._clock()
        if address:
            pending.address = address
        if client:
            pending.client = client[:MAX_CLIENT]

    async def flush(self) -> None:
        """Write the collected uses; those that cannot be written are kept for the next flush."""
        while self._pending:
            batch = {token_id: self._pending.pop(token_id) for token_id in list(self._pending)[: self._batch]}
            uses = [
                TokenUse(token_id, int(use.at * 1000), use.address, use.client, use.count)
                for token_id, use in batch.items()
            ]
            try:
                await self._catalog.write(record_use, uses)
            except (StorageFull, StorageFailed):  # logged by the catalog
                for token_id, use in batch.items():
                    self._keep(token_id, use)
                return

    def _keep(self, token_id: int, use: _Pending) -> None:
        newer = self._pending.setdefault(token_id, use)
        if newer is not use:
            newer.count += use.count
            newer.address = newer.address or use.address
            newer.client = newer.client or use.client
