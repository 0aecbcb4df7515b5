"""
Whose signatures the manifests of an image hold: verified when a manifest is pushed, and anew when a key was added.

What was verified is written down (see L{pkgrepo.storage.catalog.images.signatures}); whether the keys are listed
is asked at each read.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from twisted.logger import Logger

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import BlobMissing, StorageFailed, StorageFull
from pkgrepo.formats.container.limits import EVIDENCE_SIZE, MANIFEST_BYTES, MOST_SUBJECTS
from pkgrepo.formats.container.manifest_document import Document
from pkgrepo.formats.container.names import find_digest
from pkgrepo.gateway.services import Services
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.repositories.images.push import VerifiedSignatures
from pkgrepo.repositories.images.trust import FoundSignatures, note_signatures
from pkgrepo.storage.catalog.images import signatures
from pkgrepo.storage.catalog.images.linked_blobs import find_linked
from pkgrepo.storage.catalog.images.manifests import find_manifest

from .keyring import Keyring
from .signatures import Candidate, TrustedKey, signature_layers, signers

log = Logger()

BATCH = 100  # manifests whose signatures are noted in one transaction


class Judging:
    """Holds stored signatures against the keys that a repository trusts."""

    def __init__(self, services: Services, keyring: Keyring) -> None:
        self._services = services
        self._keyring = keyring
        self._running: SingleFlight[tuple[int, str], None] = SingleFlight()

    async def judge(
        self, repository: Repository, image: str, document: Document, data: bytes, tags: Collection[str]
    ) -> VerifiedSignatures | None:
        """Whose signatures a manifest holds that is about to be stored; None where nothing has to be signed."""
        trusted = self._keyring.trusted(repository)
        if trusted is None:
            return None
        subjects = signatures.signed_by(document.subject, document.artifact_type, tags)
        signed = {
            subject: await self._signers(repository, image, data, subject, trusted.keys)
            for subject in islice(subjects, MOST_SUBJECTS)
        }
        return VerifiedSignatures(
            trusted.ids, trusted.key_set, {subject: found for subject, found in signed.items() if found}
        )

    async def catch_up(self, repository: Repository, image: str) -> bool:
        """
        Hold the signatures of an image against keys that were listed after they came.

        False when that fails: what was known to be trusted is still, and the next reader tries again.
        """
        trusted = self._keyring.trusted(repository)
        state = self._services.catalog.look_inline(signatures.find_key_set, repository.id, image)
        if trusted is None or state is None:
            return True
        keys, key_set, (package_id, before) = trusted.keys, trusted.key_set, state
        if before == key_set:
            return True

        async def judge() -> None:
            catalog, found = self._services.catalog, []
            for manifest, subject in await catalog.scan(signatures.list_places, package_id):
                found.append(
                    FoundSignatures(
                        manifest, subject, await self._stored_signers(repository, image, manifest, subject, keys)
                    )
                )
            for start in range(0, len(found), BATCH):
                some = found[start : start + BATCH]
                await self._services.publisher.change(note_signatures, repository, image, some, trusted.ids, SYSTEM)
            await catalog.write(signatures.set_key_set, package_id, before, key_set)

        try:
            await self._running.run((package_id, key_set), judge)
        except StorageFull:  # which the catalog has logged
            return False
        except StorageFailed:
            log.failure("signatures in {repository} could not be looked at", repository=repository.path)
            return False
        return True

    async def _stored_signers(
        self, repository: Repository, image: str, digest: str, subject: str, keys: tuple[TrustedKey, ...]
    ) -> frozenset[str]:
        manifest = self._services.catalog.look_inline(
            find_manifest, repository.storage_id, repository.id, image, digest
        )
        if manifest is None or manifest.size > MANIFEST_BYTES or not manifest.locator:
            return frozenset()
        data = await self._read(repository, manifest.locator, manifest.size)
        return await self._signers(repository, image, data, subject, keys)

    async def _signers(
        self, repository: Repository, image: str, data: bytes, subject: str, keys: tuple[TrustedKey, ...]
    ) -> frozenset[str]:
        """Ids of the keys that have signed ``subject`` by what a manifest holds."""
        candidates = await self._candidates(repository, image, data) if len(data) <= MANIFEST_BYTES and keys else []
        if not candidates:
            return frozenset()
        found: frozenset[str] = await self._services.pools.cpu(signers, subject, candidates, keys)
        return found

    async def _candidates(self, repository: Repository, image: str, manifest: bytes) -> list[Candidate]:
        found: list[Candidate] = []
        room = EVIDENCE_SIZE
        for media_type, digest, size, said in await self._services.pools.cpu(signature_layers, manifest):
            known = find_digest(digest)
            if known is None or size > room:
                continue
            blob = self._services.catalog.look_inline(
                find_linked, repository.storage_id, repository.id, image, str(known)
            )
            if blob is not None and blob.size == size and blob.locator:
                room -= size
                content = await self._read(repository, blob.locator, blob.size)
                found.append(Candidate(media_type, content, said))
        return found

    async def _read(self, repository: Repository, locator: str, size: int) -> bytes:
        """Stored bytes; none when they are lost: a signature less must not make an image unreadable."""
        try:
            return await self._services.files.read(repository.storage_id, locator, size)
        except BlobMissing as error:
            log.warn("a signature in {repository} is lost: {error}", repository=repository.path, error=str(error))
            return b""
