"""
Blobs on their way into an image: at once, or in pieces over several requests.

=======  ====================  =====================================================================
request  at                    does
=======  ====================  =====================================================================
POST     blobs/uploads/        begins an upload; with ``mount`` takes a blob of another image, with
                               ``digest`` and a body takes the whole blob
PATCH    blobs/uploads/<id>    appends; what has arrived when the connection breaks is kept
GET      blobs/uploads/<id>    tells how much has arrived
PUT      blobs/uploads/<id>    appends what it brings, verifies the digest, and the blob is there
DELETE   blobs/uploads/<id>    gives up
=======  ====================  =====================================================================
"""

from __future__ import annotations

import hashlib
import os

from pkgrepo.errors import DigestMismatch, Invalid
from pkgrepo.formats.container.admission import Target, client_of
from pkgrepo.formats.container.names import HEX_LENGTHS, Digest, DigestInvalid, parse_digest
from pkgrepo.formats.container.refusals import VERSION
from pkgrepo.formats.container.rules import PushGate
from pkgrepo.gateway.services import Services
from pkgrepo.gateway.uploads import check_length as check_limit
from pkgrepo.gateway.uploads import finish_without_client, receive_body, write_body
from pkgrepo.http.answers import Answer, Fields
from pkgrepo.http.reading.body import BodyLost
from pkgrepo.http.reading.ranges import render_received
from pkgrepo.http.request import Request
from pkgrepo.interfaces import IBlobUpload
from pkgrepo.model import BlobInfo, Identity
from pkgrepo.repositories.images.blobs import link_blob
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.publish.upload_leases import Lease, UploadLeases, UploadUnknown
from pkgrepo.storage.catalog.blobs.uploads import UploadSession, add_upload, find_upload

from .chunks import check_length, check_start, chunk_range
from .mounting import Mounting

PIECE = 1024 * 1024  # bytes hashed at once
EMPTY = {algorithm: hashlib.new(algorithm, b"").hexdigest() for algorithm in HEX_LENGTHS}


class Uploads:
    """Takes blobs in; callers have been let in already, and the push rules asked."""

    def __init__(self, services: Services, mounting: Mounting, gate: PushGate) -> None:
        self._services = services
        self._mounting = mounting
        self._gate = gate
        self._leases = UploadLeases(services.catalog, services.clock)

    async def start(self, request: Request, target: Target, identity: Identity, _rest: str) -> Answer:
        """
        Begin an upload, unless the blob can be had at once.

        :raises DigestInvalid, DigestMismatch, TooLarge: nothing is stored then
        """
        mount = parameter(request, "mount")
        if mount and await self._mounting.mount(request, target, identity, mount, parameter(request, "from")):
            return created(target, parse_digest(mount))
        text = parameter(request, "digest")
        if text:
            digest = parse_digest(text)
            if not request.body_is_empty or EMPTY[digest.algorithm] == digest.hex:
                return await self._take_whole(request, target, identity, digest)
            hint = digest.algorithm
        else:
            hint = parameter(request, "digest-algorithm")
        if hint and hint not in HEX_LENGTHS:
            raise DigestInvalid(f"digests of {hint[:40]} are not supported; use sha256 or sha512")
        algorithms = () if hint in ("", "sha256") else (hint,)
        async with self._services.publisher.stage(target.repository) as staged:
            upload = staged.begin(algorithms, self._services.max_upload)
            async with upload:
                state = await upload.suspend()
        await self._services.catalog.write(
            add_upload,
            uid=upload.id,
            repository_id=target.repository.id,
            storage_id=target.repository.storage_id,
            package_key=target.image,
            user_id=identity.user_id,
            state=state,
            now_ms=self._services.clock.now_ms(),
            algorithms=algorithms,
        )
        return Answer(202, headers=progress(target, upload.id, 0))

    async def status(self, _request: Request, target: Target, identity: Identity, uid: str) -> Answer:
        """How much has arrived. :raises Refusal: there is no such upload of the caller"""
        session = self._find(target, identity, uid)
        return Answer(204, headers=progress(target, uid, session.position))

    async def append(self, request: Request, target: Target, identity: Identity, uid: str) -> Answer:
        """
        Take the next chunk.

        :raises Refusal: no such upload, or the range does not fit; the upload stays as it was
        :raises TooLarge, StorageFull, StorageFailed: the upload is gone
        """
        session = self._find(target, identity, uid)
        self._check_head(request, target, session)
        position = await finish_without_client(self._append(request, target, uid))
        return Answer(202, headers=progress(target, uid, position))

    async def finish(self, request: Request, target: Target, identity: Identity, uid: str) -> Answer:
        """
        Take the last chunk, if there is one, and make the whole a blob of the image.

        :raises Refusal: no such upload, or the range does not fit; :raises DigestInvalid: no digest is named;
            the upload stays as it was
        :raises DigestMismatch: the bytes are others than announced, and the upload is gone
        """
        session = self._find(target, identity, uid)
        digest = parse_digest(parameter(request, "digest"))
        self._check_head(request, target, session)
        await finish_without_client(self._finish(request, target, identity, uid, digest))
        return created(target, digest)

    async def cancel(self, request: Request, target: Target, identity: Identity, uid: str) -> Answer:
        """Give up an upload; its bytes go at once. :raises Refusal: there is no such upload of the caller"""
        self._find(target, identity, uid)
        await finish_without_client(self._cancel(request, target, uid))
        return Answer(204, headers=VERSION)

    # Below

    async def _take_whole(self, request: Request, target: Target, identity: Identity, digest: Digest) -> Answer:
        services = self._services
        async with services.publisher.stage(target.repository) as staged:
            blob = await receive_body(
                request,
                staged,
                limit=services.max_upload,
                algorithms=() if digest.algorithm == "sha256" else (digest.algorithm,),
                expected={digest.algorithm: digest.hex},
            )
            self._gate.confirm(request, identity, target)
            await self._link(request, target, staged, blob, digest, None)
        return created(target, digest)

    async def _append(self, request: Request, target: Target, uid: str) -> int:
        wanted = chunk_range(request)
        async with (
            self._leases.hold(uid, lambda: request.gone) as lease,
            self._services.publisher.stage(target.repository) as staged,
        ):
            session = lease.session
            check_start(wanted, session, progress(target, uid, session.position))
            upload = await lease.resume(staged)
            lost = await self._write(request, upload, lease)
            if lost is None and wanted is not None and upload.offset - session.position != wanted.length:
                await self._roll_back(upload)
                check_length(wanted, upload.offset - session.position)
            position = await lease.save(upload)
        if lost is not None:
            raise lost
        return position

    async def _finish(self, request: Request, target: Target, identity: Identity, uid: str, digest: Digest) -> None:
        wanted = chunk_range(request)
        async with (
            self._leases.hold(uid, lambda: request.gone) as lease,
            self._services.publisher.stage(target.repository) as staged,
        ):
            session = lease.session
            check_start(wanted, session, progress(target, uid, session.position))
            upload = await lease.resume(staged)
            if not request.body_is_empty:
                lost = await self._write(request, upload, lease)
                if lost is not None:
                    await lease.save(upload)
                    raise lost
            if wanted is not None and upload.offset - session.position != wanted.length:
                await self._roll_back(upload)
                check_length(wanted, upload.offset - session.position)
            try:
                self._gate.confirm(request, identity, target)
                blob = await self._commit(staged, upload, session, digest)
            except BaseException:
                await lease.remove()
                raise
            await self._link(request, target, staged, blob, digest, uid)

    async def _cancel(self, request: Request, target: Target, uid: str) -> None:
        async with (
            self._leases.hold(uid, lambda: request.gone) as lease,
            self._services.publisher.stage(target.repository) as staged,
        ):
            await lease.remove()
            upload = await lease.resume(staged)
            await upload.abort()

    async def _write(self, request: Request, upload: IBlobUpload, lease: Lease) -> BodyLost | None:
        try:
            return await write_body(request.body, upload)
        except BaseException:
            await upload.abort()
            await lease.remove()
            raise

    async def _roll_back(self, upload: IBlobUpload) -> None:
        """Keep the file; the row still tells where the last acknowledged byte is, and resuming drops the rest."""
        await upload.suspend()

    async def _commit(self, staged: Staged, upload: IBlobUpload, session: UploadSession, digest: Digest) -> BlobInfo:
        if digest.algorithm == "sha256" or digest.algorithm in session.algorithms:
            info: BlobInfo = await upload.commit({digest.algorithm: digest.hex})
            staged.adopt(info)
            return info
        # nobody said that this algorithm would be asked for: the bytes are read once more
        info = await upload.commit()
        staged.adopt(info)
        actual = await self._hash(staged, info, digest.algorithm)
        if actual != digest.hex:
            raise DigestMismatch(digest.algorithm, digest.hex, actual)
        return info

    async def _hash(self, staged: Staged, info: BlobInfo, algorithm: str) -> str:
        descriptor = staged.open(info).descriptor()
        if descriptor is None:
            raise Invalid("this storage cannot look into uploaded files")
        return await self._services.pools.disk(_hash_file, descriptor, algorithm)

    async def _link(
        self, request: Request, target: Target, staged: Staged, blob: BlobInfo, digest: Digest, uid: str | None
    ) -> None:
        sha512 = digest.hex if digest.algorithm == "sha512" else None
        await self._services.publisher.take(
            link_blob, target.repository, staged, [blob], target.image, blob, sha512, uid, client_of(request)
        )

    def _find(self, target: Target, identity: Identity, uid: str) -> UploadSession:
        session = self._services.catalog.look_inline(find_upload, uid, self._services.clock.now_ms())
        if (
            session is None
            or (session.repository_id, session.package_key) != (target.repository.id, target.image)
            or session.user_id != identity.user_id
        ):
            raise UploadUnknown(uid)
        return session

    def _check_head(self, request: Request, target: Target, session: UploadSession) -> None:
        """Refuse by the head what cannot fit, before a byte of the body has been asked for."""
        wanted = chunk_range(request)
        if not session.leased:
            check_start(wanted, session, progress(target, session.uid, session.position))
        if request.body.declared is not None:
            check_length(wanted, request.body.declared)
        check_limit(request, self._services.max_upload)


def parameter(request: Request, name: str) -> str:
    """The first value of a query parameter; empty when it is absent."""
    values = request.args.get(name.encode("ascii")) if request.raw_query else None
    return values[0].decode("utf-8", "replace") if values else ""


def progress(target: Target, uid: str, position: int) -> Fields:
    """What every answer about an unfinished upload says: where it goes on, and how much has arrived."""
    return (
        *VERSION,
        (b"Location", target.url(f"blobs/uploads/{uid}")),
        (b"Range", render_received(position)),
        (b"Docker-Upload-UUID", uid.encode("ascii")),
    )


def created(target: Target, digest: Digest) -> Answer:
    """The answer that a blob is there now, named as the client names it."""
    headers: Fields = (
        *VERSION,
        (b"Location", target.url(f"blobs/{digest}")),
        (b"Docker-Content-Digest", str(digest).encode("ascii")),
    )
    return Answer(201, headers=headers)


def _hash_file(descriptor: int, algorithm: str) -> str:
    hasher = hashlib.new(algorithm)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        while piece := file.read(PIECE):
            hasher.update(piece)
    return hasher.hexdigest()
