"""Synthetic container images of any size, with valid digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cached_property

from attrs import define

from tests.support.images import OCI_CONFIG, OCI_IMAGE, OCI_LAYER, describe, digest_of

from .filler import Content, filler


@define(slots=False)
class Blob(Content):
    """Bytes that a name decides; ``size`` is at least 32."""

    name: str
    size: int

    def chunks(self) -> Iterator[bytes | memoryview]:
        own = hashlib.sha256(self.name.encode()).digest()
        yield own
        yield from filler(self.size - len(own))

    @property
    def filename(self) -> str:
        return f"{self.name}.blob"

    @property
    def digest(self) -> str:
        """The digest as registries write it."""
        return f"sha256:{self.sha256}"


@define(slots=False)
class Image:
    """A manifest of a configuration and these layers."""

    name: str
    layers: tuple[Blob, ...]

    @cached_property
    def config(self) -> bytes:
        """The configuration of an image for one platform."""
        rootfs = {"type": "layers", "diff_ids": [layer.digest for layer in self.layers]}
        value = {"architecture": "amd64", "os": "linux", "config": {"Labels": {"name": self.name}}, "rootfs": rootfs}
        return json.dumps(value).encode()

    @cached_property
    def config_digest(self) -> str:
        """The digest of the configuration."""
        return digest_of(self.config)

    @cached_property
    def manifest(self) -> bytes:
        """The manifest."""
        value = {
            "schemaVersion": 2,
            "mediaType": OCI_IMAGE,
            "config": describe(self.config, OCI_CONFIG),
            "layers": [{"mediaType": OCI_LAYER, "digest": layer.digest, "size": layer.size} for layer in self.layers],
        }
        return json.dumps(value, indent=3).encode()

    @cached_property
    def digest(self) -> str:
        """The digest of the manifest."""
        return digest_of(self.manifest)


def make_image(name: str, layers: int, size: int) -> Image:
    """Return an image with this number of layers of ``size`` bytes each."""
    return Image(name, tuple(Blob(f"{name}-{number}", size) for number in range(layers)))
