"""
Canary tokens: they look like any other, nobody has a reason to use one, and whoever does is reported.

A use is refused as a wrong token is: the checker of tokens raises the same error, after the same look-up, and what is
reported is noted in memory and written afterwards. A canary is found by its hash alone: it rings whatever name is sent
with it, and after its owner was switched off, until it is revoked or has expired.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from twisted.logger import Logger

from pkgrepo.errors import StorageFailed, StorageFull
from pkgrepo.interfaces import ICatalog
from pkgrepo.model import Token
from pkgrepo.storage.catalog.people.canaries import Ring, write_rings
from pkgrepo.storage.catalog.server.audit import Entry

from .text import hide_tokens

FLUSH_S: Final = 1.0  # seconds; a crash loses the uses of this time, which the log has
MOST_RUNG: Final = 1000  # pairs of token and address in a minute: a use from more of them is counted and not reported
MOST_TEXT: Final = 200  # characters of a User-Agent, and of a road
MINUTE_S: Final = 60

log = Logger()


class CanaryRings:
    """
    Collects uses of canaries, one for each token, address and minute; ``flush`` writes them.

    ``copy_entry`` is given each row of the audit log. ``clock`` returns seconds since the epoch.
    """

    def __init__(
        self, catalog: ICatalog, *, copy_entry: Callable[[Entry], None], clock: Callable[[], float] = time.time
    ) -> None:
        self._catalog = catalog
        self._copy_entry = copy_entry
        self._clock = clock
        self._minute = 0
        self._rung: set[tuple[int, str]] = set()
        self._pending: list[Ring] = []
        self._lost = 0

    def note(self, token: Token, address: str, client: str, road: str) -> None:
        """Report a use, by its address, the ``client`` (User-Agent), and the ``road``: method and path."""
        now_s = self._clock()
        minute = int(now_s // MINUTE_S)
        if minute != self._minute:
            self._minute = minute
            self._rung.clear()
        if (token.id, address) in self._rung:
            return
        if len(self._rung) >= MOST_RUNG:
            self._lost += 1
            return
        self._rung.add((token.id, address))
        client, road = hide_tokens(client)[:MOST_TEXT], hide_tokens(road)[:MOST_TEXT]
        log.warn(
            "the canary token {token!r} ({uid}) was used from {address}, for {road}, by {client!r}",
            token=token.name,
            uid=token.uid,
            address=address,
            road=road,
            client=client,
        )
        self._pending.append(Ring(token.uid, address, client, road, int(now_s * 1000)))

    async def flush(self) -> None:
        """Write what was collected; it is kept for the next time while the catalog cannot be written."""
        pending, self._pending = self._pending, []
        lost, self._lost = self._lost, 0
        if lost:
            log.warn("canary tokens were used {count} times more, from other addresses", count=lost)
        if not pending:
            return
        try:
            entries = await self._catalog.write(write_rings, pending)
        except (StorageFull, StorageFailed):  # which the catalog has logged
            self._pending = [*pending, *self._pending][:MOST_RUNG]  # the log has all of them
            return
        for each in entries:
            self._copy_entry(each)
