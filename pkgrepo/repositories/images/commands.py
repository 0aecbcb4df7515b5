"""
Write commands over container images: blobs that an image may serve, manifests, and the tags that stand for them.

An image is a package whose key is its name. It comes to be with its first blob or manifest, and goes with its last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from attrs import Factory, define, frozen

from pkgrepo.errors import Invalid, NotFound, PkgrepoError
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import SYSTEM, Actor, BlobInfo, Package, Repository
from pkgrepo.repositories.publish.events import append_package_event, bump_package_serial
from pkgrepo.storage.catalog.blobs import blobs, uploads
from pkgrepo.storage.catalog.images import linked_blobs as package_blobs
from pkgrepo.storage.catalog.images import manifests, promises, signatures, trust
from pkgrepo.storage.catalog.images.manifests import NewManifest
from pkgrepo.storage.catalog.packages import packages, tags
from pkgrepo.storage.catalog.server import repositories

from .trust import derive_all, tell_change

NAMED = 10  # digests in a sentence


@define
class ReferencesMissing(PkgrepoError):  # noqa: N818 - named for what happened
    """A manifest names what its image does not have."""

    digests: tuple[str, ...]

    def __str__(self) -> str:
        more = f" and {len(self.digests) - NAMED} more" if len(self.digests) > NAMED else ""
        return f"the manifest refers to content that this image does not have: {', '.join(self.digests[:NAMED])}{more}"


@define
class TagExists(PkgrepoError):  # noqa: N818 - named for what happened
    """A tag stands for other content already, and the repository keeps it so."""

    tag: str
    current: str
    pushed: str

    def __str__(self) -> str:
        return f"tag {self.tag} already exists and this repository does not allow tags to be overwritten"


@define
class Unexpected(PkgrepoError):  # noqa: N818 - named for what happened
    """A tag does not stand for what the client said it would."""

    tag: str

    def __str__(self) -> str:
        return f"tag {self.tag} does not stand for what the request expects"


@define
class StillNeeded(PkgrepoError):  # noqa: N818 - named for what happened
    """A blob cannot go while a manifest of its image refers to it."""

    digest: str

    def __str__(self) -> str:
        return f"blob {self.digest} is part of a manifest of this image; delete the manifest first"


@frozen
class Reference:
    """
    A descriptor of a manifest that must be there: ``kind`` is config, layer or manifest.

    ``size`` is what the descriptor says, in bytes.
    """

    digest: str
    kind: str
    size: int


@frozen
class Expectation:
    """What the client says a tag stands for now: nothing at all, or one of ``digests``."""

    digests: frozenset[str] = frozenset()
    absent: bool = False


@frozen
class Quarantine:
    """
    Readers see what one of ``keys`` has signed; the rest waits for a signature until ``expires_ms``.

    Keys are named as in the catalog.
    """

    keys: tuple[str, ...]
    expires_ms: int


@frozen
class Judgement:
    """
    Whose signatures a manifest holds: the keys by the digest that they have signed.

    They were held against the keys that are ``trusted`` now, a set that is called ``key_set``.
    """

    trusted: tuple[str, ...]
    key_set: str
    signed: Mapping[str, frozenset[str]] = Factory(dict)


@frozen
class Push:
    """
    A manifest with the tags that shall stand for it.

    ``kept`` are the tags among them that may not be moved; ``expected`` is held against the first tag. With a
    ``quarantine`` readers see nothing of it before it is signed. Without a ``judgement`` nobody has looked whether it
    holds signatures. ``client`` was promised what it refers to. ``alone`` says whether the image
    was named without its repository, if the address tells.
    """

    manifest: NewManifest
    blob: BlobInfo
    required: tuple[Reference, ...]
    tags: tuple[str, ...] = ()
    kept: Collection[str] = ()
    expected: Expectation | None = None
    quarantine: Quarantine | None = None
    judgement: Judgement | None = None
    client: str | None = None
    alone: bool | None = None


@frozen
class Taken:
    """What became of staged copies: ``surplus`` are locators that the catalog did not take."""

    surplus: tuple[str, ...]


def link_blob(
    tx: Transaction,
    repository: Repository,
    image: str,
    info: BlobInfo,
    sha512: str | None,
    upload: str | None,
    client: str | None,
    now_ms: int,
) -> Taken:
    """Let an image serve bytes that were received whole, for a push of ``client``; ends the upload of that id."""
    claimed = blobs.claim_blob(tx, repository.storage_id, info, now_ms)
    package = _ensure(tx, repository, image, now_ms)
    if package_blobs.link_blob(tx, package.id, info.sha256, sha512, now_ms):
        repositories.add_usage(tx, repository.id, info.size, 0)
        _completed(tx, package, info.sha256, now_ms)
    if client is not None:
        promises.promise(tx, package.id, f"sha256:{info.sha256}", client, now_ms)
    if upload is not None:
        uploads.remove_upload(tx, upload)
    return Taken(() if claimed.locator == info.locator else (info.locator,))


def mount_blob(
    tx: Transaction,
    repository: Repository,
    image: str,
    source: Repository,
    source_image: str,
    digest: str,
    client: str,
    now_ms: int,
) -> bool:
    """
    Let an image serve a blob of another image on the same storage, for a push of ``client``.

    False when that image does not have it any more.
    """
    found = package_blobs.find_linked(tx, source.storage_id, source.id, source_image, digest)
    if found is None or source.storage_id != repository.storage_id:
        return False
    if not blobs.touch_blob(tx, repository.storage_id, found.sha256, now_ms):
        return False
    package = _ensure(tx, repository, image, now_ms)
    sha512 = digest.partition(":")[2] if digest.startswith("sha512:") else None
    if package_blobs.link_blob(tx, package.id, found.sha256, sha512, now_ms):
        repositories.add_usage(tx, repository.id, found.size, 0)
        _completed(tx, package, found.sha256, now_ms)
    promises.promise(tx, package.id, f"sha256:{found.sha256}", client, now_ms)
    return True


def promise_blob(
    tx: Transaction, repository: Repository, package_id: int, sha256: str, client: str | None, now_ms: int
) -> bool:
    """
    Keep a blob from the gc, since somebody is about to be told that it is there; whether it still is.

    ``client`` is who may push a manifest next that refers to it, if it is one who may.
    """
    if not package_blobs.touch_link(tx, package_id, sha256, now_ms):
        return False
    if client is not None:
        promises.promise(tx, package_id, f"sha256:{sha256}", client, now_ms)
    return blobs.touch_blob(tx, repository.storage_id, sha256, now_ms)


def promise_manifest(
    tx: Transaction, _repository: Repository, package_id: int, digest: str, client: str | None, now_ms: int
) -> bool:
    """The same for a manifest."""
    if not manifests.touch_manifest(tx, package_id, digest, now_ms):
        return False
    if client is not None:
        promises.promise(tx, package_id, digest, client, now_ms)
    return True


def put_manifest(tx: Transaction, repository: Repository, image: str, push: Push, actor: Actor, now_ms: int) -> Taken:
    """
    Store a manifest and let tags stand for it: all of it, or nothing.

    :raises ReferencesMissing: the image lacks what it refers to; :raises Invalid: a descriptor has another size
    :raises TagExists: a tag may not be moved; :raises Unexpected: it stands for something else than expected
    """
    new = push.manifest
    claimed = blobs.claim_blob(tx, repository.storage_id, push.blob, now_ms)
    package = _ensure(tx, repository, image, now_ms)
    if push.alone is not None:
        packages.set_alone(tx, package.id, push.alone)
    moved = _moved_tags(tx, package, push, now_ms)
    _check_references(tx, repository, package, push.required, now_ms)
    added = manifests.add_manifest(tx, repository.id, package.id, new, now_ms)
    if added:
        repositories.add_usage(tx, repository.id, new.size, 0)
    trusted = () if push.judgement is None else push.judgement.trusted
    signed = _note_signatures(tx, package, push)
    change = signatures.derive_trust(tx, package.id, new.digest, trusted)  # its signatures may have come first
    waiting = push.quarantine
    if waiting is not None and trust.is_shown(tx, package.id, new.digest, waiting.keys):
        waiting = None
    for tag in moved:
        # signatures are where their tag is, whoever looks
        behind = waiting if signatures.signed_at(tag) is None else None
        served = None if behind is None else trust.find_shown_digest(tx, package.id, tag, behind.keys)
        tags.set_tag(tx, package.id, tag, actor=actor, now_ms=now_ms, digest=new.digest)
        if waiting is not None:
            trust.hold_tag(tx, package.id, tag, served, waiting.expires_ms)
    if waiting is not None:
        trust.await_signature(tx, package.id, new.digest, waiting.expires_ms, new=added)
    if added or moved:
        bump_package_serial(tx, repository, package, now_ms)
        data = {"digest": new.digest, "media_type": new.media_type, "tags": list(moved)}
        append_package_event(tx, package, "published" if added else "tagged", data, actor, now_ms)
    tell_change(tx, repository, package, new.digest, change, actor, now_ms)
    derive_all(tx, repository, package, signed, trusted, actor, now_ms)
    if push.client is not None:
        _fulfil(tx, repository, package, push, push.client, now_ms)
    return Taken(() if claimed.locator == push.blob.locator else (push.blob.locator,))


def delete_manifest(
    tx: Transaction, repository: Repository, image: str, digest: str, actor: Actor, now_ms: int
) -> None:
    """
    Remove a manifest and every tag that stands for it; its blobs stay until somebody or the gc removes them.

    :raises NotFound: the image has none of this digest
    """
    package = _get(tx, repository, image)
    size = manifests.manifest_size(tx, package.id, digest)
    if size is None:
        raise NotFound("manifest", digest)
    depending = signatures.depending_on(tx, package.id, digest)
    untagged = manifests.remove_manifest(tx, package.id, digest)
    repositories.add_usage(tx, repository.id, -size, 0)
    bump_package_serial(tx, repository, package, now_ms)
    others = {"hidden": untagged.hidden, "released": untagged.released}
    data = {"digest": digest, "tags": untagged.gone, **{kind: names for kind, names in others.items() if names}}
    append_package_event(tx, package, "deleted", data, actor, now_ms)
    derive_all(tx, repository, package, depending, (), actor, now_ms)
    _remove_if_empty(tx, repository, package)


def delete_tag(tx: Transaction, repository: Repository, image: str, tag: str, actor: Actor, now_ms: int) -> None:
    """
    Remove a tag; what it stood for stays.

    :raises NotFound: the image has no such tag
    """
    package = _get(tx, repository, image)
    found = tags.find_tag(tx, package.id, tag)
    if found is None:
        raise NotFound("tag", tag)
    tags.remove_tag(tx, package.id, tag)
    if found.digest is not None:
        manifests.touch_manifest(tx, package.id, found.digest, now_ms)  # the gc's grace time begins now
    bump_package_serial(tx, repository, package, now_ms)
    append_package_event(tx, package, "untagged", {"digest": found.digest, "tags": [tag]}, actor, now_ms)
    derive_all(tx, repository, package, signatures.signed_by(None, None, [tag]), (), actor, now_ms)


def release_tag(tx: Transaction, repository: Repository, image: str, tag: str, actor: Actor, now_ms: int) -> None:
    """
    Take back what waits for its signature at a tag: readers keep what they get by it; else the tag goes.

    :raises NotFound: the image has no such tag
    """
    package = _get(tx, repository, image)
    found = tags.find_tag(tx, package.id, tag)
    if found is None or not trust.release_tag(tx, package.id, tag):
        delete_tag(tx, repository, image, tag, actor, now_ms)
        return
    bump_package_serial(tx, repository, package, now_ms)
    append_package_event(tx, package, "released", {"digest": found.digest, "tags": [tag]}, actor, now_ms)


def delete_blob(tx: Transaction, repository: Repository, image: str, digest: str, _now_ms: int) -> None:
    """
    Take a blob out of an image; other images keep it.

    A digest is an address of the blob, which is the content (OCI distribution 1.1, "Definitions"): it goes under each
    of its digests, whichever it was called by, or what was deleted could still be had.

    :raises NotFound: the image does not have it; :raises StillNeeded: a manifest of the image refers to it
    """
    package = _get(tx, repository, image)
    found = package_blobs.find_in_package(tx, repository.storage_id, package.id, digest)
    if found is None:
        raise NotFound("blob", digest)
    if package_blobs.is_needed(tx, package.id, found.sha256):
        raise StillNeeded(digest)
    package_blobs.unlink_blob(tx, package.id, found.sha256)
    repositories.add_usage(tx, repository.id, -found.size, 0)
    repositories.bump_serial(tx, repository.id)
    _remove_if_empty(tx, repository, package)


def find_image(r: Reader, repository_id: int, image: str) -> Package | None:
    """An image by its name, or None; one that only has blobs so far counts."""
    return packages.find_package(r, repository_id, image)


def _note_signatures(tx: Transaction, package: Package, push: Push) -> list[str]:
    """Note whose signatures a manifest holds that was just stored; the digests of what it may have signed."""
    new, judgement = push.manifest, push.judgement
    signed = signatures.signed_by(new.subject, new.artifact_type, push.tags)
    if judgement is not None:
        for subject, keys in judgement.signed.items():
            signatures.note_signature(tx, package.id, new.digest, subject, keys)
    if signed:
        signatures.mark_unverified(tx, package.id, None if judgement is None else judgement.key_set)
    return signed


def _fulfil(tx: Transaction, repository: Repository, package: Package, push: Push, client: str, now_ms: int) -> None:
    """End what a client was promised for a manifest; one without tag or subject may be for an index still to come."""
    new = push.manifest
    names = [digest for digest, _ in new.references]
    for name in [name for name in names if name.startswith("sha512:")]:
        found = package_blobs.find_in_package(tx, repository.storage_id, package.id, name)
        names += [] if found is None else [f"sha256:{found.sha256}"]
    promises.fulfil(tx, package.id, names, client)
    if push.tags or new.subject is not None:
        promises.fulfil(tx, package.id, [new.digest], client)
    else:
        promises.promise(tx, package.id, new.digest, client, now_ms)


def _moved_tags(tx: Transaction, package: Package, push: Push, now_ms: int) -> tuple[str, ...]:
    """The tags of a push that do not stand for its manifest yet."""
    moved: list[str] = []
    for index, name in enumerate(push.tags):
        found = tags.find_tag(tx, package.id, name)
        current = None if found is None else found.digest
        if index == 0 and push.expected is not None and not _is_expected(push.expected, current):
            raise Unexpected(name)
        if current == push.manifest.digest:
            continue
        if current is not None and name in push.kept:
            raise TagExists(name, current, push.manifest.digest)
        if current is not None:
            manifests.touch_manifest(tx, package.id, current, now_ms)  # the gc's grace time begins now
        moved.append(name)
    return tuple(moved)


def _is_expected(expected: Expectation, current: str | None) -> bool:
    if expected.absent:
        return current is None
    return current is not None and ("*" in expected.digests or current in expected.digests)


def _check_references(
    tx: Transaction, repository: Repository, package: Package, required: tuple[Reference, ...], now_ms: int
) -> None:
    missing: list[str] = []
    for each in dict.fromkeys(required):
        size = None
        if each.kind == "manifest":
            size = manifests.manifest_size(tx, package.id, each.digest)
            if size is not None:
                manifests.touch_manifest(tx, package.id, each.digest, now_ms)
        if size is None:
            # the build cache's indexes list layers as if they were manifests (buildkit before 0.8)
            size = _promised_size(tx, repository, package, each.digest, now_ms)
        if size is None:
            missing.append(each.digest)
        elif size != each.size:
            raise Invalid(f"{each.digest} has {size} bytes, and its descriptor says {each.size}")
    if missing:
        raise ReferencesMissing(tuple(dict.fromkeys(missing)))


def _promised_size(tx: Transaction, repository: Repository, package: Package, digest: str, now_ms: int) -> int | None:
    found = package_blobs.find_in_package(tx, repository.storage_id, package.id, digest)
    if found is None or not promise_blob(tx, repository, package.id, found.sha256, None, now_ms):
        return None
    return found.size


def _ensure(tx: Transaction, repository: Repository, image: str, now_ms: int) -> Package:
    package, new = packages.ensure_package(tx, repository.id, key=image, name=image, serial=0, now_ms=now_ms)
    if new:
        repositories.add_usage(tx, repository.id, 0, 1)
        repositories.names_changed(tx, repository.id)
    return package


def _completed(tx: Transaction, package: Package, sha256: str, now_ms: int) -> None:
    """Tell of a blob that came after the manifest that refers to it, which sparse images allow."""
    if package_blobs.is_needed(tx, package.id, sha256):
        signatures.mark_unverified(tx, package.id)
        append_package_event(tx, package, "completed", {"digest": f"sha256:{sha256}"}, SYSTEM, now_ms)


def _get(tx: Transaction, repository: Repository, image: str) -> Package:
    package = packages.find_package(tx, repository.id, image)
    if package is None:
        raise NotFound("image", image)
    return package


def _remove_if_empty(tx: Transaction, repository: Repository, package: Package) -> None:
    if manifests.has_manifests(tx, package.id) or package_blobs.has_links(tx, package.id):
        return
    packages.remove_package(tx, package.id)
    repositories.add_usage(tx, repository.id, 0, -1)
    repositories.names_changed(tx, repository.id)
