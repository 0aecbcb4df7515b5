"""
Deployments whose process was stopped while it worked on them: their leases have expired, or were given up.

=======================================  ==============================  ===============================================
state                                    becomes                         because
=======================================  ==============================  ===============================================
PENDING                                  FAILED; a session stays         the archive did not arrive whole
VALIDATING                               the same, with the lease FREE   the archive is durable
VALIDATED, PUBLISHING of an automatic    VALIDATED, with the lease FREE  all files are durable, and none is published
deployment
VALIDATED, PUBLISHING of another one     VALIDATED; a session PENDING    its user decides when it is published
=======================================  ==============================  ===============================================

Any process may take over one whose lease is ``FREE``, and goes on with it. One that was taken over ``MOST_ATTEMPTS``
times fails, since it may be what stops the processes.
"""

from __future__ import annotations

from typing import Final

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model.deployments import Deployment
from pkgrepo.storage.catalog.rows import every, find

from .deployments import DEPLOYMENT, FAILED, LEASE_MS, end_deployment, to_deployment

FREE: Final = 0  # in place of the time at which a lease expires
MOST_ATTEMPTS: Final = 5

INTERRUPTED: Final = "the server was stopped while it received this deployment; nothing was published: send it again"
GIVEN_UP: Final = (
    f"the server was stopped {MOST_ATTEMPTS + 1} times while it worked on this deployment; nothing was published"
)

_GOES_ON = "package_key = '' AND (state = 'VALIDATING' OR (automatic = 1 AND state IN ('VALIDATED', 'PUBLISHING')))"


def release_interrupted(tx: Transaction, storage_id: int, now_ms: int, alone_since_ms: int = 0) -> int:
    """
    Release the deployments of a storage whose leases have expired. Returns how many.

    Leases that were last renewed before ``alone_since_ms``, when no other process used the storage, have expired too.
    """
    rows = tx.all(
        """
        SELECT id FROM deployment WHERE lease_until > ? AND lease_until < ?
            AND repository_id IN (SELECT id FROM repository WHERE storage_id = ?)
        """,
        (FREE, max(now_ms, alone_since_ms + LEASE_MS), storage_id),
    )
    for (deployment_id,) in rows:
        release(tx, deployment_id, now_ms)
    return len(rows)


def release(tx: Transaction, deployment_id: int, now_ms: int) -> None:
    """Release a deployment on which its process does not work any more, as the table says."""
    freed = tx.execute(
        f"""
        UPDATE deployment SET lease_until = ?, state = CASE state WHEN 'PUBLISHING' THEN 'VALIDATED' ELSE state END
        WHERE id = ? AND {_GOES_ON}
        """,
        (FREE, deployment_id),
    )
    if freed:
        return
    kept = tx.execute(
        """
        UPDATE deployment SET lease_until = NULL,
            state = CASE WHEN package_key <> '' THEN 'PENDING' ELSE 'VALIDATED' END
        WHERE id = ? AND state IN ('PENDING', 'VALIDATED', 'PUBLISHING') AND (package_key <> '' OR state <> 'PENDING')
        """,
        (deployment_id,),
    )
    if not kept:
        end_deployment(tx, deployment_id, FAILED, {"": [INTERRUPTED]}, now_ms)


def list_interrupted(r: Reader, now_ms: int, limit: int) -> list[Deployment]:
    """At most ``limit`` deployments in active repositories whose lease is free or has expired, the oldest first."""
    return every(
        r,
        to_deployment,
        f"""
        {DEPLOYMENT}
        WHERE lease_until < ? AND repository_id IN (
            SELECT r.id FROM repository r JOIN storage s ON s.id = r.storage_id
            WHERE r.active = 1 AND r.deleted_at IS NULL AND s.active = 1
        )
        ORDER BY lease_until, id LIMIT ?
        """,
        (now_ms, limit),
    )


def take_over(tx: Transaction, deployment_id: int, now_ms: int) -> Deployment | None:
    """
    Take the lease of an interrupted deployment, and return it as it is now.

    None if no process can go on with it, or another one has taken it.
    """
    if tx.one("SELECT 1 FROM deployment WHERE id = ? AND lease_until < ?", (deployment_id, now_ms)) is None:
        return None
    release(tx, deployment_id, now_ms)
    taken = tx.execute(
        """
        UPDATE deployment SET lease_until = ?, touched_at = ?, attempts = attempts + 1
        WHERE id = ? AND lease_until = ? AND attempts < ?
        """,
        (now_ms + LEASE_MS, now_ms, deployment_id, FREE, MOST_ATTEMPTS),
    )
    if taken:
        return find(tx, to_deployment, f"{DEPLOYMENT} WHERE id = ?", (deployment_id,))
    if tx.one("SELECT 1 FROM deployment WHERE id = ? AND lease_until = ?", (deployment_id, FREE)) is not None:
        end_deployment(tx, deployment_id, FAILED, {"": [GIVEN_UP]}, now_ms)
    return None
