"""Records of what archives and images contain, and of what differs between two versions."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pkgrepo.management.api.schema import Record

from .schema import OriginRecord


class TreeEntry(Record):
    """
    A folder or a file of a repository; kind is folder or file. For folders the optional fields are null.

    upstream is null unless it is a cached file, and has no url.
    """

    name: str
    path: str
    kind: str
    size: int | None = None
    digest: str | None = None
    media_type: str | None = None
    modified_at: datetime | None = None
    url: str | None = None
    upstream: OriginRecord | None = None


class ArchiveEntryRecord(Record):
    """
    A file, folder or link in an archive (kind); link is the target of a link.

    sha256 is empty unless digests were asked for, and for files of more than 32 MiB.
    """

    name: str
    kind: str
    size: int
    link: str
    sha256: str


class ArchiveContents(Record):
    """What is inside an archive; complete is false if there is more than is listed."""

    path: str
    size: int
    complete: bool
    entries: list[ArchiveEntryRecord]


class EntryChange(Record):
    """A file in the archives of two versions; a size in bytes is null where there is no such file."""

    name: str
    change: Literal["added", "removed", "changed"]
    size_before: int | None
    size_after: int | None


class TextChange(Record):
    """A text of two versions by its name: a dependency as it is written, or a script; null where there is none."""

    name: str
    before: str | None
    after: str | None


class VersionDifference(Record):
    """
    What differs between two versions of a package.

    archives are the paths of the two files that were compared, the smallest pair of the same kind; null if the versions
    have no such pair, and files is empty then. In files the text of the version in the first segment of a name is "*".
    file_count counts them all, and complete is false if there may be more: an archive has more than was read, or files
    of more than 32 MiB have the same size, which is all that is compared of them. scripts are those that npm runs when
    a package is installed.
    """

    package: str
    before: str
    after: str
    archives: list[str] | None
    complete: bool
    files: list[EntryChange]
    file_count: int
    requirements: list[TextChange]
    scripts: list[TextChange]
    license_before: str
    license_after: str
    size_before: int
    size_after: int


class ImageStep(Record):
    """A command of the image's history, and the layer that it made, if it made one; size is compressed, in bytes."""

    command: str
    digest: str | None = None
    size: int | None = None
    media_type: str | None = None


class PlatformRecord(Record):
    """
    An image for one platform. size is that of its layers, compressed.

    stored is false if the server does not have its manifest, as of platforms of a proxied image that were not pulled.
    """

    digest: str
    os: str
    architecture: str
    variant: str
    created: str
    size: int
    stored: bool
    layers: int
    steps: list[ImageStep]
    labels: dict[str, str]
    entrypoint: list[str]
    command: list[str]
    user: str
    folder: str
    ports: list[str]


class ReferrerRecord(Record):
    """
    A manifest about an image; kind is signature, attestation, SBOM or its type.

    tag is the one by which it refers to the image, says the type of what an attestation states.
    """

    digest: str
    kind: str
    says: str
    artifact_type: str
    media_type: str
    size: int
    tag: str
    annotations: dict[str, str]
    pushed_at: datetime


class ImageRecord(Record):
    """
    What an image is made of, and what refers to it.

    attestations are the digests of those that its index lists (BuildKit), at most 50.
    """

    digest: str
    media_type: str
    platforms: list[PlatformRecord]
    platform_count: int
    attestations: list[str]
    referrers: list[ReferrerRecord]
    signed_by: list[str]


class ComponentRecord(Record):
    """
    A component in a bill of materials; purl is its package URL. What the document does not say is empty.

    vulnerabilities are the ids of known ones of this version, the worst first, and severity is that of the worst.
    checked is false if that there are none means nothing: it has no package URL of a format that the server has
    advisories of, or these are old.
    """

    name: str
    version: str
    license: str
    kind: str
    purl: str
    vulnerabilities: list[str] = []
    severity: str | None = None
    checked: bool = False


class StatementRecord(Record):
    """
    A document in a manifest about an image: a bill of materials, an attestation, a signature.

    kind says what it is: CycloneDX, SPDX, the predicate type of an attestation, JSON, or the media type. components
    are those of a bill of materials, at most 5,000; component_count is their number. text is another JSON document,
    indented, of at most 64 KiB. problem says why a document is not shown, and is empty if it is.
    """

    digest: str
    media_type: str
    size: int
    kind: str
    subjects: list[str]
    made_by: str
    components: list[ComponentRecord]
    component_count: int
    text: str
    problem: str
