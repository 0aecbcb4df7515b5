"""Reads unlocks of logins from the catalog, for the throttle; a command or another process adds them."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.interfaces import NOT_NOW, ICatalog
from pkgrepo.storage.catalog.people.login_unlocks import LoginUnlock, unlocks_after


class NewUnlocks:
    """Returns the unlocks added since the last call; ``seen`` is the id of the newest one that is not new."""

    def __init__(self, catalog: ICatalog, seen: int) -> None:
        self._catalog = catalog
        self._seen = seen

    def now(self) -> Sequence[LoginUnlock]:
        """The new unlocks, oldest first, from a catalog that answers at once; none from another."""
        found = self._catalog.peek(unlocks_after, self._seen)
        return () if found is NOT_NOW else self._new(found)

    async def read(self) -> Sequence[LoginUnlock]:
        """The new unlocks, oldest first."""
        return self._new(await self._catalog.look(unlocks_after, self._seen))

    def _new(self, found: Sequence[LoginUnlock]) -> Sequence[LoginUnlock]:
        new = [each for each in found if each.id > self._seen]  # others may have asked at the same time
        if new:
            self._seen = new[-1].id
        return new
