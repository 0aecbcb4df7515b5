"""Container images: takes in manifests with all they refer to, what refers to them, and their tags."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Final, Protocol

from attrs import Factory, define, evolve, frozen

from pkgrepo.errors import Conflict, Invalid, NotFound
from pkgrepo.formats.container.configuration import policy
from pkgrepo.formats.container.documents import ManifestDocument, parse_in_thread
from pkgrepo.formats.container.evidence import HEAD, begins_document
from pkgrepo.formats.container.names import is_image_name, is_tag, parse_digest
from pkgrepo.gateway.imported.engine import Order, Taken, Tools
from pkgrepo.gateway.imported.items import Place, SourcePackage
from pkgrepo.model import BlobInfo
from pkgrepo.repositories.format import Images
from pkgrepo.repositories.images.blobs import link_blob
from pkgrepo.repositories.images.manifests import put_manifest
from pkgrepo.repositories.images.push import Push, Quarantine, Reference
from pkgrepo.repositories.images.quarantine import window_ms
from pkgrepo.storage.catalog.images.linked_blobs import find_linked
from pkgrepo.storage.catalog.images.manifests import find_manifest, find_tagged
from pkgrepo.storage.catalog.imported_downloads import Downloads

MOST_LEVELS: Final = 5  # of indexes in indexes, and of what refers to what refers to an image
ALGORITHMS: Final = ("sha512",)


class ImageStore(Protocol):
    """Where images are, by their names there. What is missing raises ``NotFound``."""

    def names(self) -> AsyncIterator[str]:
        """The names of all images."""

    async def tags(self, name: str) -> Mapping[str, str]:
        """The digest of the manifest of each tag of an image."""

    async def manifest(self, name: str, digest: str) -> tuple[bytes, str]:
        """The bytes of a manifest, and its media type; empty if that is not known."""

    async def referrers(self, name: str, digest: str) -> Sequence[str]:
        """The digests of the manifests whose subject is this one, as far as the store lists them."""

    def blob(self, name: str, digest: str) -> Place:
        """The place of a blob."""


class ImageSource:
    """
    The images of a store. ``renamed`` are pairs of the beginning of names there and of names here; ``names`` are those
    of images that are taken although the store lists none. ``find_pulls`` are those of an image, as far as they are
    known.
    """

    def __init__(
        self,
        store: ImageStore,
        renamed: Mapping[str, str],
        names: Sequence[str] = (),
        find_pulls: Callable[[str], Awaitable[Downloads | None]] | None = None,
    ) -> None:
        self.store = store
        self._find_pulls = find_pulls
        self._renamed = renamed
        self._names = names

    async def names(self) -> AsyncIterator[str]:
        """The names of the images."""
        if self._names:
            for name in dict.fromkeys(self._names):
                yield name
            return
        async for name in self.store.names():
            yield name

    async def package(self, name: str) -> SourcePackage:
        """The tags of an image. :raises Invalid: no image can have its name here"""
        key = self._rename(name)
        if not is_image_name(key):
            raise Invalid("no image can have this name; images are renamed by renamed (--map)")
        listed = await self.store.tags(name)
        tags = {tag: digest for tag, digest in listed.items() if is_tag(tag)}
        said = "\n".join(f"{tag} {tags[tag]}" for tag in sorted(tags))
        return SourcePackage(
            name=name,
            key=key,
            fingerprint=hashlib.sha256(said.encode()).hexdigest(),
            items=(),
            tags=tags,
            left_out=[(tag[:200], "it is no tag") for tag in listed if tag not in tags],
            downloads=None if self._find_pulls is None else await self._find_pulls(name),
        )

    def _rename(self, name: str) -> str:
        for before in sorted(self._renamed, key=len, reverse=True):
            if name.startswith(before):
                return self._renamed[before] + name.removeprefix(before)
        return name


@frozen(kw_only=True)
class ImageTaker:
    """Takes in what is missing of images; ``images`` are the rules of the format."""

    tools: Tools
    order: Order
    store: ImageStore
    images: Images

    async def __call__(self, source_package: SourcePackage, taken: Taken) -> None:
        """Take in an image: each tag with its manifest, and all that belongs to it."""
        run = _Run(self, source_package, taken)
        for tag, digest in source_package.tags.items():
            try:
                await run.take_tag(tag, digest)
            except Exception as error:  # noqa: BLE001 - one bad tag does not stop the others
                taken.refuse(tag, error)


@define
class _Run:
    """
    One image that is being taken in.

    ``done`` are the digests of its manifests that are complete here; ``documents`` tells of blobs, by digest, whether
    they are documents and no archives.
    """

    taker: ImageTaker
    source_package: SourcePackage
    taken: Taken
    done: set[str] = Factory(set)
    documents: dict[str, bool] = Factory(dict)

    async def take_tag(self, tag: str, digest: str) -> None:
        """Take in the manifest of a tag. :raises Exception: it cannot be taken in"""
        repository, key = self.taker.order.repository, self.source_package.key
        if not digest:
            raise Invalid("the source lists the tag, and has no manifest for it")
        found = await self.taker.tools.catalog.look(find_tagged, repository.storage_id, repository.id, key, tag)
        if found is not None and found.digest == digest:
            self.taken.count_present(1)
            if not self.taker.order.dry_run:
                await self._take_referrers(digest, 0)
            return
        if not self.taken.may_move(tag, None if found is None else found.digest):
            raise Conflict("the tag stands for another manifest here since it was moved here")
        if self.taker.order.dry_run:
            self.taken.count(1, 0)
            return
        await self._take_manifest(digest, (tag,), 0)

    async def _take_manifest(self, digest: str, tags: tuple[str, ...], level: int) -> None:
        """Take in a manifest, first what it refers to, then what refers to it. :raises NotFound: it is not there"""
        if (digest in self.done and not tags) or level > MOST_LEVELS:
            return
        store, tools, repository = self.taker.store, self.taker.tools, self.taker.order.repository
        data, media_type = await store.manifest(self.source_package.name, digest)
        if not parse_digest(digest).matches(data):
            raise Invalid(f"the manifest is not the content of {digest}")
        document = await parse_in_thread(tools.pools, data, media_type, other_types=True)
        where = (repository.storage_id, repository.id, self.source_package.key, digest)
        stored = await tools.catalog.look(find_manifest, *where)
        if stored is None:
            for each in {each.digest: each for each in document.required}.values():
                await self._take_reference(each, level)
        await self._put(digest, data, document, tags)
        self.done.add(digest)
        if stored is None:
            self.taken.count(1, len(data))
        await self._take_referrers(digest, level)

    async def _take_reference(self, reference: Reference, level: int) -> None:
        """Take in what a manifest refers to: another manifest, or a blob."""
        if reference.kind == "manifest":
            try:
                await self._take_manifest(reference.digest, (), level + 1)
            except NotFound:  # indexes of build caches list layers as if they were manifests
                if policy(self.taker.order.repository).allow_sparse:
                    return
            else:
                return
        await self._take_blob(reference)

    async def _take_blob(self, reference: Reference) -> None:
        tools, order, key = self.taker.tools, self.taker.order, self.source_package.key
        repository = order.repository
        where = (repository.storage_id, repository.id, key, reference.digest)
        found = await tools.catalog.look(find_linked, *where)
        if found is not None and found.locator:
            return
        digest = parse_digest(reference.digest)
        place = self.taker.store.blob(self.source_package.name, reference.digest)
        async with tools.content.stage(repository, key, user_id=order.actor.user_id) as staged:
            blob: BlobInfo = await staged.receive(
                place.chunks(),
                limit=tools.max_upload,
                expect_size=reference.size,
                algorithms=ALGORITHMS if digest.algorithm == "sha512" else (),
                expected={digest.algorithm: digest.hex},
            )
            head: bytes = await staged.inspect(tools.pools.disk, blob, _head, commit=False)
            self.documents[reference.digest] = begins_document(head)
            await tools.content.change_with_blobs(
                link_blob, repository, staged, [blob], key, blob, reference.digest, None, self._client, order.actor
            )
        self.taken.report.size += blob.size

    async def _put(self, digest: str, data: bytes, document: ManifestDocument, tags: tuple[str, ...]) -> None:
        tools, order, images = self.taker.tools, self.taker.order, self.taker.images
        repository = order.repository
        layers = [each.digest for each in document.required if each.kind == "layer"]
        evidence = document.evidence and all(self.documents.get(each, False) for each in layers)
        keys = images.signature_keys(repository)
        quarantine = None
        if keys is not None and not evidence:
            quarantine = Quarantine(tuple(keys), tools.clock.now_ms() + window_ms(repository))
        async with tools.content.stage(repository, self.source_package.key, user_id=order.actor.user_id) as staged:
            blob = await staged.store(data)
            push = Push(
                manifest=evolve(document, evidence=evidence).to_record(digest, blob.sha256, len(data)),
                blob=blob,
                required=() if policy(repository).allow_sparse else document.required,
                tags=tags,
                immutable=images.immutable_tags(repository, tags),
                quarantine=quarantine,
                client=self._client,
            )
            await tools.content.change_with_blobs(
                put_manifest, repository, staged, [blob], self.source_package.key, push, order.actor
            )

    async def _take_referrers(self, digest: str, level: int) -> None:
        """Take in what refers to a manifest, such as signatures; what fails is left out, and the manifest stays."""
        if level > MOST_LEVELS:
            return
        for each in await self.taker.store.referrers(self.source_package.name, digest):
            try:
                await self._take_manifest(each, (), level + 1)
            except Exception as error:  # noqa: BLE001 - see above
                self.taken.refuse(f"referrer {each}", error)

    @property
    def _client(self) -> str:
        """The holder of the leases of blobs whose manifest is still to come."""
        return f"import {hashlib.sha256(self.taker.order.place.encode()).hexdigest()[:32]}"


def _head(content: int | bytes) -> bytes:
    if isinstance(content, bytes):
        return content[:HEAD]
    return os.pread(content, HEAD, 0)
