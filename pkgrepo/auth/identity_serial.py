"""Noticing that identities or permissions have changed, in this process or another."""

from __future__ import annotations

from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.storage.catalog.people.identity import identity_serial
from pkgrepo.storage.catalog.snapshot import Snapshot


class IdentitySerial:
    """
    The catalog's identity serial, which grows with every change of users, groups, grants, tokens and projects.

    It is read again only when the catalog's generation has moved, so asking costs one comparison between commits.
    """

    def __init__(self, catalog: ICatalog) -> None:
        self._snapshot = Snapshot(catalog, _read, 0)

    def now(self) -> int | None:
        """The serial as of the last commit, or None when it is not in memory: await ``current`` then."""
        return self._snapshot.value if self._snapshot.refresh_now() else None

    async def current(self) -> int:
        """The serial as of now. It never goes back, whatever order replies come in."""
        await self._snapshot.refresh()
        return self._snapshot.value


def _read(reader: Reader, _before: int) -> int:
    return identity_serial(reader)
