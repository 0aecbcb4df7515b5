"""
Content trust: which manifests readers may see, by the signatures that came for them.

A signature names a digest, so what it signs must be there first. Where ``require_content_trust`` is on, a push is
taken, and what became of it decides who sees it:

====================  =====================================  ==========================================================
state of a manifest   who sees it, by digest and by tag      what moves it on
====================  =====================================  ==========================================================
waiting               who may push to the image              a signature by a listed key, of it or of an index that
                                                             names it: trusted; the end of ``trust.window_s``: it is
                                                             removed, and its tags go back to what readers had
trusted               every reader                           its key is listed no more, or its signature is gone:
                                                             hidden
hidden                who may push to the image              a signature by a listed key: trusted. It is not removed:
                                                             it was served once, or is older than the rule
evidence              every reader                           nothing: signatures and statements run nowhere (their
                                                             bytes are looked at), and readers need them to check for
                                                             themselves
====================  =====================================  ==========================================================

A manifest is trusted while a signature that is stored verifies with a listed key. So deleting the signature, its tag or
the index by which a manifest was covered hides the manifest, in the same transaction, and taking a key away works at
once. After a key was added, the signatures that an image has are held against it before the next reader sees that
image, and before anything of it is dropped.

Readers are told 404 with the detail ``not signed by a trusted key``. Layers and configs are not hidden: whoever may
read the image and knows their digests has seen its manifest.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from pkgrepo.formats.container.admission import Admission, Target
from pkgrepo.formats.container.configuration import trust_policy
from pkgrepo.formats.container.manifest_document import Document
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Refusal
from pkgrepo.interfaces import Reader
from pkgrepo.model import Identity, Repository
from pkgrepo.repositories.images.push import Quarantine
from pkgrepo.storage.catalog.images import trust
from pkgrepo.storage.catalog.images.signatures import find_key_set
from pkgrepo.storage.catalog.images.trust import Keys

from .keyring import NO_KEY, Keyring
from .verification import Judging

UNTRUSTED = "not signed by a trusted key"


@frozen
class View:
    """
    What a caller sees of an image: all of it where ``keys`` is None, else what those have signed.

    ``audiences`` are the views of everybody who may read it.
    """

    keys: Keys
    audiences: tuple[Keys, ...]


OPEN = View(None, (None,))


class Trust:
    """Decides who sees what."""

    def __init__(self, services: Services, admission: Admission, keyring: Keyring) -> None:
        self._services = services
        self._admission = admission
        self._keyring = keyring
        self.judging = Judging(services, keyring)

    async def view(self, identity: Identity, repository: Repository, image: str) -> View:
        """What this caller, who may read the image, sees of it."""
        keys = self._keyring.ids(repository)
        if keys is None:
            return OPEN
        await self.judging.catch_up(repository, image)
        return View(None if self._admission.may_push(identity, repository, image) else keys, (None, keys))

    async def listed(self, identity: Identity, repository: Repository, images: Sequence[str]) -> list[str]:
        """Those of the images, which are in order and which the caller may read, that hold something they may see."""
        keys = self._keyring.ids(repository)
        if keys is None or not images:
            return list(images)
        hidden = {image for image in images if not self._admission.may_push(identity, repository, image)}
        for image in sorted(hidden):
            await self.judging.catch_up(repository, image)
        shown = set(
            await self._services.catalog.scan(trust.shown_images, repository.id, keys, images[0], images[-1])
            if hidden
            else ()
        )
        return [image for image in images if image in shown or image not in hidden]

    def quarantine(self, repository: Repository, document: Document) -> Quarantine | None:
        """How long a push has to wait for a signature, or None where it need not."""
        policy, keys = trust_policy(repository), self._keyring.ids(repository)
        if policy is None or keys is None or document.evidence:
            return None
        return Quarantine(tuple(keys), self._services.clock.now_ms() + policy.window_s * 1000)

    def note(self, target: Target, digest: str) -> str | None:
        """A sentence for the pusher of a manifest that has to wait for its signature, else None."""
        keys = self._keyring.ids(target.repository)
        if keys is None or self._services.catalog.look_inline(
            _is_shown, target.repository.id, target.image, digest, keys
        ):
            return None
        return f"readers do not see {digest} before a trusted key has signed it{'' if keys else f'; {NO_KEY}'}"

    def untrusted(self, repository: Repository, reference: str) -> Refusal:
        """The refusal for a manifest that is there, and that this caller may not see yet."""
        reason = "" if self._keyring.ids(repository) else f"; {NO_KEY}"
        sentence = f"manifest {reference[:200]} is {UNTRUSTED}{reason}"
        return Refusal(404, sentence, "MANIFEST_UNKNOWN", detail=UNTRUSTED)


def _is_shown(r: Reader, repository_id: int, image: str, digest: str, keys: Sequence[str]) -> bool:
    state = find_key_set(r, repository_id, image)
    return state is not None and trust.is_shown(r, state[0], digest, keys)
