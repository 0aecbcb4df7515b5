"""
The documents beside an image's OCI layout, with data that the OCI format has no fields for: one document with the
image's tags, and one for each manifest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from pkgrepo.errors import Invalid
from pkgrepo.model.structs import from_attributes
from pkgrepo.repositories.layout.line_documents import Form
from pkgrepo.storage.catalog.images.contents import StoredManifest, StoredTag

IMAGE = ".image.json"
MANIFESTS = ".manifests"


class BlobEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A blob of a manifest; ``digest`` is the one in the manifest."""

    digest: str
    sha256: str
    size: int
    locator: str


class ManifestSidecar(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    A manifest of an image, with its blobs; ``references`` are (digest, kind).

    ``waiting`` says that it is in quarantine until it is signed.
    """

    image: str
    digest: str
    sha256: str
    media_type: str
    size: int
    locator: str
    subject: str | None
    artifact_type: str | None
    annotations: Mapping[str, str]
    evidence: bool
    references: Sequence[tuple[str, str]]
    blobs: list[BlobEntry]
    created_at: datetime
    waiting: bool = False

    @classmethod
    def of(cls, image: str, manifest: StoredManifest) -> ManifestSidecar:
        """Make the sidecar of a manifest."""
        blobs = [from_attributes(BlobEntry, each) for each in manifest.blobs]
        return from_attributes(cls, manifest, image=image, blobs=blobs)


class TagEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tag: ``digest`` is the manifest that readers get, if any; ``waiting`` the one that is not signed yet."""

    name: str
    digest: str | None
    updated_at: datetime
    actor: str
    waiting: str | None = None

    @classmethod
    def of(cls, tag: StoredTag) -> TagEntry:
        """Make the entry of a tag."""
        return from_attributes(cls, tag, digest=None if tag.manifest is None else tag.manifest.digest)


class ImageSidecar(msgspec.Struct, frozen=True, kw_only=True):
    """An image with its tags; ``key`` is its name."""

    key: str
    tags: list[TagEntry]


def tags_form(key: str) -> Form[str]:
    """Return the form of the sidecar of an image."""
    return Form(b'{"key":%b,"tags":[' % msgspec.json.encode(key), _name)


def tag_entry(tag: StoredTag) -> bytes:
    """Return a tag as a line of the sidecar of its image."""
    return msgspec.json.encode(TagEntry.of(tag))


def _name(entry: bytes) -> str:
    try:
        return _DECODER.decode(entry).name
    except msgspec.MsgspecError as error:
        raise Invalid(f"{IMAGE}: {error}") from error


_DECODER = msgspec.json.Decoder(TagEntry)
