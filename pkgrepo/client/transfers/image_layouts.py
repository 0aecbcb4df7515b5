"""
Images between a server and image layouts, by the registry API (OCI distribution specification 1.1).

An image is written into a folder, a twin or a bundle by the same steps, see L{LayoutTarget}.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import quote, urlsplit

import msgspec
from attrs import frozen

from pkgrepo.archives.image_layout import (
    INDEX,
    INDEX_TYPE,
    LAYOUT_CONTENT,
    LAYOUT_FILE,
    Descriptor,
    Open,
    blob_path,
    read_descriptor,
    read_document,
    render_index,
)
from pkgrepo.client.api import Client
from pkgrepo.client.http import Failed, IteratorBody
from pkgrepo.client.transfers.files import PIECE, Draft, Received, sha256_of, shown
from pkgrepo.errors import Invalid

MANIFEST_TYPES: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    INDEX_TYPE,
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_NAME: Final = re.compile(r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*")
_REFERENCE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}|sha256:[0-9a-f]{64}")
MOST_MANIFESTS: Final = 1000

Fetch = Callable[[Callable[[bytes], None]], Awaitable[None]]


@frozen
class Manifest:
    """A manifest or index as its bytes."""

    media_type: str
    body: bytes

    @property
    def digest(self) -> str:
        """The digest of the bytes."""
        return f"sha256:{hashlib.sha256(self.body).hexdigest()}"

    def children(self) -> list[Descriptor]:
        """The manifests of an index; none of an image."""
        return self._descriptors("manifests")

    def blobs(self) -> list[Descriptor]:
        """The config and the layers of an image."""
        return [*self._descriptors("config"), *self._descriptors("layers")]

    def _descriptors(self, key: str) -> list[Descriptor]:
        """:raises Invalid: the manifest is damaged"""
        try:
            found = msgspec.json.decode(self.body)[key]
        except KeyError:
            return []
        except (msgspec.DecodeError, TypeError):
            raise Invalid(f"manifest {self.digest} is damaged") from None
        return [read_descriptor(each) for each in (found if isinstance(found, list) else [found])]


class Registry:
    """Images in one repository, which is given as STORAGE/REPOSITORY."""

    def __init__(self, client: Client, repository: str) -> None:
        self._client = client
        self._repository = repository

    async def manifest(self, image: str, reference: str) -> Manifest:
        """The manifest with a tag or digest. :raises Failed: there is none, or it has another digest"""
        headers = {"Accept": ", ".join(MANIFEST_TYPES)}
        reply = await self._client.call("GET", self._path(image, "manifests", reference), headers=headers)
        found = Manifest(reply.headers.get("content-type", ""), reply.body)
        if DIGEST.fullmatch(reference) and found.digest != reference:
            raise Failed(f"the server sent {found.digest} as {reference}")
        return found

    async def put_manifest(self, image: str, reference: str, manifest: Manifest) -> None:
        """Push a manifest under a tag or its digest; what it refers to has been pushed before."""
        path = self._path(image, "manifests", reference)
        await self._client.send("PUT", path, manifest.body, {"Content-Type": manifest.media_type})

    async def has_blob(self, image: str, digest: str) -> bool:
        """Whether the image has this blob."""
        try:
            await self._client.call("HEAD", self._path(image, "blobs", digest))
        except Failed as error:
            if error.status != 404:
                raise
            return False
        return True

    async def put_blob(self, image: str, digest: str, body: IteratorBody) -> None:
        """Push a blob; the server verifies the digest."""
        begun = await self._client.send("POST", self._path(image, "blobs", "uploads") + "/", b"", {})
        parts = urlsplit(begun.headers.get("location", ""))  # the token must not be sent to another server
        if not parts.path.startswith("/v2/"):
            raise Failed("the server did not say where to upload to")
        query = f"{parts.query}&" if parts.query else ""
        path = f"{parts.path}?{query}digest={quote(digest)}"
        await self._client.send("PUT", path, body, {"Content-Type": "application/octet-stream"})

    async def fetch_blob(self, image: str, digest: str, write: Callable[[bytes], None]) -> None:
        """Read a blob in pieces; the caller verifies it."""
        await self._client.fetch(self._path(image, "blobs", digest), write)

    def _path(self, image: str, kind: str, reference: str) -> str:
        if not _NAME.fullmatch(image):
            raise Invalid(f"{image!r} is no name of an image")
        if not _REFERENCE.fullmatch(reference):
            raise Invalid(f"{reference!r} is no tag and no digest")
        return f"/v2/{quote(self._repository)}/{image}/{kind}/{reference}"


async def push(registry: Registry, layout: Open, top: Descriptor, image: str, tag: str, reactor: Any) -> Manifest:
    """Push an image with everything that it refers to; what the server has already is not sent again."""
    seen: set[str] = set()

    async def push_one(descriptor: Descriptor, reference: str) -> Manifest:
        body = read_document(layout, blob_path(descriptor.digest))
        manifest = Manifest(descriptor.media_type, body)
        if manifest.digest != descriptor.digest:
            raise Invalid(f"{descriptor.digest} is damaged")
        if len(seen) > MOST_MANIFESTS:
            raise Invalid("the image has too many manifests")
        for child in manifest.children():
            if child.digest not in seen:
                seen.add(child.digest)
                await push_one(child, child.digest)
        for blob in manifest.blobs():
            if blob.digest not in seen:
                seen.add(blob.digest)
                await _push_blob(registry, layout, image, blob, reactor)
        await registry.put_manifest(image, reference, manifest)
        return manifest

    return await push_one(top, tag)


class LayoutTarget(Protocol):
    """Where an image layout is written to. ``path`` is that of a file in it."""

    async def blob(self, path: str, blob: Descriptor, fetch: Fetch) -> None:
        """Write a blob, which ``fetch`` reads in pieces, unless it is there. :raises PkgrepoError: it cannot be had"""

    async def document(self, path: str, data: bytes, media_type: str) -> None:
        """Write a small file."""


async def write_image(registry: Registry, image: str, reference: str, target: LayoutTarget) -> Descriptor:
    """
    Write the manifests and blobs of an image, by its tag or digest. Returns its entry in the index.

    :raises Failed: the server refuses a part of it
    """
    top = await registry.manifest(image, reference)
    async for manifest in _all_manifests(registry, image, top):
        for blob in manifest.blobs():
            await target.blob(blob_path(blob.digest), blob, partial(registry.fetch_blob, image, blob.digest))
        await target.document(blob_path(manifest.digest), manifest.body, manifest.media_type)
    name = None if reference.startswith("sha256:") else reference
    return Descriptor.named(top.media_type, top.digest, len(top.body), name)


async def write_index(target: LayoutTarget, entries: Iterable[Descriptor]) -> None:
    """Write what makes a layout of the images that were written."""
    await target.document(LAYOUT_FILE, LAYOUT_CONTENT, "application/json")
    await target.document(INDEX, render_index(entries), "application/json")


@frozen
class LayoutFolder:
    """A layout in a folder, a new one or one that has a part of it; see L{LayoutTarget}."""

    root: Path

    async def blob(self, path: str, blob: Descriptor, fetch: Fetch) -> None:
        """Write a blob. :raises DigestMismatch: it is not the one that was asked for"""
        target, sha256 = self.root / path, blob.digest.partition(":")[2]
        if target.exists() and sha256_of(target) == sha256:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        with Draft(target, replace=True) as draft:
            progress = Received(blob.digest[:19], blob.size, draft.write)
            try:
                await fetch(progress.write)
            finally:
                progress.end()
            draft.keep(sha256)

    async def document(self, path: str, data: bytes, media_type: str) -> None:  # noqa: ARG002 - of all targets
        """Write a small file."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        with Draft(target, replace=True) as draft:
            draft.write(data)
            draft.keep(None)


async def _all_manifests(registry: Registry, image: str, top: Manifest) -> AsyncIterator[Manifest]:
    """The manifest of an image, and those that it refers to. :raises Failed: there are too many of them"""
    waiting, seen = [top], {top.digest}
    while waiting:
        manifest = waiting.pop()
        for child in manifest.children():
            if child.digest not in seen:
                seen.add(child.digest)
                if len(seen) > MOST_MANIFESTS:
                    raise Failed("the image has too many manifests")
                waiting.append(await registry.manifest(image, child.digest))
        yield manifest


async def _push_blob(registry: Registry, layout: Open, image: str, blob: Descriptor, reactor: Any) -> None:
    if await registry.has_blob(image, blob.digest):
        return

    def content() -> Iterator[bytes]:
        with layout(blob_path(blob.digest)) as file:
            while piece := file.read(PIECE):
                yield piece

    label = blob.digest[:19]
    await registry.put_blob(image, blob.digest, IteratorBody(shown(label, blob.size, content()), reactor, blob.size))
