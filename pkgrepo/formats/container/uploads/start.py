"""
The request that starts an upload.

========================  ====================================================================================
POST blobs/uploads/       starts an upload in several requests (see ``sessions``)
... with ``mount``        adds a blob of another image instead, if the caller may read that image
... with ``digest`` and   stores the body as a blob
a body
========================  ====================================================================================
"""

from __future__ import annotations

import hashlib

from pkgrepo.formats.container.access.push_rules import PushRuleCheck
from pkgrepo.formats.container.names import HEX_LENGTHS, Digest, DigestInvalid, parse_digest
from pkgrepo.formats.container.promises import client_of
from pkgrepo.formats.container.target import Target
from pkgrepo.gateway.services import Services
from pkgrepo.gateway.uploads import receive_body
from pkgrepo.http.answers import Answer
from pkgrepo.http.request import Request
from pkgrepo.model import Identity
from pkgrepo.repositories.images.blobs import link_blob
from pkgrepo.storage.catalog.blobs.uploads import add_upload, check_room

from .answers import created_answer, progress_headers
from .mount import BlobMounts

EMPTY = {algorithm: hashlib.new(algorithm, b"").hexdigest() for algorithm in HEX_LENGTHS}


class UploadStartRequests:
    """Starts uploads; the caller is authorized, and the push rules are checked."""

    def __init__(self, services: Services, mounts: BlobMounts, push_rules: PushRuleCheck) -> None:
        self._services = services
        self._mounts = mounts
        self._push_rules = push_rules

    async def post(self, request: Request, target: Target, identity: Identity, _rest: str) -> Answer:
        """
        Start an upload; or mount a blob, or store the body as a blob.

        :raises DigestInvalid, DigestMismatch, TooLarge: nothing is stored
        :raises Forbidden: the caller has too many unfinished uploads
        """
        mount = request.parameter(b"mount")
        if mount and await self._mounts.mount(request, target, identity, mount, request.parameter(b"from") or ""):
            return created_answer(target, parse_digest(mount))
        text = request.parameter(b"digest") or ""
        if text:
            digest = parse_digest(text)
            if not request.body_is_empty or EMPTY[digest.algorithm] == digest.hex:
                return await self._receive_blob(request, target, identity, digest)
            hint = digest.algorithm
        else:
            hint = request.parameter(b"digest-algorithm") or ""
        if hint and hint not in HEX_LENGTHS:
            raise DigestInvalid(f"digests of {hint[:40]} are not supported; use sha256 or sha512")
        algorithms = () if hint in ("", "sha256") else (hint,)
        now_ms = self._services.clock.now_ms()
        await self._services.catalog.look(check_room, identity.user_id, now_ms)
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
            now_ms=now_ms,
            algorithms=algorithms,
        )
        return Answer(202, headers=progress_headers(target, upload.id, 0))

    async def _receive_blob(self, request: Request, target: Target, identity: Identity, digest: Digest) -> Answer:
        services = self._services
        async with services.publisher.stage(target.repository) as staged:
            blob = await receive_body(
                request,
                staged,
                limit=services.max_upload,
                algorithms=() if digest.algorithm == "sha256" else (digest.algorithm,),
                expected={digest.algorithm: digest.hex},
            )
            await self._push_rules.check_again(request, identity, target)
            await services.publisher.change_with_blobs(
                link_blob, target.repository, staged, [blob], target.image, blob, str(digest), None, client_of(request)
            )
        return created_answer(target, digest)
