"""The document beside an image's OCI layout, with what that format has no room for."""

from __future__ import annotations

from datetime import datetime

import msgspec

from pkgrepo.storage.catalog.image_contents import ImageContents

IMAGE = ".image.json"


class ManifestEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest; ``references`` are digest and kind."""

    digest: str
    sha256: str
    media_type: str
    size: int
    locator: str
    subject: str | None
    artifact_type: str | None
    annotations: dict[str, str]
    evidence: bool
    references: list[tuple[str, str]]
    created_at: datetime


class BlobEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A blob by the name by which a manifest refers to it."""

    digest: str
    sha256: str
    size: int
    locator: str


class TagEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A tag, and who set it when."""

    name: str
    digest: str
    updated_at: datetime
    actor: str


class ImageSidecar(msgspec.Struct, frozen=True, kw_only=True):
    """An image with everything in it; ``key`` is its name."""

    key: str
    manifests: list[ManifestEntry]
    blobs: list[BlobEntry]
    tags: list[TagEntry]

    @classmethod
    def of(cls, image: ImageContents) -> ImageSidecar:
        """The sidecar of an image."""
        return cls(
            key=image.package.key,
            manifests=[
                ManifestEntry(
                    digest=each.digest,
                    sha256=each.sha256,
                    media_type=each.media_type,
                    size=each.size,
                    locator=each.locator,
                    subject=each.subject,
                    artifact_type=each.artifact_type,
                    annotations=dict(each.annotations),
                    evidence=each.evidence,
                    references=list(each.references),
                    created_at=each.created_at,
                )
                for each in image.manifests
            ],
            blobs=[
                BlobEntry(digest=each.digest, sha256=each.sha256, size=each.size, locator=each.locator)
                for each in image.blobs
            ],
            tags=[
                TagEntry(name=each.name, digest=each.digest, updated_at=each.updated_at, actor=each.actor)
                for each in image.tags
            ],
        )
