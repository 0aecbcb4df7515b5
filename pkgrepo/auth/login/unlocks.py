"""Reads unlocks of logins from the catalog, for the throttle; a command or another process adds them."""

from __future__ import annotations

from collections.abc import Sequence

from pkgrepo.interfaces import ICatalog
from pkgrepo.storage.catalog.people.login_unlocks import LoginUnlock, newest_unlock, unlocks_after


class NewUnlocks:
    """Returns the unlocks added since the last call, at first since it was created."""

    def __init__(self, catalog: ICatalog) -> None:
        self._catalog = catalog
        self._seen = catalog.look_inline(newest_unlock)

    def __call__(self) -> Sequence[LoginUnlock]:
        """The new unlocks, oldest first."""
        found = self._catalog.look_inline(unlocks_after, self._seen)
        if found:
            self._seen = found[-1].id
        return found
