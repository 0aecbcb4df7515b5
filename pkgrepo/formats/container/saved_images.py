"""
Images in the archive that a form sends: what ``docker save``, ``podman save``, ``skopeo copy`` and buildx write.

===============  =============================================  ====================================================
layout           entries                                        written by
===============  =============================================  ====================================================
OCI image        ``index.json``, ``blobs/ALGORITHM/HEX``        docker 25 and later, ``skopeo copy ... oci-archive:``,
layout                                                          buildx, ``podman save --format oci-archive``
docker archive   ``manifest.json``, a configuration and layers  docker before 25, ``skopeo copy ... docker-archive:``,
                 as files                                       podman save
===============  =============================================  ====================================================

The archive is unpacked while it arrives: each blob is staged as that of a push is. Once it is whole, the manifests are
stored by the function that stores a client's, so that the same rules refuse them. A docker archive has no manifest:
one is made of its configuration and layers, whose digests must be those that the configuration names.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from attrs import Factory, define, evolve, frozen

from pkgrepo.archives.arriving import ArrivingTar
from pkgrepo.archives.image_layout import BLOB_PATH, INDEX, blob_path, names_of
from pkgrepo.archives.source import Source
from pkgrepo.archives.tar_archive import Member
from pkgrepo.errors import Invalid
from pkgrepo.formats.container.configuration import policy
from pkgrepo.formats.container.documents import (
    MANIFEST_SIZE,
    OCI_IMAGE,
    parse_descriptor,
    parse_in_thread,
)
from pkgrepo.formats.container.manifests.push import Call, Pushed, has_content, references_refusal, store_manifest
from pkgrepo.formats.container.names import is_tag, parse_digest, parse_name, parse_tag
from pkgrepo.formats.container.registry import RegistryContext
from pkgrepo.formats.container.target import Target, client_of
from pkgrepo.gateway.callers.access import actor_of
from pkgrepo.gateway.publishing.uploads import SentFile, Uploaded
from pkgrepo.http.request import Request
from pkgrepo.interfaces import Reader, Transaction
from pkgrepo.model import Action, BlobInfo, Repository, RepositoryType
from pkgrepo.model.admission import Admitted
from pkgrepo.proxy.virtual import publish_target
from pkgrepo.repositories.images.blobs import Stored, link_blob
from pkgrepo.repositories.images.push import ReferencesMissing
from pkgrepo.repositories.publish.staged import Staged
from pkgrepo.storage.catalog.images.manifests import find_tagged
from pkgrepo.untrusted.go_json import Keys, with_keys
from pkgrepo.untrusted.strict_json import ERRORS

MOST_BLOBS: Final = 500  # of one archive; a staged one of up to 64 KiB is in memory
MOST_IMAGES: Final = 50  # of one archive
LISTS: Final = (INDEX, "manifest.json")  # what an archive has
MOST_LEVELS: Final = 4  # of indexes in indexes
_LISTED: Final[Keys] = dict.fromkeys(("Config", "Layers", "RepoTags"))
_ROOTFS: Final[Keys] = {"rootfs": {"diff_ids": None}}
_CONFIG_TYPE: Final = "application/vnd.oci.image.config.v1+json"
_LAYER_TYPE: Final = "application/vnd.oci.image.layer.v1.tar"


@define
class Archive:
    """The blobs of an archive, by path, which are staged; its links; and the lists of its images, by file name."""

    blobs: dict[str, BlobInfo] = Factory(dict)
    links: dict[str, str] = Factory(dict)
    lists: dict[str, Any] = Factory(dict)

    def find(self, path: str) -> BlobInfo | None:
        """The blob at a path, which may be a link to it."""
        path = posixpath.normpath(path)
        return self.blobs.get(self.links.get(path, path))

    def blob(self, digest: str) -> BlobInfo | None:
        """The blob with a digest. :raises DigestInvalid: it is malformed"""
        return self.blobs.get(blob_path(str(parse_digest(digest))))


@frozen
class Image:
    """A manifest to store, its blobs by digest, and the names that the archive gives the image."""

    data: bytes
    media_type: str
    blobs: Mapping[str, BlobInfo]
    names: tuple[str, ...]


async def publish_sent(registry: RegistryContext, addressed: Repository, request: Request, sent: SentFile) -> Uploaded:
    """
    Publish the images in an archive that is the file of a form; see ``pkgrepo.gateway.publishing.uploads``.

    The form says the name of the image; and its tag, unless the archive does.

    :raises Invalid: the archive is damaged, or has no image, or no tag for one
    """
    services, name, tag = registry.services, parse_name(sent.text("image")), sent.text("tag")
    if tag:
        parse_tag(tag)
    if addressed.type is not RepositoryType.HOSTED:
        await services.access.admit(request, Action.READ, addressed, name)
    repository = publish_target(services.registry, addressed)
    identity = await services.access.admit(request, Action.WRITE, repository, name)
    target = Target(repository, name, name, f"/repositories/{addressed.path}/v2", name)
    if repository is not addressed:
        target = evolve(target, virtual=addressed)
    await registry.members.check_new_name(request, target)
    async with services.content.stage(repository, name) as staged:
        archive = await _receive(sent, staged, services.max_upload)
        images = await _images(registry, staged, archive, sent.name)
        tags = [(tag,)] if tag and len(images) == 1 else [_tags(image, images, tag) for image in images]
        identity = await services.access.identify(request)  # again: the file may take hours
        admitted = await services.access.publishing(identity, repository, name, actor_of(request, identity))
        saved = _Saved(registry, Call(request, target, identity, admitted), staged, archive)
        changed, done = False, ""
        for image, names in zip(images, tags, strict=True):
            before = await services.catalog.look(_tagged, repository, name, names)
            digest = await saved.publish(image, names)
            changed |= any(each != digest for each in before)
            done = done or names[0]
    return Uploaded(name, done, changed)


async def _receive(sent: SentFile, staged: Staged, limit: int) -> Archive:
    """Unpack an archive while it arrives. :raises Invalid: it is damaged, or has too many blobs"""
    tar, archive = ArrivingTar(sent.chunks(), sent.name), Archive()
    async for member in tar.members():
        path = posixpath.normpath(member.name)
        blob = BLOB_PATH.fullmatch(path)
        if member.link:
            folder = posixpath.dirname(path) if member.is_symbolic else ""
            archive.links[path] = posixpath.normpath(posixpath.join(folder, member.link))
        elif path in LISTS:
            archive.lists[path] = _parse(await tar.read(MANIFEST_SIZE), path)
        elif blob is not None or _is_content(member, path):
            if len(archive.blobs) >= MOST_BLOBS:
                raise Invalid(f"{sent.name} has more than {MOST_BLOBS} blobs", "content")
            algorithms = () if blob is None or blob[1] == "sha256" else (blob[1],)
            archive.blobs[path] = await staged.receive(
                tar.content(),
                limit=limit,
                algorithms=algorithms,
                expected=None if blob is None else {blob[1]: blob[2]},
            )
    return archive


def _is_content(member: Member, path: str) -> bool:
    """Whether a file is a layer or a configuration in a docker archive."""
    return member.is_file and (path.endswith(".tar") or (path.endswith(".json") and "/" not in path))


def _parse(data: bytes, what: str) -> Any:
    try:
        return json.loads(data.decode("utf-8"))
    except ERRORS:
        raise Invalid(f"{what} of the archive is not JSON", "content") from None


async def _images(registry: RegistryContext, staged: Staged, archive: Archive, filename: str) -> list[Image]:
    """The images of an archive. :raises Invalid: it has none, or what lists them is malformed"""
    index, listed = (archive.lists.get(each) for each in LISTS)
    if index is not None:
        images = await _of_layout(registry, staged, archive, index)
    elif listed is not None:
        if not isinstance(listed, list):
            raise Invalid("manifest.json of the archive is a list", "content")
        images = [await _of_docker(registry, staged, archive, each) for each in listed[: MOST_IMAGES + 1]]
    else:
        raise Invalid(f"{filename} has neither index.json nor manifest.json: it is no archive of an image", "content")
    if not images or len(images) > MOST_IMAGES:
        raise Invalid(f"{filename} has no images, or more than {MOST_IMAGES}", "content")
    return images


async def _of_layout(registry: RegistryContext, staged: Staged, archive: Archive, index: Any) -> list[Image]:
    found = index.get("manifests") if isinstance(index, dict) else None
    if not isinstance(found, list):
        raise Invalid("index.json of the archive has no list of manifests", "content")
    images: dict[str, Image] = {}
    for each in found[: MOST_IMAGES + 1]:
        digest = parse_descriptor("manifest", each)[0].digest
        names = names_of(each.get("annotations"))
        blob = archive.blob(digest)
        if blob is None:
            raise Invalid(f"the archive lacks the manifest {digest} that its index.json lists", "content")
        known = images.get(digest)
        if known is not None:
            images[digest] = evolve(known, names=(*known.names, *names))
            continue
        images[digest] = Image(await _read(registry, staged, blob), each["mediaType"], {}, names)
    return list(images.values())


async def _of_docker(registry: RegistryContext, staged: Staged, archive: Archive, listed: Any) -> Image:
    """An image of a docker archive with the manifest that is made for it."""
    if not isinstance(listed, dict):
        raise Invalid("manifest.json of the archive lists objects", "content")
    listed = with_keys(listed, _LISTED)
    paths, names = listed.get("Layers") or [], listed.get("RepoTags") or []
    if not all(isinstance(each, list) and all(isinstance(one, str) for one in each) for each in (paths, names)):
        raise Invalid("Layers and RepoTags in manifest.json of the archive are lists of texts", "content")
    config = _find(archive, listed.get("Config"))
    layers = [_find(archive, path) for path in paths]
    document = with_keys(_parse(await _read(registry, staged, config), "the configuration in the archive"), _ROOTFS)
    rootfs = document.get("rootfs") if isinstance(document, dict) else None
    said = rootfs.get("diff_ids") if isinstance(rootfs, dict) else None
    kinds = [_LAYER_TYPE + ("+gzip" if await _is_gzip(registry, staged, each) else "") for each in layers]
    known = [f"sha256:{each.sha256}" for each in layers]
    if not isinstance(said, list) or len(said) != len(layers):
        raise Invalid("the configuration in the archive names other layers than manifest.json", "content")
    for kind, digest, expected in zip(kinds, known, said, strict=True):
        if kind == _LAYER_TYPE and digest != expected:
            raise Invalid(f"a layer of the archive is {digest}, and its configuration says {expected}", "content")
    value = {
        "schemaVersion": 2,
        "mediaType": OCI_IMAGE,
        "config": _describe(config, _CONFIG_TYPE),
        "layers": [_describe(each, kind) for each, kind in zip(layers, kinds, strict=True)],
    }
    blobs = {f"sha256:{each.sha256}": each for each in (config, *layers)}
    return Image(json.dumps(value).encode(), OCI_IMAGE, blobs, tuple(names))


def _find(archive: Archive, path: Any) -> BlobInfo:
    found = archive.find(path) if isinstance(path, str) else None
    if found is None:
        raise Invalid(f"the archive lacks {str(path)[:200]!r}, which its manifest.json names", "content")
    return found


def _describe(blob: BlobInfo, media_type: str) -> dict[str, Any]:
    return {"mediaType": media_type, "digest": f"sha256:{blob.sha256}", "size": blob.size}


def _tags(image: Image, images: Sequence[Image], tag: str) -> tuple[str, ...]:
    """The tags that the archive gives an image. :raises Invalid: there are none, or several images for one tag"""
    if tag:
        raise Invalid(f"the archive has {len(images)} images: leave the tag empty, and each gets its own", "tag")
    called = {name.rpartition(":")[0].rpartition("/")[2] for each in images for name in each.names if ":" in name}
    if len(called) > 1:
        raise Invalid(f"the archive has images of several names: {', '.join(sorted(called))[:200]}", "image")
    found = tuple(dict.fromkeys(each for name in image.names if is_tag(each := name.rpartition(":")[2])))
    if not found:
        raise Invalid("the archive does not say the tag of the image: fill it in", "tag")
    return found


async def _read(registry: RegistryContext, staged: Staged, blob: BlobInfo) -> bytes:
    """A staged blob in memory. :raises Invalid: it is too large for a manifest or a configuration"""
    if blob.size > MANIFEST_SIZE:
        raise Invalid(f"a manifest or configuration in the archive has more than {MANIFEST_SIZE} bytes", "content")
    look = partial(_head, count=blob.size)
    return await staged.inspect(registry.services.pools.cpu, blob, look, commit=False)


async def _is_gzip(registry: RegistryContext, staged: Staged, blob: BlobInfo) -> bool:
    look = partial(_head, count=min(2, blob.size))
    return await staged.inspect(registry.services.pools.cpu, blob, look, commit=False) == b"\x1f\x8b"


def _head(content: int | bytes, count: int) -> bytes:
    return Source(content, "the archive").read(0, count)


@define
class _Saved:
    """Stores the manifests of an archive, those of an index first; ``linked`` are the blobs that the image has got."""

    registry: RegistryContext
    call: Call
    staged: Staged
    archive: Archive
    linked: set[str] = Factory(set)

    async def publish(self, image: Image, tags: tuple[str, ...], level: int = 0) -> str:
        """Store an image with what it refers to, under its digest and tags; the digest that got the tags."""
        services, target = self.registry.services, self.call.target
        rules = policy(target.repository)
        document = await parse_in_thread(
            services.pools, image.data, image.media_type.lower(), other_types=rules.other_media_types
        )
        blobs, children, missing = dict(image.blobs), [], []
        for each in document.required:
            found = self.archive.blob(each.digest)
            if found is not None and each.kind == "manifest" and level < MOST_LEVELS:
                children.append(each.digest)
            elif found is not None:
                blobs[each.digest] = found
            elif each.digest not in blobs and not await services.catalog.look(has_content, target, each.digest):
                missing.append(each.digest)
        programs = [each for each in children if _is_program(image, each)]
        if missing and len(programs) == 1 and tags:
            # docker saves the index of an image of which it has one platform, and pushes that platform alone
            self.call.request.notes += ("the archive has one of the platforms of its index: the tag is for that one",)
            return await self.publish(await self._child(image, programs[0]), tags, level + 1)
        if (
            missing and target.virtual is None and not rules.allow_sparse
        ):  # a virtual repository may have the rest in another member
            raise references_refusal(ReferencesMissing(tuple(missing)))
        for digest in children:
            await self.publish(await self._child(image, digest), (), level + 1)
        await self._link(blobs)
        return await store_manifest(self.registry, self.call, Pushed(image.data, document, None, tags))

    async def _child(self, index: Image, digest: str) -> Image:
        found = _descriptor(index, digest)
        blob = self.archive.blob(digest)
        assert blob is not None  # it is one of those that the archive has
        return Image(await _read(self.registry, self.staged, blob), found["mediaType"], {}, ())

    async def _link(self, blobs: Mapping[str, BlobInfo]) -> None:
        """Add blobs to the image, as pushes of them do."""
        found = [(digest, blob) for digest, blob in blobs.items() if digest not in self.linked]
        if found:
            target, client = self.call.target, client_of(self.call.request)
            await self.registry.services.content.change_with_blobs(
                link_blobs,
                target.repository,
                self.staged,
                [blob for _, blob in found],
                target.image,
                found,
                client,
                self.call.admitted,
            )
            self.linked |= blobs.keys()


def _descriptor(index: Image, digest: str) -> dict[str, Any]:
    """The descriptor of a manifest in an index that was parsed."""
    return next(each for each in json.loads(index.data)["manifests"] if each["digest"] == digest)


def _is_program(index: Image, digest: str) -> bool:
    """Whether a manifest in an index is for a platform, and no attestation, as buildkit marks them."""
    platform = _descriptor(index, digest).get("platform")
    return not isinstance(platform, dict) or platform.get("os") != "unknown"


def link_blobs(
    tx: Transaction,
    repository: Repository,
    image: str,
    found: Iterable[tuple[str, BlobInfo]],
    client: str,
    actor: Admitted,
    now_ms: int,
) -> Stored:
    """Add received blobs, each with its digest, to an image; see L{link_blob}."""
    surplus: list[str] = []
    for digest, blob in found:
        surplus += link_blob(tx, repository, image, blob, digest, None, client, actor, now_ms).surplus
    return Stored(tuple(surplus))


def _tagged(r: Reader, repository: Repository, image: str, tags: Sequence[str]) -> list[str | None]:
    """The digests that tags point to; None for one that does not exist."""
    found = [find_tagged(r, repository.storage_id, repository.id, image, each) for each in tags]
    return [None if each is None else each.digest for each in found]
