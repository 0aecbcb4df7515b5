"""
Write commands of uploads that take three requests: one with credentials, one without, one with credentials.

==========================  ==========================================  ==============================================
state of the deployment     meaning                                     next state
==========================  ==========================================  ==============================================
PENDING                     ``stage`` has given the client a ticket     VALIDATING: ``uploads/<id>`` came with it;
                                                                        removed when the ticket has expired
VALIDATING                  the bytes arrive                            VALIDATED; removed if they are refused, or
                                                                        the client leaves
VALIDATED                   the bytes are durable, and nobody sees      PUBLISHED: ``commit`` came; removed if the
                            them                                        package may not be published
PUBLISHED                   the file is visible; the row is removed in  none
                            the same transaction
==========================  ==========================================  ==============================================

Nothing else moves them, so a ticket is used once, also when requests with it are parallel. A process that is killed
leaves the state as it is. What is not published within 24 hours fails; see ``pkgrepo.storage.catalog.packages``.

A ticket is a random text, of which the catalog has the hash. It is sent as a field of the form, so that no address has
it.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from functools import partial
from hmac import compare_digest
from typing import Any, Final
from uuid import uuid4

from attrs import frozen

from pkgrepo.errors import Conflict, FileBurned, FileExists, Forbidden
from pkgrepo.formats.conda.index.records import index_package
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Actor, Identity, Repository
from pkgrepo.model.deployments import Deployment, DeploymentState, StagedFile
from pkgrepo.repositories.publish.deployments import PublishedDeployment, StagedFiles, publish_deployment, stage_files
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.storage.catalog.packages import deployments, files
from pkgrepo.storage.catalog.packages.tombstones import has_tombstone

from .targets import FileTarget

TICKET_MS: Final = 15 * 60_000  # until the file must begin to arrive
MOST_OPEN: Final = 100  # uploads of one user in one channel that are not published yet
OPEN_UPLOADS: Final = 4  # their sizes together, as a multiple of the largest upload
FORGOTTEN: Final = 200  # rows that one transaction removes

PENDING, VALIDATING, VALIDATED = DeploymentState.PENDING, DeploymentState.VALIDATING, DeploymentState.VALIDATED
PUBLISHING = DeploymentState.PUBLISHING

INVALID_TICKET: Final = (
    "the ticket of this upload is wrong, was used, or has expired after 15 minutes; start the upload again"
)


@frozen
class Wish:
    """The file that a client wants to upload; ``sha256`` is that of its bytes, if the client said it."""

    target: FileTarget
    sha256: str | None = None

    def meta(self, ticket: str) -> dict[str, Any]:
        """What is kept of it."""
        return {"subdir": self.target.subdir, "sha256": self.sha256, "ticket": _hash(ticket)}


def check_free(r: Reader, repository: Repository, path: str, *, reuse: bool) -> None:
    """
    Check that a file can be published at a path.

    :raises FileExists: there is one; :raises FileBurned: one was deleted, and ``reuse`` does not allow it again
    """
    found = files.find_file(r, repository.id, path)
    if found is not None:
        raise FileExists(files.filename(path), found.sha256)
    if not reuse and has_tombstone(r, repository.id, path):
        raise FileBurned(files.filename(path))


def stage_upload(
    tx: Transaction, repository: Repository, wish: Wish, identity: Identity, *, reuse: bool, now_ms: int
) -> tuple[Deployment, str]:
    """
    Begin an upload; returns it with its ticket. Uploads whose ticket has expired are removed first.

    :raises FileExists, FileBurned: see ``check_free``; :raises Forbidden: the user has too many unfinished uploads
    """
    check_free(tx, repository, wish.target.path, reuse=reuse)
    deployments.forget_unused(tx, repository.id, now_ms - TICKET_MS, FORGOTTEN)
    count, _ = deployments.open_deployments(tx, repository.id, identity.user_id)
    if count >= MOST_OPEN:
        raise Forbidden(f"you have {count} unfinished uploads here; finish some, or wait until they expire")
    ticket = secrets.token_urlsafe(32)
    deployment = deployments.add_deployment(
        tx,
        uid=str(uuid4()),
        repository_id=repository.id,
        package_key=wish.target.name,
        name=str(wish.target.file),
        automatic=False,
        user_id=identity.user_id,
        actor=identity.username,
        size=0,
        meta=wish.meta(ticket),
        leased=False,
        now_ms=now_ms,
    )
    return deployment, ticket


def take_ticket(tx: Transaction, repository: Repository, uid: str, ticket: str, now_ms: int) -> Deployment:
    """Use a ticket; from now on it is worth nothing. :raises Forbidden: it is not, or no longer, valid"""
    found = deployments.find_deployment(tx, repository.id, uid)
    if (
        found is None
        or found.state is not PENDING
        or found.created_ms < now_ms - TICKET_MS
        or not compare_digest(found.meta.get("ticket", ""), _hash(ticket))
        or not deployments.set_state(tx, found.id, PENDING, VALIDATING, leased=False, now_ms=now_ms)
    ):
        raise Forbidden(INVALID_TICKET)
    return found


def keep_upload(
    tx: Transaction, repository: Repository, deployment: Deployment, file: StagedFile, *args: int
) -> StagedFiles:
    """
    Add the file of an upload, which now waits to be published. ``args`` are the most bytes that the user's unfinished
    uploads may take together, and the time.

    :raises Forbidden: they would take more; :raises Conflict: the upload has ended
    """
    most, now_ms = args
    _, sizes = deployments.open_deployments(tx, repository.id, deployment.user_id)
    if sizes + file.blob.size > most:
        raise Forbidden(f"your unfinished uploads here would take more than {most} bytes; finish some")
    result = stage_files(tx, repository, deployment.id, [file], now_ms)
    deployments.add_size(tx, deployment.id, file.blob.size, now_ms)
    if not deployments.set_state(tx, deployment.id, VALIDATING, VALIDATED, leased=False, now_ms=now_ms):
        raise Conflict("the upload has ended")
    return result


def publish_upload(
    tx: Transaction, repository: Repository, deployment: Deployment, release: Release, actor: Actor, now_ms: int
) -> PublishedDeployment:
    """
    Publish the file of an upload, and end it, in one transaction.

    :raises Conflict: its bytes have not arrived; :raises FileExists, FileBurned: it may not be published
    """
    if not deployments.set_state(tx, deployment.id, VALIDATED, PUBLISHING, leased=False, now_ms=now_ms):
        raise Conflict("the file of this upload has not arrived")
    also = partial(_forget, deployment_id=deployment.id)
    return publish_deployment(
        tx, repository, deployment.id, [release], {}, actor, index_package, lambda *_: None, also, now_ms
    )


def _forget(tx: Transaction, _now_ms: int, *, deployment_id: int) -> Sequence[str]:
    deployments.forget_published(tx, deployment_id)
    return ()


def _hash(ticket: str) -> str:
    return hashlib.sha256(ticket.encode()).hexdigest()
