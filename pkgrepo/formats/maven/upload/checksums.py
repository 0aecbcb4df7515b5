"""Write commands for checksums that clients send."""

from __future__ import annotations

from pkgrepo.errors import Conflict
from pkgrepo.interfaces import Transaction
from pkgrepo.model import Actor, File, Repository
from pkgrepo.storage.catalog.packages import checksum_claims, events, files
from pkgrepo.storage.catalog.packages.summaries import package_and_version_of_file

MISMATCH = "checksum_mismatch"  # the kind of the event


def put_claim(
    tx: Transaction, repository: Repository, path: str, algorithm: str, digest: str, now_ms: int
) -> File | None:
    """
    Keep a checksum until its file arrives; the file, if it has arrived meanwhile.

    :raises Conflict: too many are kept
    """
    found = files.find_file(tx, repository.id, path)
    if found is None and not checksum_claims.put_claim(tx, repository.id, path, algorithm, digest, now_ms):
        raise Conflict(f"too many checksums wait for their files in {repository.path}; upload the files first")
    return found


def note_mismatch(
    tx: Transaction, repository: Repository, file: File, algorithm: str, digest: str, actor: Actor, now_ms: int
) -> None:
    """Append an event that says which checksum a client has for a file."""
    package_key, version_key = package_and_version_of_file(tx, file.id) or ("", "")
    events.append_event(
        tx,
        repository_id=repository.id,
        package_id=file.package_id,
        package_key=package_key,
        version_key=version_key,
        kind=MISMATCH,
        data={"path": file.path, "algorithm": algorithm, "sent": digest, "stored": file.digests[algorithm]},
        actor=actor,
        now_ms=now_ms,
    )
