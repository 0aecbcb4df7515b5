"""
Images on the disk, in the OCI image layout (a folder, or a tar archive of one), and the registry API that sends and
receives them (OCI distribution specification 1.1).

``podman save --format oci-archive``, ``skopeo copy ... oci:DIR`` and ``docker save`` (25 and later) write such layouts.
"""

from __future__ import annotations

import hashlib
import re
import tarfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, Protocol
from urllib.parse import quote, urlsplit

import msgspec
from attrs import frozen

from pkgrepo.client.api import Client
from pkgrepo.client.http import Failed, IteratorBody
from pkgrepo.client.transfers.files import PIECE, Draft, Received, sha256_of, shown
from pkgrepo.errors import Invalid

MANIFEST_TYPES: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_NAME: Final = re.compile(r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*")
_REFERENCE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}|sha256:[0-9a-f]{64}")

REF_NAME: Final = "org.opencontainers.image.ref.name"
LAYOUT: Final = b'{"imageLayoutVersion": "1.0.0"}'
MOST_DOCUMENT: Final = 4 * 1024 * 1024  # bytes of an index or manifest
MOST_MANIFESTS: Final = 1000


@frozen
class Descriptor:
    """A blob or manifest that a manifest refers to; ``size`` in bytes."""

    media_type: str
    digest: str
    size: int


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


def read_descriptor(value: Any) -> Descriptor:
    """A descriptor of a manifest or an index. :raises Invalid: it is damaged, or its digest is no sha256"""
    try:
        found = Descriptor(str(value["mediaType"]), str(value["digest"]), int(value["size"]))
    except (KeyError, TypeError, ValueError):
        raise Invalid("a manifest has a damaged descriptor") from None
    if not DIGEST.fullmatch(found.digest):
        raise Invalid(f"the digest {found.digest!r} cannot be used; only sha256 can")
    return found


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


class Layout(Protocol):
    """An image layout that is read."""

    def open(self, path: str) -> IO[bytes]:
        """A file in it. :raises Invalid: there is none"""


class _Folder:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, path: str) -> IO[bytes]:
        """Open a file of the folder."""
        try:
            return (self._folder / path).open("rb")
        except FileNotFoundError:
            raise Invalid(f"{self._folder} is no whole image layout: it has no {path}") from None


class _Archive:
    def __init__(self, file: Path, archive: tarfile.TarFile) -> None:
        self._file = file
        self._archive = archive
        self._members = {each.name.removeprefix("./"): each for each in archive if each.isfile()}

    def open(self, path: str) -> IO[bytes]:
        """Open a member of the archive."""
        member = self._members.get(path)
        content = None if member is None else self._archive.extractfile(member)
        if content is None:
            raise Invalid(f"{self._file} is no whole image layout: it has no {path}")
        return content


@contextmanager
def open_layout(path: Path) -> Iterator[Layout]:
    """Read an image layout. :raises Invalid: the folder is no image layout; :raises OSError: it cannot be read"""
    if path.is_dir():
        yield _Folder(path)
        return
    try:
        with tarfile.open(path, "r:") as archive:  # not compressed, so that any file in it can be sought
            yield _Archive(path, archive)
    except tarfile.TarError as error:
        raise Invalid(
            f"{path} is no image layout: {error}; it is a folder, or a tar archive that is not packed"
        ) from None


def find_image(layout: Layout, wanted: str) -> Descriptor:
    """
    The image in a layout that is called ``wanted``, or the only one if ``wanted`` is empty.

    :raises Invalid: there is none, or there are several
    """
    index = _decode(_read(layout, "index.json"))
    manifests = index.get("manifests") if isinstance(index, dict) else None
    if not isinstance(manifests, list) or not manifests:
        raise Invalid("the image layout has no images")
    if wanted:
        manifests = [each for each in manifests if (each.get("annotations") or {}).get(REF_NAME) == wanted]
    if len({str(each.get("digest")) for each in manifests}) != 1:
        raise Invalid(
            f"the image layout has {len(manifests)} images{' called ' + wanted if wanted else ''}; see --source"
        )
    return read_descriptor(manifests[0])


async def push(registry: Registry, layout: Layout, top: Descriptor, image: str, tag: str, reactor: Any) -> Manifest:
    """Push an image with everything that it refers to; what the server has already is not sent again."""
    seen: set[str] = set()

    async def push_one(descriptor: Descriptor, reference: str) -> Manifest:
        body = _read(layout, _blob(descriptor.digest))
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


async def pull(registry: Registry, image: str, reference: str, folder: Path) -> Manifest:
    """
    Write an image with everything that it refers to into a new folder, or one that has a part of it.

    :raises Conflict: the folder has other content; :raises DigestMismatch: a file is not the one that was asked for
    """
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    top = await registry.manifest(image, reference)
    async for manifest in all_manifests(registry, image, top):
        for blob in manifest.blobs():
            await _pull_blob(registry, image, blob, blobs)
        _write(blobs / _hex(manifest.digest), manifest.body)
    entry: dict[str, Any] = {"mediaType": top.media_type, "digest": top.digest, "size": len(top.body)}
    if not reference.startswith("sha256:"):
        entry["annotations"] = {REF_NAME: reference}
    index = {"schemaVersion": 2, "mediaType": MANIFEST_TYPES[1], "manifests": [entry]}
    _write(folder / "oci-layout", LAYOUT)
    _write(folder / "index.json", msgspec.json.encode(index))
    return top


async def all_manifests(registry: Registry, image: str, top: Manifest) -> AsyncIterator[Manifest]:
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


async def _push_blob(registry: Registry, layout: Layout, image: str, blob: Descriptor, reactor: Any) -> None:
    if await registry.has_blob(image, blob.digest):
        return

    def content() -> Iterator[bytes]:
        with layout.open(_blob(blob.digest)) as file:
            while piece := file.read(PIECE):
                yield piece

    label = blob.digest[:19]
    await registry.put_blob(image, blob.digest, IteratorBody(shown(label, blob.size, content()), reactor, blob.size))


async def _pull_blob(registry: Registry, image: str, blob: Descriptor, blobs: Path) -> None:
    target = blobs / _hex(blob.digest)
    if target.exists() and sha256_of(target) == _hex(blob.digest):
        return
    with Draft(target, replace=True) as draft:
        progress = Received(blob.digest[:19], blob.size, draft.write)
        try:
            await registry.fetch_blob(image, blob.digest, progress.write)
        finally:
            progress.end()
        draft.keep(_hex(blob.digest))


def _write(path: Path, data: bytes) -> None:
    with Draft(path, replace=True) as draft:
        draft.write(data)
        draft.keep(None)


def _read(layout: Layout, path: str) -> bytes:
    with layout.open(path) as file:
        data = file.read(MOST_DOCUMENT + 1)
    if len(data) > MOST_DOCUMENT:
        raise Invalid(f"{path} is longer than {MOST_DOCUMENT} bytes")
    return data


def _decode(data: bytes) -> Any:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Invalid("the index of the image layout is damaged") from None


def _blob(digest: str) -> str:
    return f"blobs/sha256/{_hex(digest)}"


def _hex(digest: str) -> str:
    return digest.partition(":")[2]
