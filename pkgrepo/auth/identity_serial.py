"""Detects changes of identities or permissions, by this process or another one."""

from __future__ import annotations

from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.storage.catalog.people.users import identity_serial
from pkgrepo.storage.catalog.snapshot import Snapshot


class IdentitySerial:
    """
    The catalog's identity serial, which grows with every change of users, groups, grants, tokens and projects.

    It is read again only after a commit; otherwise asking costs one comparison.
    """

    def __init__(self, catalog: ICatalog) -> None:
        self._snapshot = Snapshot(catalog, _read, 0)

    def now(self) -> int | None:
        """The serial as of the last commit if it is known without waiting, else None: await ``current`` then."""
        return self._snapshot.value if self._snapshot.refresh_now() else None

    async def current(self) -> int:
        """The current serial. It never decreases, in whatever order replies arrive."""
        await self._snapshot.refresh()
        return self._snapshot.value


def _read(reader: Reader, _before: int) -> int:
    return identity_serial(reader)
