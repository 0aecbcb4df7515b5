"""
The documents beside an image's OCI layout, with what that format has no room for: one of its tags, and one of each
manifest.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.repositories.layout.line_documents import Form
from pkgrepo.storage.catalog.images.contents import StoredManifest, StoredTag

IMAGE = ".image.json"
MANIFESTS = ".manifests"


class BlobEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A blob by the name by which a manifest refers to it."""

    digest: str
    sha256: str
    size: int
    locator: str


class ManifestSidecar(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    A manifest of an image, with the blobs of its own; ``references`` are digest and kind.

    ``waiting`` says that it waits for its signature.
    """

    image: str
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
    blobs: list[BlobEntry]
    created_at: datetime
    waiting: bool = False

    @classmethod
    def of(cls, image: str, manifest: StoredManifest) -> ManifestSidecar:
        """The sidecar of a manifest."""
        return cls(
            image=image,
            digest=manifest.digest,
            sha256=manifest.sha256,
            media_type=manifest.media_type,
            size=manifest.size,
            locator=manifest.locator,
            subject=manifest.subject,
            artifact_type=manifest.artifact_type,
            annotations=dict(manifest.annotations),
            evidence=manifest.evidence,
            references=list(manifest.references),
            blobs=[
                BlobEntry(digest=each.digest, sha256=each.sha256, size=each.size, locator=each.locator)
                for each in manifest.blobs
            ],
            created_at=manifest.created_at,
            waiting=manifest.waiting,
        )


class TagEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tag, and who set it when: what readers get by it, if anything, and what waits for its signature."""

    name: str
    digest: str | None
    updated_at: datetime
    actor: str
    waiting: str | None = None

    @classmethod
    def of(cls, tag: StoredTag) -> TagEntry:
        """The entry of a tag."""
        return cls(
            name=tag.name,
            digest=None if tag.manifest is None else tag.manifest.digest,
            updated_at=tag.updated_at,
            actor=tag.actor,
            waiting=tag.waiting,
        )


class ImageSidecar(msgspec.Struct, frozen=True, kw_only=True):
    """An image with its tags; ``key`` is its name."""

    key: str
    tags: list[TagEntry]


def tags_form(key: str) -> Form[str]:
    """How the sidecar of an image is written."""
    return Form(b'{"key":%b,"tags":[' % msgspec.json.encode(key), _name)


def tag_entry(tag: StoredTag) -> bytes:
    """A tag in the sidecar of its image."""
    return msgspec.json.encode(TagEntry.of(tag))


def _name(entry: bytes) -> str:
    try:
        return _DECODER.decode(entry).name
    except msgspec.MsgspecError as error:
        raise Invalid(f"{IMAGE}: {error}") from error


_DECODER = msgspec.json.Decoder(TagEntry)
