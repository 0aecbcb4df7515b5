"""
Content trust: which manifests readers may see, by the signatures that are stored for them.

A signature names a digest, so the manifest that it signs is pushed first. Where ``require_content_trust`` is on, the
manifest is stored, and its state decides who sees it:

====================  =====================================  ==========================================================
state of a manifest   who sees it, by digest and by tag      changes to
====================  =====================================  ==========================================================
waiting               callers who may push to the image      trusted, when a trusted key signs it or an index that
                                                             refers to it; removed after ``trust.window_s``, and its
                                                             tags then point to what readers got before
trusted               every reader                           hidden, when its key is no longer trusted or its
                                                             signature is removed
hidden                callers who may push to the image      trusted, when a trusted key signs it. It is not removed,
                                                             since readers had it, or it is older than the rule
evidence              every reader                           nothing: its layers are signatures, attestations and
                                                             SBOMs, which readers need for their own verification
====================  =====================================  ==========================================================

A manifest is trusted while a stored signature verifies with a trusted key. So deleting the signature, its tag or the
signed index hides the manifest in the same transaction, and removing a key takes effect at once. After a key was added,
the stored signatures of an image are verified with it before the next read of that image, and before anything of it is
removed.

Readers get 404 with the detail ``not signed by a trusted key``. Layers and configs are not hidden: a reader who knows
their digests has seen the manifest.

Signatures in the manifests of an image are verified at the push of a manifest, and the results are stored (see
``pkgrepo.storage.catalog.images.signatures``); each read checks whether the keys are still trusted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import islice

from attrs import frozen
from twisted.logger import Logger

from pkgrepo.concurrency.single_flight import SingleFlight
from pkgrepo.errors import BlobMissing, StorageFailed, StorageFull
from pkgrepo.formats.container.access import Authorization
from pkgrepo.formats.container.configuration import trust_policy
from pkgrepo.formats.container.documents import (
    MOST_SUBJECTS,
    SIGNATURE_LAYERS_SIZE,
    SIGNATURE_MANIFEST_SIZE,
    ManifestDocument,
)
from pkgrepo.formats.container.names import find_digest
from pkgrepo.formats.container.target import Target
from pkgrepo.formats.container.trust.signatures import (
    NO_KEY,
    Keyring,
    SignatureLayer,
    find_signature_layers,
    find_signers,
)
from pkgrepo.gateway.services import Services
from pkgrepo.http.responses import Refusal
from pkgrepo.interfaces import Reader
from pkgrepo.model import SYSTEM, Identity, Repository
from pkgrepo.repositories.images.push import Quarantine, VerifiedSignatures
from pkgrepo.repositories.images.trust import FoundSignatures, note_signatures
from pkgrepo.storage.catalog.images import signatures, trust
from pkgrepo.storage.catalog.images.linked_blobs import find_linked
from pkgrepo.storage.catalog.images.manifests import find_manifest
from pkgrepo.storage.catalog.images.signatures import find_key_set
from pkgrepo.storage.catalog.images.trust import Keys
from pkgrepo.untrusted.public_keys import PublicKey

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
        subjects = signatures.signed_by(document.subject, tags)
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
                await self._services.content.change(note_signatures, repository, image, some, trusted.ids, SYSTEM)
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


UNTRUSTED = "not signed by a trusted key"


@frozen
class View:
    """
    The manifests of an image that a caller sees: all if ``keys`` is None, else those signed by one of ``keys``.

    ``audiences`` are the ``keys`` of all callers who may read the image.
    """

    keys: Keys
    audiences: tuple[Keys, ...]


OPEN = View(None, (None,))


class Visibility:
    """Decides which manifests a caller sees."""

    def __init__(self, services: Services, authorization: Authorization, keyring: Keyring) -> None:
        self._services = services
        self._authorization = authorization
        self._keyring = keyring
        self.verifier = SignatureVerifier(services, keyring)

    async def view(self, identity: Identity, repository: Repository, image: str) -> View:
        """The view of a caller who may read the image."""
        keys = self._keyring.ids(repository)
        if keys is None:
            return OPEN
        await self.verifier.verify_stored(repository, image)
        may_push = await self._authorization.may_push(identity, repository, image)
        return View(None if may_push else keys, (None, keys))

    async def filter_images(self, identity: Identity, repository: Repository, images: Sequence[str]) -> list[str]:
        """The images, of some, that have visible manifests. ``images`` are sorted, and the caller may read them."""
        keys = self._keyring.ids(repository)
        if keys is None or not images:
            return list(images)
        hidden = {*images} - {*await self._authorization.filter_pushable(identity, repository, images)}
        for image in sorted(hidden):
            await self.verifier.verify_stored(repository, image)
        shown = set(
            await self._services.catalog.scan(trust.visible_images, repository.id, keys, images[0], images[-1])
            if hidden
            else ()
        )
        return [image for image in images if image in shown or image not in hidden]

    def quarantine(self, repository: Repository, document: ManifestDocument) -> Quarantine | None:
        """The quarantine of a pushed manifest, or None if it needs no signature."""
        policy, keys = trust_policy(repository), self._keyring.ids(repository)
        if policy is None or keys is None or document.evidence:
            return None
        return Quarantine(tuple(keys), self._services.clock.now_ms() + policy.window_s * 1000)

    async def warning(self, target: Target, digest: str) -> str | None:
        """The warning in the response to the push of a manifest that readers do not see yet, else None."""
        keys = self._keyring.ids(target.repository)
        if keys is None or await self._services.catalog.look(
            _is_shown, target.repository.id, target.image, digest, keys
        ):
            return None
        return f"readers do not see {digest} before a trusted key has signed it{'' if keys else f'; {NO_KEY}'}"

    def refusal(self, repository: Repository, reference: str) -> Refusal:
        """The refusal of a request for a manifest that exists but is hidden from the caller."""
        reason = "" if self._keyring.ids(repository) else f"; {NO_KEY}"
        sentence = f"manifest {reference[:200]} is {UNTRUSTED}{reason}"
        return Refusal(404, sentence, "MANIFEST_UNKNOWN", detail=UNTRUSTED)


def _is_shown(r: Reader, repository_id: int, image: str, digest: str, keys: Sequence[str]) -> bool:
    state = find_key_set(r, repository_id, image)
    return state is not None and trust.is_visible(r, state[0], digest, keys)
