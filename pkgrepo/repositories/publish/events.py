"""What every change of a package writes at its end: a new serial and an event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, Package, Repository, Version
from pkgrepo.storage.catalog.packages import events, packages
from pkgrepo.storage.catalog.server import repositories


def bump_package_serial(tx: Transaction, repository: Repository, package: Package, now_ms: int) -> Package:
    """Increase the repository's serial and set it on the package. Returns the changed package."""
    serial = repositories.bump_serial(tx, repository.id)
    packages.touch_package(tx, package.id, serial=serial, now_ms=now_ms)
    return evolve(package, serial=serial)


def append_package_event(
    tx: Transaction,
    package: Package,
    kind: str,
    data: Mapping[str, Any],
    actor: Actor,
    now_ms: int,
    *,
    version: Version | None = None,
) -> None:
    """Append an event for a package; with ``version`` for that version, whose text is added to the data."""
    events.append_event(
        tx,
        repository_id=package.repository_id,
        package_id=package.id,
        package_key=package.key,
        version_key="" if version is None else version.key,
        kind=kind,
        data=data if version is None else {"version": version.text, **data},
        actor=actor,
        now_ms=now_ms,
    )
