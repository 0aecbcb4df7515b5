"""Detects changes of identities or permissions, by this process or another one."""

from __future__ import annotations

from pkgrepo.interfaces import ICatalog, Reader
from pkgrepo.storage.catalog.people.users import identity_serial
from pkgrepo.storage.catalog.snapshot import Snapshot


def identity_serial_of(catalog: ICatalog) -> Snapshot[int]:
    """
    The catalog's identity serial, which grows with every change of users, groups, grants, tokens and projects.

    It is read again only after a commit, and never decreases, in whatever order replies arrive.
    """
    return Snapshot(catalog, _read, 0)


def _read(reader: Reader, _before: int) -> int:
    return identity_serial(reader)
