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
trusted               every reader                           its key is listed no more: hidden
hidden                who may push to the image              a signature by a listed key: trusted. It is not removed:
                                                             it was served once, or is older than the rule
evidence              every reader                           nothing: signatures and statements run nowhere (their
                                                             bytes are looked at), and readers need them to check for
                                                             themselves
====================  =====================================  ==========================================================

Whose signatures a manifest bears is written down; whether those keys are listed is asked at each read, so taking a key
away works at once. After a key was added, the signatures that an image has are held against it before the next reader
sees that image. Deleting a signature takes no trust back; deleting the image does.

Readers are told 404 with the detail ``not signed by a trusted key``. Layers and configs are not hidden: whoever may
read the image and knows their digests has seen its manifest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from functools import lru_cache

from attrs import frozen
from twisted.logger import Logger

from pkgrepo.concurrency.flight import SingleFlight
from pkgrepo.errors import BlobMissing, StorageFailed, StorageFull
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import Refusal
from pkgrepo.interfaces import Reader
from pkgrepo.model import SYSTEM, Action, Actor, Identity, Repository
from pkgrepo.repositories import quarantine
from pkgrepo.repositories.images import Quarantine
from pkgrepo.storage.catalog import trust
from pkgrepo.storage.catalog.manifests import find_manifest
from pkgrepo.storage.catalog.package_blobs import find_linked
from pkgrepo.storage.catalog.trust import Keys

from .admission import Admission, Target
from .configuration import TrustPolicy, trust_policy
from .documents import Document
from .names import find_digest
from .signatures import BUNDLE, Candidate, TrustedKey, parse_key, signature_layers, signers

log = Logger()

UNTRUSTED = "not signed by a trusted key"

MOST_OBJECTS = 32  # manifests with signatures of one image that are looked at, the newest first
MANIFEST_BYTES = 256 * 1024  # of one such manifest; cosign's are below 4 KiB a signature
PAYLOAD_BYTES = 256 * 1024  # of one payload or bundle

_SIGNATURE_TAG = re.compile(r"(sha256)-([0-9a-f]{64})\.sig")


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
    """Decides who sees what, and holds signatures against keys as they arrive."""

    def __init__(self, services: Services, admission: Admission) -> None:
        self._services = services
        self._admission = admission
        self._judging: SingleFlight[tuple[int, str], None] = SingleFlight()

    async def view(self, identity: Identity, repository: Repository, image: str) -> View:
        """What this caller, who may read the image, sees of it."""
        policy = trust_policy(repository)
        if policy is None:
            return OPEN
        keys = _key_ids(_keys(policy))
        await self._catch_up(repository, image, policy)
        return View(None if self._may_push(identity, repository, image) else keys, (None, keys))

    async def listed(self, identity: Identity, repository: Repository, images: Sequence[str]) -> list[str]:
        """Those of the images, which are in order and which the caller may read, that hold something they may see."""
        policy = trust_policy(repository)
        if policy is None or not images:
            return list(images)
        hidden = [image for image in images if not self._may_push(identity, repository, image)]
        for image in hidden:
            await self._catch_up(repository, image, policy)
        keys = _key_ids(_keys(policy))
        shown = set(
            await self._services.catalog.scan(trust.shown_images, repository.id, keys, images[0], images[-1])
            if hidden
            else ()
        )
        return [image for image in images if image in shown or image not in set(hidden)]

    def quarantine(self, repository: Repository, document: Document) -> Quarantine | None:
        """How long a push has to wait for a signature, or None where it need not."""
        policy = trust_policy(repository)
        if policy is None or document.evidence:
            return None
        return Quarantine(_key_ids(_keys(policy)), self._services.clock.now_ms() + policy.window_s * 1000)

    async def arrived(
        self, target: Target, document: Document, digest: str, tags: Collection[str], actor: Actor
    ) -> str | None:
        """
        Hold signatures against keys once a manifest is stored, which may be an image or a signature of one.

        The answer is a sentence for the pusher where the manifest has to wait, else None.
        """
        repository = target.repository
        policy = trust_policy(repository)
        if policy is None:
            return None
        found = (_SIGNATURE_TAG.fullmatch(tag) for tag in tags)
        signed = {f"{match[1]}:{match[2]}" for match in found if match is not None}
        if document.subject is not None:
            signed.add(document.subject)
        for each in sorted({digest, *signed}):
            await self._judge(repository, target.image, each, _keys(policy), actor)
        state = self._services.catalog.look(_is_shown, repository.id, target.image, digest, _key_ids(_keys(policy)))
        return None if state else f"readers do not see {digest} before a trusted key has signed it"

    def _may_push(self, identity: Identity, repository: Repository, image: str) -> bool:
        # clients ask for a token that only pulls, also when their user may push
        caller = self._admission.unbound(identity) if identity.via == "bearer" else identity
        return self._services.access.may(caller, Action.WRITE, repository, image)

    async def _catch_up(self, repository: Repository, image: str, policy: TrustPolicy) -> None:
        """Hold the signatures of an image against keys that were listed after they came."""
        keys = _keys(policy)
        state = self._services.catalog.look(trust.find_key_set, repository.id, image)
        key_set = _name_of(keys)
        if state is None or state[1] == key_set:
            return
        package_id = state[0]

        async def judge() -> None:
            tags, subjects = await self._services.catalog.scan(trust.list_signed, package_id, ".sig", BUNDLE)
            found = (_SIGNATURE_TAG.fullmatch(tag) for tag in tags)
            digests = {f"{match[1]}:{match[2]}" for match in found if match is not None}
            for digest in sorted(digests.union(subjects)):
                await self._judge(repository, image, digest, keys, SYSTEM)
            await self._services.catalog.write(trust.set_key_set, package_id, key_set)

        try:
            await self._judging.run((package_id, key_set), judge)
        except (StorageFailed, StorageFull):
            # what was known to be trusted is still; the next reader tries again
            log.failure("signatures in {repository} could not be looked at", repository=repository.path)

    async def _judge(
        self, repository: Repository, image: str, digest: str, keys: tuple[TrustedKey, ...], actor: Actor
    ) -> None:
        """Write down which of the keys have signed a manifest that the image has."""
        services = self._services
        evidence, inherits = await services.catalog.scan(_evidence_of, repository, image, digest)
        signed: set[str] = set()
        for each in evidence:
            candidates = await self._candidates(repository, image, each)
            missing = [key for key in keys if key.id not in signed]
            if candidates and missing:
                signed |= await services.pools.cpu(signers, digest, candidates, missing)
        if signed or inherits:
            await services.publisher.change(
                quarantine.grant, repository, image, digest, frozenset(signed), _key_ids(keys), actor
            )

    async def _candidates(self, repository: Repository, image: str, evidence: str) -> list[Candidate]:
        look = self._services.catalog.look
        where = (repository.storage_id, repository.id, image)
        manifest = look(find_manifest, *where, evidence)
        if manifest is None or manifest.size > MANIFEST_BYTES or not manifest.locator:
            return []
        found: list[Candidate] = []
        data = await self._read(repository, manifest.locator, manifest.size)
        for media_type, digest, size, said in signature_layers(data):
            known = find_digest(digest)
            blob = None if known is None or size > PAYLOAD_BYTES else look(find_linked, *where, str(known))
            if blob is not None and blob.size == size and blob.locator:
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


def untrusted(reference: str) -> Refusal:
    """The refusal for a manifest that is there, and that this caller may not see yet."""
    sentence = f"manifest {reference[:200]} is {UNTRUSTED}"
    return Refusal(404, sentence, "MANIFEST_UNKNOWN", detail=UNTRUSTED)


def trusted_keys(repository: Repository) -> Keys:
    """The keys by which readers see the content of a repository, named as in the catalog; None where it needs none."""
    policy = trust_policy(repository)
    return None if policy is None else _key_ids(_keys(policy))


def _evidence_of(r: Reader, repository: Repository, image: str, digest: str) -> tuple[list[str], bool]:
    """Digests of what may hold signatures of a manifest, and whether a signed index names it."""
    subject = find_manifest(r, repository.storage_id, repository.id, image, digest)
    if subject is None:
        return [], False
    tag = f"{digest.replace(':', '-')}.sig"
    found = trust.list_evidence(r, subject.package_id, digest, tag, BUNDLE, MOST_OBJECTS)
    return found, bool(trust.inherited_keys(r, subject.package_id, digest))


def _is_shown(r: Reader, repository_id: int, image: str, digest: str, keys: tuple[str, ...]) -> bool:
    state = trust.find_key_set(r, repository_id, image)
    return state is not None and trust.is_shown(r, state[0], digest, keys)


def _keys(policy: TrustPolicy) -> tuple[TrustedKey, ...]:
    return _parse_keys(tuple(policy.keys))


@lru_cache(maxsize=1024)
def _parse_keys(texts: tuple[str, ...]) -> tuple[TrustedKey, ...]:
    return tuple({key.id: key for key in map(parse_key, texts)}.values())


def _key_ids(keys: tuple[TrustedKey, ...]) -> tuple[str, ...]:
    return tuple(key.id for key in keys)


def _name_of(keys: tuple[TrustedKey, ...]) -> str:
    return hashlib.sha256("".join(sorted(_key_ids(keys))).encode("ascii")).hexdigest()
