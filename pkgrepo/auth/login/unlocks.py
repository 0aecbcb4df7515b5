"""Blocks that were lifted in the catalog, by a command or another process, as the throttle of this one learns them."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.interfaces import ICatalog
from pkgrepo.storage.catalog.people.login_unlocks import LoginUnlock, newest_unlock, unlocks_after


class NewUnlocks:
    """Calling it gives what has been added since the last time; what was there at first is not new."""

    def __init__(self, catalog: ICatalog) -> None:
        self._catalog = catalog
        self._seen = catalog.look(newest_unlock)

    def __call__(self) -> Sequence[LoginUnlock]:
        """The new ones, in their order: a look-up, for the reactor's thread."""
        found = self._catalog.look(unlocks_after, self._seen)
        if found:
            self._seen = found[-1].id
        return found
