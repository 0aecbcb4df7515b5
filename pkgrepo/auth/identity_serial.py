"""Noticing that identities or permissions have changed, in this process or another."""

from __future__ import annotations

from pkgrepo.interfaces import ICatalog
from pkgrepo.storage.catalog.people.identity import identity_serial


class IdentitySerial:
    """
    The catalog's identity serial, as of the last commit.

    It is read again only when the catalog's generation has moved, so asking costs one comparison between commits.
    """

    def __init__(self, catalog: ICatalog) -> None:
        self._catalog = catalog
        self._generation: int | None = None
        self._serial = 0

    def current(self) -> int:
        """A number that grows with every change of users, groups, grants, tokens and projects."""
        generation = self._catalog.generation()
        if generation != self._generation:
            self._serial = self._catalog.look_inline(identity_serial)
            self._generation = generation
        return self._serial
