"""Write commands for checksums that clients send."""

from __future__ import annotations

from pkgrepo.errors import StorageFailed
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, File, Repository
from pkgrepo.storage.catalog.packages import checksum_claims, events, files

MISMATCH = "checksum_mismatch"  # the kind of the event


def put_claim(
    tx: Transaction, repository: Repository, path: str, algorithm: str, digest: str, now_ms: int
) -> File | None:
    """
    Keep a checksum until its file arrives; the file, if it has arrived meanwhile.

    :raises StorageFailed: too many are kept
    """
    found = files.find_file(tx, repository.id, path)
    if found is None and not checksum_claims.put_claim(tx, repository.id, path, algorithm, digest, now_ms):
        raise StorageFailed(repository.storage_name)
    return found


def note_mismatch(
    tx: Transaction, repository: Repository, file: File, algorithm: str, digest: str, actor: Actor, now_ms: int
) -> None:
    """Append an event that says which checksum a client has for a file."""
    events.append_event(
        tx,
        repository_id=repository.id,
        package_id=file.package_id,
        package_key="",
        version_key="",
        kind=MISMATCH,
        data={"path": file.path, "algorithm": algorithm, "sent": digest, "stored": file.digests[algorithm]},
        actor=actor,
        now_ms=now_ms,
    )
