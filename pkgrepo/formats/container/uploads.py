"""
Uploads of blobs, in one request or several, which any worker can resume; and mounts from other images.

==============================  =====================================================================
request                         effect
==============================  =====================================================================
POST blobs/uploads/             starts an upload in several requests
... with ``mount``              adds a blob of another image instead, if the caller may read that image
... with ``digest`` and a body  stores the body as a blob
PATCH blobs/uploads/<id>        appends the body; if the connection breaks, the received bytes are kept
GET blobs/uploads/<id>          returns the number of received bytes
PUT blobs/uploads/<id>          appends its body, verifies the digest and stores the blob
DELETE blobs/uploads/<id>       cancels the upload
==============================  =====================================================================
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pkgrepo.errors import DigestMismatch, StorageFailed, StorageFull
from pkgrepo.formats.container.names import HEX_LENGTHS, Digest, DigestInvalid, is_image_name, parse_digest
from pkgrepo.formats.container.refusals import VERSION
from pkgrepo.formats.container.registry import RegistryContext
from pkgrepo.formats.container.target import Target, client_of
from pkgrepo.gateway.bodies import check_declared_length, finish_without_client, receive_body, write_body
from pkgrepo.http.reading.body import BodyLost
from pkgrepo.http.reading.ranges import ChunkRange, parse_chunk_range, render_received
from pkgrepo.http.request import Request
from pkgrepo.http.responses import Fields, Refusal, Response
from pkgrepo.interfaces import IBlobUpload
from pkgrepo.model import ANONYMOUS, Action, BlobInfo, Identity, Repository
from pkgrepo.repositories.images.blobs import link_blob
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.repositories.publish.upload_leases import Lease, UploadUnknown
from pkgrepo.storage.catalog.blobs.uploads import UploadSession, add_upload, check_room, find_upload
from pkgrepo.storage.catalog.images.linked_blobs import images_with


def progress_headers(target: Target, uid: str, position: int) -> Fields:
    """The headers of every response about an unfinished upload: its address, and how many bytes were received."""
    return (
        *VERSION,
        (b"Location", target.url(f"blobs/uploads/{uid}")),
        (b"Range", render_received(position)),
        (b"Docker-Upload-UUID", uid.encode("ascii")),
    )


def created_response(target: Target, digest: Digest) -> Response:
    """The response after a blob was stored. ``digest`` is the one in the request."""
    headers: Fields = (
        *VERSION,
        (b"Location", target.url(f"blobs/{digest}")),
        (b"Docker-Content-Digest", str(digest).encode("ascii")),
    )
    return Response(201, headers=headers)


EMPTY = {algorithm: hashlib.new(algorithm, b"").hexdigest() for algorithm in HEX_LENGTHS}


async def start_upload(
    context: RegistryContext, request: Request, target: Target, identity: Identity, _rest: str
) -> Response:
    """
    Start an upload; or mount a blob, or store the body as a blob.

    :raises DigestInvalid, DigestMismatch, TooLarge: nothing is stored
    :raises Forbidden: the caller has too many unfinished uploads
    """
    services = context.services
    mount = request.parameter(b"mount")
    if mount and await _mount(context, request, target, identity, mount, request.parameter(b"from") or ""):
        return created_response(target, parse_digest(mount))
    text = request.parameter(b"digest") or ""
    if text:
        digest = parse_digest(text)
        if not request.body_is_empty or EMPTY[digest.algorithm] == digest.hex:
            return await _receive_blob(context, request, target, identity, digest)
        hint = digest.algorithm
    else:
        hint = request.parameter(b"digest-algorithm") or ""
    if hint and hint not in HEX_LENGTHS:
        raise DigestInvalid(f"digests of {hint[:40]} are not supported; use sha256 or sha512")
    algorithms = () if hint in ("", "sha256") else (hint,)
    now_ms = services.clock.now_ms()
    await services.catalog.look(check_room, identity.user_id, now_ms)
    async with services.content.stage(target.repository) as staged:
        upload = staged.begin(algorithms, services.max_upload)
        async with upload:
            state = await upload.suspend()
    await services.catalog.write(
        add_upload,
        uid=upload.id,
        repository_id=target.repository.id,
        storage_id=target.repository.storage_id,
        package_key=target.image,
        user_id=identity.user_id,
        state=state,
        now_ms=now_ms,
        algorithms=algorithms,
    )
    return Response(202, headers=progress_headers(target, upload.id, 0))


async def _receive_blob(
    context: RegistryContext, request: Request, target: Target, identity: Identity, digest: Digest
) -> Response:
    services = context.services
    async with services.content.stage(target.repository, target.image, user_id=identity.user_id) as staged:
        blob = await receive_body(
            request,
            staged,
            limit=services.max_upload,
            algorithms=() if digest.algorithm == "sha256" else (digest.algorithm,),
            expected={digest.algorithm: digest.hex},
        )
        admitted = await context.authorization.require_again(request, identity, target)
        await services.content.change_with_blobs(
            link_blob,
            target.repository,
            staged,
            [blob],
            target.image,
            blob,
            str(digest),
            None,
            client_of(request),
            admitted,
        )
    return created_response(target, digest)


async def _mount(
    context: RegistryContext, request: Request, target: Target, identity: Identity, text: str, source: str
) -> bool:
    """
    Mount a blob from the image ``source``, or from any image if it is empty. False if that fails.

    The credentials of the request must allow reading the source: docker, containerd and crane get a token that may pull
    from it. A token for the target alone is enough if anonymous access to the source is allowed. After a failure the
    response asks the client to upload the blob, and tells nothing about the source.

    :raises DigestInvalid: the digest is malformed
    """
    digest, admitted = str(parse_digest(text)), target.admitted
    assert admitted is not None  # the route takes callers who may write
    async for repository, image in _sources(context, request, target, digest, source):
        may = context.services.access.authorizer.may
        if not repository.active or not (
            await may(ANONYMOUS, Action.READ, repository, image) or await may(identity, Action.READ, repository, image)
        ):
            continue
        where = Target(repository, image, image, "", "")
        if await context.members.mount(where, target, digest, client_of(request), admitted):
            return True
    return False


async def _sources(
    context: RegistryContext, request: Request, target: Target, digest: str, source: str
) -> AsyncIterator[tuple[Repository, str]]:
    if source:
        if is_image_name(source):
            found = context.addresses.find(request.asked_host, source) if target.base == "/v2" else None
            if found is not None:
                yield found.repository, found.image
            elif target.base != "/v2":
                yield target.virtual or target.repository, source
        return
    for repository_id, image in await context.services.catalog.look(images_with, digest):
        repository = context.services.registry.find_id(repository_id)
        if repository is not None and repository.storage_id == target.repository.storage_id:
            yield repository, image


def chunk_range(request: Request) -> ChunkRange | None:
    """
    The Content-Range of a request, or None if it has none.

    :raises Refusal: the range is malformed
    """
    value = request.header(b"content-range")
    try:
        return None if value is None else parse_chunk_range(value)
    except ValueError as error:
        raise Refusal(400, str(error), "BLOB_UPLOAD_INVALID") from None


def check_start(wanted: ChunkRange | None, session: UploadSession, headers: Fields) -> None:
    """Check that a chunk begins at the end of the upload. :raises Refusal: it does not"""
    if wanted is not None and wanted.start != session.position:
        sentence = f"the upload has {session.position} bytes, and the chunk begins at {wanted.start}"
        raise Refusal(416, sentence, "RANGE_INVALID", headers=headers)


def check_length(wanted: ChunkRange | None, count: int) -> None:
    """Check that the range of a chunk has ``count`` bytes. :raises Refusal: it has another length"""
    if wanted is not None and wanted.length != count:
        raise Refusal(400, f"the range has {wanted.length} bytes, and the chunk {count}", "SIZE_INVALID")


READ_SIZE = 1024 * 1024  # bytes that are read and hashed at once


async def get_upload(
    context: RegistryContext, _request: Request, target: Target, identity: Identity, uid: str
) -> Response:
    """The number of received bytes. :raises UploadUnknown: the caller has no such upload"""
    session = await _find(context, target, identity, uid)
    return Response(204, headers=progress_headers(target, uid, session.position))


async def append_upload(
    context: RegistryContext, request: Request, target: Target, identity: Identity, uid: str
) -> Response:
    """
    Append the next chunk.

    :raises UploadUnknown: the caller has no such upload; :raises Refusal: the range does not fit
    :raises TooLarge: the upload is removed; :raises StorageFull, StorageFailed: it stays as it was
    """
    session = await _find(context, target, identity, uid)
    _check_head(context, request, target, session)
    position = await finish_without_client(_append(context, request, target, identity, uid))
    return Response(202, headers=progress_headers(target, uid, position))


async def finish_upload(
    context: RegistryContext, request: Request, target: Target, identity: Identity, uid: str
) -> Response:
    """
    Append the last chunk, if there is one, and store the upload as a blob of the image.

    :raises UploadUnknown: the caller has no such upload; :raises Refusal: the range does not fit
    :raises DigestInvalid: there is no valid digest; :raises DigestMismatch: the upload is removed
    """
    session = await _find(context, target, identity, uid)
    digest = parse_digest(request.parameter(b"digest") or "")
    _check_head(context, request, target, session)
    await finish_without_client(_finish(context, request, target, identity, uid, digest))
    return created_response(target, digest)


async def cancel_upload(
    context: RegistryContext, request: Request, target: Target, identity: Identity, uid: str
) -> Response:
    """Cancel an upload and remove its bytes. :raises UploadUnknown: the caller has no such upload"""
    await _find(context, target, identity, uid)
    staging = context.services.content.stage(target.repository)
    await finish_without_client(context.leases.cancel(uid, staging, lambda: request.gone))
    return Response(204, headers=VERSION)


@asynccontextmanager
async def _resume(
    context: RegistryContext, request: Request, target: Target, identity: Identity, uid: str
) -> AsyncIterator[tuple[Lease, Staged, IBlobUpload]]:
    """Hold the lease of the upload during the block, and resume it. :raises Refusal: the range does not fit"""
    async with (
        context.leases.hold(uid, lambda: request.gone) as lease,
        context.services.content.stage(target.repository, target.image, user_id=identity.user_id) as staged,
    ):
        session = lease.session
        check_start(chunk_range(request), session, progress_headers(target, uid, session.position))
        yield lease, staged, await lease.resume(staged)


async def _append(context: RegistryContext, request: Request, target: Target, identity: Identity, uid: str) -> int:
    async with _resume(context, request, target, identity, uid) as (lease, staged, upload):
        lost = await _write(request, upload, lease, staged)
        if lost is None:
            await _check_received(request, upload, lease.session)
        position = await lease.save(upload)
    if lost is not None:
        raise lost
    return position


async def _finish(
    context: RegistryContext, request: Request, target: Target, identity: Identity, uid: str, digest: Digest
) -> None:
    async with _resume(context, request, target, identity, uid) as (lease, staged, upload):
        if not request.body_is_empty:
            lost = await _write(request, upload, lease, staged)
            if lost is not None:
                await lease.save(upload)
                raise lost
        await _check_received(request, upload, lease.session)
        try:
            admitted = await context.authorization.require_again(request, identity, target)
            blob = await _commit(context, staged, upload, lease.session, digest)
        except (StorageFull, StorageFailed):
            raise
        except BaseException:
            await lease.discard(upload)
            raise
        await context.services.content.change_with_blobs(
            link_blob,
            target.repository,
            staged,
            [blob],
            target.image,
            blob,
            str(digest),
            uid,
            client_of(request),
            admitted,
        )
        await upload.forget()


async def _write(request: Request, upload: IBlobUpload, lease: Lease, staged: Staged) -> BodyLost | None:
    declared, received = request.body.declared, upload.offset
    try:
        room = await staged.room.begin(None if declared is None else received + declared, received)
        return await write_body(request.body, upload, room)
    except (StorageFull, StorageFailed):
        await upload.abort()
        raise
    except BaseException:
        await lease.discard(upload)
        raise


async def _commit(
    context: RegistryContext, staged: Staged, upload: IBlobUpload, session: UploadSession, digest: Digest
) -> BlobInfo:
    if digest.algorithm == "sha256" or digest.algorithm in session.algorithms:
        info: BlobInfo = await upload.commit({digest.algorithm: digest.hex})
        staged.adopt(info)
        return info
    # the client did not name this algorithm at the start, so the bytes were not hashed with it yet
    info = await upload.commit()
    staged.adopt(info)
    actual = await _hash(context, staged, info, digest.algorithm)
    if actual != digest.hex:
        raise DigestMismatch(digest.algorithm, digest.hex, actual)
    return info


async def _hash(context: RegistryContext, staged: Staged, info: BlobInfo, algorithm: str) -> str:
    return await context.services.pools.disk(_hash_file, await staged.as_file(info), algorithm)


async def _find(context: RegistryContext, target: Target, identity: Identity, uid: str) -> UploadSession:
    session = await context.services.catalog.look(find_upload, uid, context.services.clock.now_ms())
    if (
        session is None
        or (session.repository_id, session.package_key) != (target.repository.id, target.image)
        or session.user_id != identity.user_id
    ):
        raise UploadUnknown(uid)
    return session


def _check_head(context: RegistryContext, request: Request, target: Target, session: UploadSession) -> None:
    """Check range and length before the body is read. :raises Refusal: they do not fit"""
    wanted = chunk_range(request)
    if not session.leased:
        check_start(wanted, session, progress_headers(target, session.uid, session.position))
    if request.body.declared is not None:
        check_length(wanted, request.body.declared)
    check_declared_length(request, context.services.max_upload)


async def _check_received(request: Request, upload: IBlobUpload, session: UploadSession) -> None:
    """Check that the received bytes have the length of the range. :raises Refusal: the upload stays unchanged"""
    try:
        check_length(chunk_range(request), upload.offset - session.position)
    except Refusal:
        await upload.suspend()  # the session keeps the old position, and resuming drops the bytes after it
        raise


def _hash_file(descriptor: int, algorithm: str) -> str:
    hasher = hashlib.new(algorithm)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        while piece := file.read(READ_SIZE):
            hasher.update(piece)
    return hasher.hexdigest()
