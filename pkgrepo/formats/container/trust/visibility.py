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
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.formats.container.access.authorization import Authorization
from pkgrepo.formats.container.configuration import trust_policy
from pkgrepo.formats.container.documents.document import ManifestDocument
from pkgrepo.formats.container.target import Target
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Refusal
from pkgrepo.interfaces import Reader
from pkgrepo.model import Identity, Repository
from pkgrepo.repositories.images.push import Quarantine
from pkgrepo.storage.catalog.images import trust
from pkgrepo.storage.catalog.images.signatures import find_key_set
from pkgrepo.storage.catalog.images.trust import Keys

from .keyring import NO_KEY, Keyring
from .verification import SignatureVerifier

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
        """Those of the images that have visible manifests. ``images`` are sorted, and the caller may read them."""
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
        """The warning in the answer to the push of a manifest that readers do not see yet, else None."""
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
