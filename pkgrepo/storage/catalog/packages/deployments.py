"""
Deployments: files that are received together, and published together or not at all.

===========  ==================================  ========================================  ==========================
state        meaning                             next state                                after a crash
===========  ==================================  ========================================  ==========================
PENDING      the bytes are arriving              VALIDATING; of a session PUBLISHING       FAILED; a session stays
VALIDATING   the archive is durable, and its     VALIDATED, FAILED                         a process takes it over
             files are checked and stored
VALIDATED    all files are durable               PUBLISHING, FAILED                        stays; if automatic, a
                                                                                           process takes it over
PUBLISHING   they are being published            PUBLISHED, FAILED; the state before if    the state before; if
                                                 that could not be decided                 automatic as VALIDATED
PUBLISHED    all files are visible               none                                      stays
FAILED       none of the files is visible        none                                      stays
===========  ==================================  ========================================  ==========================

The transaction that publishes the files also makes the state PUBLISHED, so they are visible whole or not at all. A
process that works on a deployment holds a lease and renews it. A deployment that is not published within ``EXPIRES_MS``
fails; one with a stage, which has the same uid, does so when the stage ends. Rows of deployments that have ended are
kept for ``KEPT_MS``, so that clients can ask what became of them; their files are dropped at once.

When the process is stopped, the lease expires or is given up:

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

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model.deployments import Deployment, DeploymentState, StagedFile
from pkgrepo.storage.catalog.blobs.blobs import LOCATOR, to_info
from pkgrepo.storage.catalog.rows import column, dump, every, exists, find, insert, only_row, rows, scalar

EXPIRES_MS = 24 * 3_600_000  # after the last change; until then it can be published
KEPT_MS = 7 * 24 * 3_600_000  # after its end
LEASE_MS = 30_000

PENDING, VALIDATING, VALIDATED, PUBLISHING, PUBLISHED, FAILED = DeploymentState

ARCHIVE = ""  # in place of a path: the archive that the files come in, until all of them are stored

EXPIRED = "it was not published within 24 hours, and was dropped"

DEPLOYMENT, to_deployment = rows(
    Deployment, "deployment", lease_ms="lease_until", created_ms="created_at", touched_ms="touched_at"
)


_FILE, _to_file = rows(
    StagedFile,
    "deployment_file f JOIN blob b ON b.storage_id = f.storage_id AND b.sha256 = f.sha256",
    of="f",
    blob=("f.sha256", "b.size", LOCATOR, "b.digests", lambda *blob: to_info(blob)),
)
FREE: Final = 0  # in place of the time at which a lease expires
MOST_ATTEMPTS: Final = 5
INTERRUPTED: Final = "the server was stopped while it received this deployment; nothing was published: send it again"
GIVEN_UP: Final = (
    f"the server was stopped {MOST_ATTEMPTS + 1} times while it worked on this deployment; nothing was published"
)
_GOES_ON = "package_key = '' AND (state = 'VALIDATING' OR (automatic = 1 AND state IN ('VALIDATED', 'PUBLISHING')))"


def add_deployment(
    tx: Transaction,
    *,
    uid: str,
    repository_id: int,
    package_key: str,
    name: str,
    automatic: bool,
    user_id: int | None,
    actor: str,
    size: int,
    meta: Mapping[str, Any],
    leased: bool,
    now_ms: int,
) -> Deployment:
    """Insert a deployment in the state PENDING; ``leased`` if this process works on it from now on."""
    lease = now_ms + LEASE_MS if leased else None
    deployment_id = insert(
        tx,
        "deployment",
        uid=uid,
        repository_id=repository_id,
        package_key=package_key,
        name=name,
        state=PENDING,
        automatic=automatic,
        user_id=user_id,
        actor=actor,
        size=size,
        meta=meta,
        lease_until=lease,
        created_at=now_ms,
        touched_at=now_ms,
    )
    return to_deployment(only_row(tx, f"{DEPLOYMENT} WHERE id = ?", (deployment_id,)))


def find_deployment(r: Reader, repository_id: int, uid: str) -> Deployment | None:
    """The deployment of a repository with this id, or None."""
    return find(r, to_deployment, f"{DEPLOYMENT} WHERE repository_id = ? AND uid = ?", (repository_id, uid))


def find_repository_id(r: Reader, uid: str) -> int | None:
    """The repository of the deployment with this id, or None."""
    return scalar(r, "SELECT repository_id FROM deployment WHERE uid = ?", (uid,))


def find_state(r: Reader, repository_id: int, deployment_id: int) -> DeploymentState | None:
    """The present state of a deployment, or None if it was removed."""
    sql = "SELECT state FROM deployment WHERE repository_id = ? AND id = ?"
    return find(r, lambda row: DeploymentState(*row), sql, (repository_id, deployment_id))


def open_deployments(r: Reader, repository_id: int, user_id: int | None) -> tuple[int, int]:
    """The number of deployments of a user in a repository that have not ended, and their sizes together."""
    return only_row(
        r,
        """
        SELECT COUNT(*), COALESCE(CAST(SUM(size) AS BIGINT), 0) FROM deployment
        WHERE repository_id = ? AND state NOT IN ('PUBLISHED', 'FAILED') AND user_id = ?
        """,
        (repository_id, user_id),
    )


def has_open_session(r: Reader, repository_id: int, package_key: str, now_ms: int) -> bool:
    """Whether a session for this package is open."""
    return exists(
        r,
        """
        SELECT 1 FROM deployment
        WHERE repository_id = ? AND package_key = ? AND state IN ('PENDING', 'PUBLISHING') AND touched_at >= ?
        """,
        (repository_id, package_key, now_ms - EXPIRES_MS),
    )


def set_state(
    tx: Transaction,
    deployment_id: int,
    before: DeploymentState,
    after: DeploymentState,
    *,
    leased: bool,
    now_ms: int,
) -> bool:
    """Change the state; returns False, and changes nothing, if it is not ``before`` any more."""
    lease = now_ms + LEASE_MS if leased else None
    changed = tx.execute(
        "UPDATE deployment SET state = ?, lease_until = ?, touched_at = ? WHERE id = ? AND state = ?",
        (after, lease, now_ms, deployment_id, before),
    )
    return bool(changed)


def renew_leases(tx: Transaction, deployment_ids: Sequence[int], now_ms: int) -> None:
    """Renew the leases of the deployments that this process works on."""
    for each in deployment_ids:
        tx.send(
            "UPDATE deployment SET lease_until = ? WHERE id = ? AND lease_until IS NOT NULL", (now_ms + LEASE_MS, each)
        )


def finish_validation(tx: Transaction, deployment_id: int, size: int, *, leased: bool, now_ms: int) -> bool:
    """
    Make the state VALIDATED, the size that of the files alone, and drop the archive.

    Returns False, and changes nothing, if the state is not VALIDATING any more.
    """
    if not set_state(tx, deployment_id, VALIDATING, VALIDATED, leased=leased, now_ms=now_ms):
        return False
    set_size(tx, deployment_id, size)
    tx.send("DELETE FROM deployment_file WHERE deployment_id = ? AND path = ?", (deployment_id, ARCHIVE))
    return True


def set_size(tx: Transaction, deployment_id: int, size: int) -> None:
    """Set the bytes that a deployment takes."""
    tx.send("UPDATE deployment SET size = ? WHERE id = ?", (size, deployment_id))


def add_size(tx: Transaction, deployment_id: int, size: int, now_ms: int) -> None:
    """Add the bytes of a file that has arrived to those of its deployment."""
    tx.send("UPDATE deployment SET size = size + ?, touched_at = ? WHERE id = ?", (size, now_ms, deployment_id))


def end_deployment(
    tx: Transaction,
    deployment_id: int,
    state: DeploymentState,
    errors: Mapping[str, Sequence[str]],
    now_ms: int,
    meta: Mapping[str, Any] | None = None,
) -> str:
    """
    End a deployment as PUBLISHED or FAILED, and drop its files; one that has ended already is not changed.

    Returns its uid, empty if it was not changed.

    ``meta`` takes the place of what its format kept of it.
    """
    changed = tx.execute(
        """
        UPDATE deployment SET state = ?, errors = ?, meta = COALESCE(?, meta), lease_until = NULL, touched_at = ?
        WHERE id = ? AND state NOT IN ('PUBLISHED', 'FAILED')
        """,
        (state, dump(errors), None if meta is None else dump(meta), now_ms, deployment_id),
    )
    if not changed:
        return ""
    tx.send("DELETE FROM deployment_file WHERE deployment_id = ?", (deployment_id,))
    return str(scalar(tx, "SELECT uid FROM deployment WHERE id = ?", (deployment_id,)))


def set_meta(tx: Transaction, deployment_id: int, meta: Mapping[str, Any]) -> None:
    """Set what its format keeps of a deployment."""
    tx.send("UPDATE deployment SET meta = ? WHERE id = ?", (dump(meta), deployment_id))


def remove_deployment(tx: Transaction, deployment_id: int) -> bool:
    """Remove a deployment with its files, unless it is published or is worked on; returns whether it was removed."""
    removed = tx.execute(
        "DELETE FROM deployment WHERE id = ? AND state <> 'PUBLISHED' AND lease_until IS NULL", (deployment_id,)
    )
    return bool(removed)


def forget_deployment(tx: Transaction, deployment_id: int, state: DeploymentState) -> None:
    """Remove a deployment in this state: its bytes did not arrive, or it is published and no client will ask for it."""
    tx.send("DELETE FROM deployment WHERE id = ? AND state = ?", (deployment_id, state))


def forget_unused(tx: Transaction, repository_id: int, before_ms: int, limit: int) -> None:
    """Remove at most ``limit`` deployments of a repository of which nothing has arrived since that time."""
    tx.send(
        """
        DELETE FROM deployment WHERE id IN (
            SELECT id FROM deployment
            WHERE repository_id = ? AND state = 'PENDING' AND touched_at < ? AND lease_until IS NULL LIMIT ?
        )
        """,
        (repository_id, before_ms, limit),
    )


def add_staged_file(tx: Transaction, deployment_id: int, storage_id: int, file: StagedFile) -> bool:
    """Add a file, whose blob was claimed in the same transaction; returns False if its path has one already."""
    added = tx.execute(
        """
        INSERT INTO deployment_file (deployment_id, path, storage_id, sha256, attrs) VALUES (?, ?, ?, ?, ?)
        ON CONFLICT (deployment_id, path) DO NOTHING
        """,
        (deployment_id, file.path, storage_id, bytes.fromhex(file.blob.sha256), dump(file.attrs)),
    )
    return bool(added)


def staged_files(r: Reader, deployment_id: int) -> list[StagedFile]:
    """All files of a deployment, ordered by path. The locator is empty if the blob is missing or damaged."""
    sql = f"{_FILE} WHERE f.deployment_id = ? AND f.path <> ? ORDER BY f.path"
    return every(r, _to_file, sql, (deployment_id, ARCHIVE))


def staged_digests(r: Reader, deployment_id: int) -> list[str]:
    """The sha256 (hex) of all files of a deployment, and of its archive."""
    found = column(r, "SELECT DISTINCT sha256 FROM deployment_file WHERE deployment_id = ?", (deployment_id,))
    return [sha256.hex() for sha256 in found]


def find_staged_file(r: Reader, deployment_id: int, path: str) -> StagedFile | None:
    """The file of a deployment at a path, or None; its archive is at ``ARCHIVE``."""
    return find(r, _to_file, f"{_FILE} WHERE f.deployment_id = ? AND f.path = ?", (deployment_id, path))


def expire_deployments(tx: Transaction, now_ms: int, limit: int) -> int:
    """
    End at most ``limit`` deployments that were not published in time, and remove as many that ended long ago.

    Returns how many; call it again until it returns 0.
    """
    late = tx.all(
        """
        SELECT id FROM deployment
        WHERE touched_at < ? AND state NOT IN ('PUBLISHED', 'FAILED') AND (lease_until IS NULL OR lease_until < ?)
            AND NOT EXISTS (SELECT 1 FROM stage s WHERE s.uid = deployment.uid AND s.state = 'open')
        ORDER BY touched_at LIMIT ?
        """,
        (now_ms - EXPIRES_MS, now_ms, limit),
    )
    for (deployment_id,) in late:
        end_deployment(tx, deployment_id, FAILED, {"": [EXPIRED]}, now_ms)
    removed = tx.execute(
        """
        DELETE FROM deployment WHERE id IN (
            SELECT id FROM deployment WHERE touched_at < ? AND state IN ('PUBLISHED', 'FAILED')
            ORDER BY touched_at LIMIT ?
        )
        """,
        (now_ms - KEPT_MS, limit),
    )
    return len(late) + removed


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
        release_deployment(tx, deployment_id, now_ms)
    return len(rows)


def release_deployment(tx: Transaction, deployment_id: int, now_ms: int) -> None:
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
    release_deployment(tx, deployment_id, now_ms)
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
