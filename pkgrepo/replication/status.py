"""How far a repository has followed another one, for people and metrics."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from attrs import frozen

from pkgrepo.interfaces import Reader
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.proxy.configuration import proxy_config_of
from pkgrepo.storage.catalog.rows import to_ms
from pkgrepo.storage.catalog.server.replicas import (
    DELETED,
    FOLLOWING,
    KEPT,
    LISTED,
    NEW,
    Backlog,
    Replica,
    backlog_of,
    find_replica,
)

QUIET_MS: Final = 60_000  # how long an upstream may be silent: it is asked all the time, and answers after 20 s


@frozen
class ReplicaStatus:
    """
    The state of a replica: waiting (nothing was read yet), comparing, following, or failing for the reason ``error``.

    ``lag_events`` are events that are not read and tasks that are not done; ``lag_s`` is since when, in seconds, 0 if
    nothing is left, None if that was never so.
    """

    state: str
    source: str
    files: tuple[str, ...]
    position: str
    lag_events: int
    lag_s: float | None
    tasks: int
    failed_tasks: int
    error: str
    failing_since: datetime | None
    compared_at: datetime | None
    reason: str
    checked_at: datetime | None
    current_at: datetime | None


def read_status(r: Reader, repository: Repository, now_ms: int) -> ReplicaStatus | None:
    """The status of a repository; None if it follows no other one."""
    if repository.type is not RepositoryType.PROXY:
        return None
    followed = proxy_config_of(repository).follows
    if followed is None:
        return None
    source = f"{followed.server} {followed.repository}"
    found = find_replica(r, repository.id)
    if found is None or found.source != source:
        found = Replica(repository.id, source, "", NEW, "", 0, None, "", None, None, "", None)
    return _status(found, backlog_of(r, repository.id), followed.files, now_ms)


def _status(found: Replica, backlog: Backlog, files: tuple[str, ...], now_ms: int) -> ReplicaStatus:
    current_ms, checked_ms = to_ms(found.current_at), to_ms(found.checked_at) or 0
    state = "failing" if found.error else _STATES[found.walk]
    left = found.events_left + backlog.tasks
    is_current = not left and not found.error and found.walk == FOLLOWING and now_ms - checked_ms < QUIET_MS
    lag_s = None if current_ms is None else max(now_ms - current_ms, 0) / 1000
    return ReplicaStatus(
        state=state,
        source=found.source,
        files=files,
        position=found.position,
        lag_events=left,
        lag_s=0.0 if is_current and current_ms is not None else lag_s,
        tasks=backlog.tasks,
        failed_tasks=backlog.failed,
        error=found.error or backlog.error,
        failing_since=found.failing_since,
        compared_at=found.compared_at,
        reason=found.reason,
        checked_at=found.checked_at,
        current_at=found.current_at,
    )


_STATES: Final = {
    NEW: "waiting",
    KEPT: "comparing",
    LISTED: "comparing",
    DELETED: "comparing",
    FOLLOWING: "following",
}
