"""
Write commands of uploads that take three requests: one with credentials, one without, one with credentials.

==========================  ==========================================  ==============================================
state of the deployment     meaning                                     next state
==========================  ==========================================  ==============================================
PENDING                     ``stage`` has given the client a ticket     VALIDATING: ``uploads/<id>`` came with it;
                                                                        removed when the ticket has expired
VALIDATING                  the bytes arrive                            VALIDATED; removed if they are refused, or
                                                                        the client leaves
VALIDATED                   the bytes are durable, and no reader sees   PUBLISHED: ``commit`` came; removed if the
                            them                                        package may not be published
PUBLISHED                   the file is visible; the row is removed in  none
                            the same transaction
==========================  ==========================================  ==============================================

Nothing else moves them, so a ticket is used once, also when requests with it are parallel. A process that is killed
leaves the state as it is. What is not published within 24 hours fails; see ``pkgrepo.storage.catalog.packages``.

A ticket is a random text, of which the catalog has the hash. It is sent as a field of the form, so that no address has
it.

The request without credentials has a ticket. Its address names no repository, so it is the same for private ones; the
ticket decides.
"""

from __future__ import annotations

import binascii
import hashlib
import secrets
from base64 import b64decode
from collections.abc import Mapping, Sequence
from functools import partial
from hmac import compare_digest
from typing import Any, Final
from uuid import uuid4

from attrs import asdict, frozen

from pkgrepo.errors import Conflict, FileBurned, FileExists, Forbidden, Invalid
from pkgrepo.formats.conda.anaconda.targets import FileTarget
from pkgrepo.formats.conda.description import Description
from pkgrepo.formats.conda.files import DIGESTS, FORM_OVERHEAD, Upload, make_release
from pkgrepo.formats.conda.index.packages import index_package
from pkgrepo.formats.conda.names import BRANCH, parse_file_name
from pkgrepo.formats.conda.package_metadata import read_package
from pkgrepo.formats.conda.paths import package_path
from pkgrepo.formats.conda.refusals import POST_ERRORS
from pkgrepo.gateway.bodies import check_declared_length
from pkgrepo.gateway.services import Services
from pkgrepo.http.answering.dispatch import App, answering, refuse_unrouted
from pkgrepo.http.reading.multipart import MultipartLimits, Part, read_form
from pkgrepo.http.request import Request
from pkgrepo.http.responses import NO_STORE, Refusal, Response
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Identity, Repository
from pkgrepo.model.admission import Admitted
from pkgrepo.model.deployments import Deployment, DeploymentState, StagedFile
from pkgrepo.repositories.publish.deployments import PublishedDeployment, StagedFiles, publish_deployment, stage_files
from pkgrepo.repositories.publish.releases import Release
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.publish_policy import publish_policy
from pkgrepo.storage.catalog.packages import deployments, files
from pkgrepo.storage.catalog.packages.files import has_tombstone

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
    tx: Transaction, repository: Repository, deployment: Deployment, release: Release, actor: Admitted, now_ms: int
) -> PublishedDeployment:
    """
    Publish the file of an upload, and end it, in one transaction.

    :raises Conflict: its bytes have not arrived; :raises FileExists, FileBurned: it may not be published
    """
    if not deployments.set_state(tx, deployment.id, VALIDATED, PUBLISHING, leased=False, now_ms=now_ms):
        raise Conflict("the file of this upload has not arrived")
    also = partial(_forget, deployment_id=deployment.id)
    return publish_deployment(
        tx, repository, deployment.id, [release], {}, actor, index_package, lambda *_: None, also, (), now_ms
    )


def _forget(tx: Transaction, _repository: Repository, _now_ms: int, *, deployment_id: int) -> Sequence[str]:
    deployments.forget_deployment(tx, deployment_id, DeploymentState.PUBLISHED)
    return ()


def _hash(ticket: str) -> str:
    return hashlib.sha256(ticket.encode()).hexdigest()


PREFIX: Final = f"/{BRANCH}/uploads/"
TICKET: Final = "ticket"  # the field of the form that has it
FORM_LIMITS: Final = MultipartLimits(parts=16, text_bytes=4096)

_FIELDS: Final = frozenset({TICKET, "Content-Length", "Content-MD5"})  # anaconda-client adds the latter two

app = App()


class PostSite:
    """The files of uploads to all hosted channels."""

    app = app

    def __init__(self, services: Services) -> None:
        self._services = services

    @app.route("/conda/uploads/<uid>", methods=["POST"])  # below the first segment of the branch
    @answering(POST_ERRORS)
    async def receive(self, request: Request, uid: str) -> Response:
        """
        Take the file of an upload from a form, which has the ticket before it. There are no other credentials.

        :raises Forbidden: the ticket is not, or no longer, valid; :raises Refusal: the form is malformed
        :raises Invalid, DigestMismatch, TooLarge: it is another file; then the upload is over
        """
        request.body.limit = self._services.max_upload + FORM_OVERHEAD  # also without a ticket, and without a length
        check_declared_length(request, request.body.limit)
        repository = await self._repository(uid)
        request.repository = repository.path
        fields: dict[str, str] = {}
        deployment: Deployment | None = None
        async with self._services.content.stage(repository) as staged:
            try:
                async for part in read_form(request.body, request.header(b"content-type"), FORM_LIMITS):
                    if part.name == "file":
                        deployment = await self._take(repository, uid, fields.get(TICKET, ""))
                        request.principal = deployment.actor
                        file = await self._receive_part(request, repository, part, staged, deployment, fields)
                    elif part.name in _FIELDS:
                        fields[part.name] = await part.read_text()
                if deployment is None:
                    raise Refusal(400, "the form has no part named 'file'", "bad_form")
                await self._keep(repository, staged, deployment, file)
            except BaseException:
                if deployment is not None:
                    await self._services.catalog.write(deployments.remove_deployment, deployment.id)
                raise
        return Response(201, headers=NO_STORE)

    async def _repository(self, uid: str) -> Repository:
        """The repository of an upload. :raises Forbidden: there is no such upload"""
        found: int | None = await self._services.catalog.look(deployments.find_repository_id, uid)
        repository = None if found is None else self._services.registry.find_id(found)
        if repository is None:
            raise Forbidden(INVALID_TICKET)
        return repository

    async def _take(self, repository: Repository, uid: str, ticket: str) -> Deployment:
        now_ms = self._services.clock.now_ms()
        deployment: Deployment = await self._services.catalog.write(take_ticket, repository, uid, ticket, now_ms)
        return deployment

    async def _receive_part(
        self,
        request: Request,
        repository: Repository,
        part: Part,
        staged: Staged,
        deployment: Deployment,
        fields: Mapping[str, str],
    ) -> StagedFile:
        sha256 = deployment.meta["sha256"]
        expected = {} if sha256 is None else {"sha256": sha256}
        if "Content-MD5" in fields:
            expected["md5"] = _md5(fields["Content-MD5"])
        blob = await staged.receive_part(
            part,
            request.body.declared,
            self._services.max_upload,
            algorithms=DIGESTS,
            expected=expected,
        )
        if fields.get("Content-Length", str(blob.size)) != str(blob.size):
            raise Invalid(f"the file has {blob.size} bytes, and another number was announced", "Content-Length")
        name, subdir = parse_file_name(deployment.name), deployment.meta["subdir"]
        look = partial(read_package, name=name)
        description: Description = await staged.inspect(self._services.pools.cpu, blob, look)
        policy = publish_policy(repository)
        make_release(Upload(name, subdir, blob), description, policy)  # refuses a package for another folder
        return StagedFile(path_of(deployment), blob, asdict(description, recurse=False))

    async def _keep(self, repository: Repository, staged: Staged, deployment: Deployment, file: StagedFile) -> None:
        most = OPEN_UPLOADS * self._services.max_upload
        await self._services.content.change_with_blobs(
            keep_upload, repository, staged, [file.blob], deployment, file, most
        )


refuse_unrouted(PostSite.app, POST_ERRORS)


def path_of(deployment: Deployment) -> str:
    """The path that the file of an upload will have."""
    return package_path(deployment.meta["subdir"], parse_file_name(deployment.name))


def _md5(text: str) -> str:
    """A digest in base64, as RFC 1864 writes it, in hex. :raises Invalid: the text is no digest"""
    try:
        digest = b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        digest = b""
    if len(digest) != 16:
        raise Invalid("Content-MD5 must be 16 bytes in base64", "Content-MD5")
    return digest.hex()
