"""
Verification of the signatures in the manifests of an image: at the push of a manifest, and again after a key was added.

The results are stored (see L{pkgrepo.storage.catalog.images.signatures}); each read checks whether the keys are still
trusted.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

from twisted.logger import Logger

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import BlobMissing, StorageFailed, StorageFull
from pkgrepo.formats.container.documents.document import ManifestDocument
from pkgrepo.formats.container.limits import MOST_SUBJECTS, SIGNATURE_LAYERS_SIZE, SIGNATURE_MANIFEST_SIZE
from pkgrepo.formats.container.names import find_digest
from pkgrepo.formats.container.public_keys import PublicKey
from pkgrepo.gateway.services import Services
from pkgrepo.model import SYSTEM, Repository
from pkgrepo.repositories.images.manifests import FoundSignatures, note_signatures
from pkgrepo.repositories.images.push import VerifiedSignatures
from pkgrepo.storage.catalog.images import signatures
from pkgrepo.storage.catalog.images.linked_blobs import find_linked
from pkgrepo.storage.catalog.images.manifests import find_manifest

from .keyring import Keyring
from .signatures import SignatureLayer, find_signature_layers, find_signers

log = Logger()

BATCH = 100  # manifests whose signatures are stored in one transaction


class SignatureVerifier:
    """Verifies signatures with the keys that a repository trusts."""

    def __init__(self, services: Services, keyring: Keyring) -> None:
        self._services = services
        self._keyring = keyring
        self._running: SingleFlight[tuple[int, str], None] = SingleFlight()

    async def verify_pushed(
        self, repository: Repository, image: str, document: ManifestDocument, data: bytes, tags: Collection[str]
    ) -> VerifiedSignatures | None:
        """Verify the signatures in a manifest before it is stored; None if the repository requires no signatures."""
        trusted = self._keyring.keys(repository)
        if trusted is None:
            return None
        subjects = signatures.signed_by(document.subject, document.artifact_type, tags)
        signed = {
            subject: await self._find_signers(repository, image, data, subject, trusted.keys)
            for subject in islice(subjects, MOST_SUBJECTS)
        }
        found = {subject: keys for subject, keys in signed.items() if keys}
        return VerifiedSignatures(trusted.ids, trusted.id, found)

    async def verify_stored(self, repository: Repository, image: str) -> bool:
        """
        Verify the stored signatures of an image again if the trusted keys have changed since the last time.

        False if the storage or the catalog fails: the stored results stay, and the next read tries again.
        """
        trusted = self._keyring.keys(repository)
        state = await self._services.catalog.look(signatures.find_key_set, repository.id, image)
        if trusted is None or state is None:
            return True
        keys, key_set, (package_id, before) = trusted.keys, trusted.id, state
        if before == key_set:
            return True

        async def verify() -> None:
            catalog, found = self._services.catalog, []
            for manifest, subject in await catalog.scan(signatures.list_signature_places, package_id):
                signers = await self._find_stored_signers(repository, image, manifest, subject, keys)
                found.append(FoundSignatures(manifest, subject, signers))
            for start in range(0, len(found), BATCH):
                some = found[start : start + BATCH]
                await self._services.publisher.change(note_signatures, repository, image, some, trusted.ids, SYSTEM)
            await catalog.write(signatures.set_key_set, package_id, before, key_set)

        try:
            await self._running.run((package_id, key_set), verify)
        except StorageFull:  # logged by the catalog
            return False
        except StorageFailed:
            log.failure("signatures in {repository} could not be looked at", repository=repository.path)
            return False
        return True

    async def _find_stored_signers(
        self, repository: Repository, image: str, digest: str, subject: str, keys: tuple[PublicKey, ...]
    ) -> frozenset[str]:
        manifest = await self._services.catalog.look(find_manifest, repository.storage_id, repository.id, image, digest)
        if manifest is None or manifest.size > SIGNATURE_MANIFEST_SIZE or not manifest.locator:
            return frozenset()
        data = await self._read(repository, manifest.locator, manifest.size)
        return await self._find_signers(repository, image, data, subject, keys)

    async def _find_signers(
        self, repository: Repository, image: str, data: bytes, subject: str, keys: tuple[PublicKey, ...]
    ) -> frozenset[str]:
        """Ids of the keys that have signed ``subject`` with a signature in this manifest."""
        if not keys or len(data) > SIGNATURE_MANIFEST_SIZE:
            return frozenset()
        layers = await self._read_layers(repository, image, data)
        if not layers:
            return frozenset()
        found: frozenset[str] = await self._services.pools.cpu(find_signers, subject, layers, keys)
        return found

    async def _read_layers(self, repository: Repository, image: str, manifest: bytes) -> list[SignatureLayer]:
        found: list[SignatureLayer] = []
        room = SIGNATURE_LAYERS_SIZE
        for media_type, digest, size, notes in await self._services.pools.cpu(find_signature_layers, manifest):
            known = find_digest(digest)
            if known is None or size > room:
                continue
            blob = await self._services.catalog.look(
                find_linked, repository.storage_id, repository.id, image, str(known)
            )
            if blob is not None and blob.size == size and blob.locator:
                room -= size
                content = await self._read(repository, blob.locator, blob.size)
                found.append(SignatureLayer(media_type, content, notes))
        return found

    async def _read(self, repository: Repository, locator: str, size: int) -> bytes:
        """Stored content; empty if it is lost, since a lost signature must not make the image unreadable."""
        try:
            return await self._services.files.read(repository.storage_id, locator, size)
        except BlobMissing as error:
            log.warn("a signature in {repository} is lost: {error}", repository=repository.path, error=str(error))
            return b""
