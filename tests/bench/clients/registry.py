"""
A client of registries that pushes as docker does: each blob by POST, one chunked PATCH and a PUT that names the digest.

Big blobs go through curl, so that sending them costs the same whoever receives.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urljoin

from attrs import field, frozen

from tests.bench.packages.images import OCI_IMAGE, Blob, Image

from .load import STEP_LIMIT_S, Connection, Target, patch_file


@frozen
class Registry:
    """A registry as one image's client sees it: ``name`` is the image, ``headers`` say who asks."""

    base_url: str
    name: str
    headers: Mapping[str, str] = field(factory=dict, repr=False)

    def manifest_url(self, reference: str) -> str:
        """Where a manifest is, by its tag or digest."""
        return f"{self.base_url}/v2/{self.name}/manifests/{reference}"

    def blob_url(self, digest: str) -> str:
        """Where a blob is."""
        return f"{self.base_url}/v2/{self.name}/blobs/{digest}"

    def tags_url(self, query: str = "") -> str:
        """Where the list of tags is."""
        return f"{self.base_url}/v2/{self.name}/tags/list{query}"


class Pusher:
    """One client with a connection that it keeps. Every method raises L{LoadFailed} when it is refused."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._connection = Connection(registry.base_url, STEP_LIMIT_S)

    def push_image(self, image: Image, *tags: str) -> None:
        """An image of small layers, under these tags."""
        for layer in image.layers:
            self.push_bytes(layer.read(), layer.digest)
        self.push_bytes(image.config, image.config_digest)
        for tag in tags:
            self.push_manifest(image, tag)

    def push_bytes(self, data: bytes, digest: str) -> None:
        """A small blob, with the PUT that ends its upload."""
        self._ask("PUT", _with(self._begin(), f"digest={digest}"), data)

    def push_blob(self, blob: Blob, path: Path) -> None:
        """A big blob, from its file."""
        patched = patch_file(path, Target(self._begin(), self._registry.headers))
        self._ask("PUT", _with(urljoin(self._registry.base_url, patched), f"digest={blob.digest}"), b"")

    def push_manifest(self, image: Image, reference: str, query: str = "") -> None:
        """A manifest, under a tag or its digest."""
        url = self._registry.manifest_url(reference) + query
        self._ask("PUT", url, image.manifest, {"Content-Type": OCI_IMAGE})

    def close(self) -> None:
        """Leave."""
        self._connection.close()

    def _begin(self) -> str:
        location = self._ask("POST", self._registry.blob_url("uploads/"), b"")
        return urljoin(self._registry.base_url, location)

    def _ask(self, method: str, url: str, body: bytes, headers: Mapping[str, str] | None = None) -> str:
        """The ``Location`` of the answer, or nothing."""
        sent = {**self._registry.headers, "Content-Length": str(len(body)), **(headers or {})}
        return self._connection.ask(method, url, sent, body).accepted(f"{method} {url}").headers.get("location", "")


def _with(url: str, query: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}{query}"
