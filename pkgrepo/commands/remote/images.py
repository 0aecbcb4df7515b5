"""The registry API of container images: manifests and blobs of one repository (OCI distribution specification 1.1)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote, urlsplit

import msgspec
from attrs import frozen

from pkgrepo.commands.http import Failed, IteratorBody
from pkgrepo.errors import Invalid

from .client import Client

MANIFEST_TYPES: Final = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")
_NAME: Final = re.compile(r"[a-z0-9]+(?:[._/-]+[a-z0-9]+)*")
_REFERENCE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}|sha256:[0-9a-f]{64}")


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
