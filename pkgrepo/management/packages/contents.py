"""Records of what archives and images contain, and of what differs between two versions."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pkgrepo.management.api.fields import MediaType, PackageName, Size
from pkgrepo.management.api.schema import Record
from pkgrepo.model.structs import meaning

from .schema import OriginRecord


class TreeEntry(Record):
    """
    A folder or a file of a repository; kind is folder or file.

    For folders the optional fields are null.
    """

    name: Annotated[str, meaning("The name of the folder or file.")]
    path: Annotated[str, meaning("The path below the address of the repository.")]
    kind: Annotated[str, meaning("folder or file.")]
    size: Annotated[int | None, meaning("The size in bytes; null for folders.")] = None
    digest: Annotated[str | None, meaning("The digest; null for folders.")] = None
    media_type: Annotated[str | None, meaning("The media type; null for folders.")] = None
    modified_at: Annotated[datetime | None, meaning("When it was last changed; null for folders.")] = None
    url: Annotated[str | None, meaning("The address of the file; null for folders.")] = None
    upstream: Annotated[
        OriginRecord | None, meaning("Where a cached file came from, without its address; null unless it is cached.")
    ] = None


class ArchiveEntryRecord(Record):
    """A file, folder or link in an archive (kind); link is the target of a link."""

    name: Annotated[str, meaning("The path in the archive.")]
    kind: Annotated[str, meaning("file, folder or link.")]
    size: Size
    link: Annotated[str, meaning("The target of a link.")]
    sha256: Annotated[str, meaning("The sha256 in hex; empty unless digests were asked for, and for more than 32 MiB.")]


class ArchiveContents(Record):
    """What is inside an archive; complete is false if there is more than is listed."""

    path: Annotated[str, meaning("The path of the archive in the repository.")]
    size: Size
    complete: Annotated[bool, meaning("Whether all that is in it is listed.")]
    entries: Annotated[list[ArchiveEntryRecord], meaning("What is in it.")]


class EntryChange(Record):
    """A file in the archives of two versions; a size in bytes is null where there is no such file."""

    name: Annotated[str, meaning("The path in the archives.")]
    change: Annotated[Literal["added", "removed", "changed"], meaning("added, changed or removed.")]
    size_before: Annotated[int | None, meaning("The size in bytes before; null where there is no such file.")]
    size_after: Annotated[int | None, meaning("The size in bytes after; null where there is no such file.")]


class TextChange(Record):
    """A text of two versions by its name: a dependency as it is written, or a script; null where there is none."""

    name: Annotated[str, meaning("The name of the dependency or script.")]
    before: Annotated[str | None, meaning("The text before; null where there is none.")]
    after: Annotated[str | None, meaning("The text after; null where there is none.")]


class VersionDifference(Record):
    """
    What differs between two versions of a package.

    archives are the paths of the two files that were compared, the smallest pair of the same kind; null if the versions
    have no such pair, and files is empty then. In files the text of the version in the first segment of a name is "*".
    file_count counts them all, and complete is false if there may be more: an archive has more than was read, or files
    of more than 32 MiB have the same size, which is all that is compared of them.
    """

    package: PackageName
    before: Annotated[str, meaning("The version that the other one is compared with.")]
    after: Annotated[str, meaning("The other version.")]
    archives: Annotated[
        list[str] | None,
        meaning("The paths of the two files that were compared; null if there is no pair of the same kind."),
    ]
    complete: Annotated[bool, meaning("Whether all files could be compared.")]
    files: Annotated[
        list[EntryChange], meaning('The files that differ; "*" stands for the version in the first segment of a name.')
    ]
    file_count: Annotated[int, meaning("How many files differ.")]
    requirements: Annotated[list[TextChange], meaning("The dependencies that differ.")]
    scripts: Annotated[
        list[TextChange], meaning("The scripts that differ, which npm runs when a package is installed.")
    ]
    license_before: Annotated[str, meaning("The license of the earlier version.")]
    license_after: Annotated[str, meaning("The license of the later version.")]
    size_before: Annotated[int, meaning("The size of the earlier version, in bytes.")]
    size_after: Annotated[int, meaning("The size of the later version, in bytes.")]


class ImageStep(Record):
    """A command of the image's history, and the layer that it made, if it made one; size is compressed, in bytes."""

    command: Annotated[str, meaning("The command, as the history has it.")]
    digest: Annotated[str | None, meaning("The digest of the layer that it made; null without one.")] = None
    size: Annotated[int | None, meaning("The size of the layer, compressed, in bytes; null without one.")] = None
    media_type: Annotated[str | None, meaning("The media type of the layer; null without one.")] = None


class PlatformRecord(Record):
    """An image for one platform."""

    digest: Annotated[str, meaning("The digest of its manifest.")]
    os: Annotated[str, meaning("The operating system.")]
    architecture: Annotated[str, meaning("The architecture of the processor.")]
    variant: Annotated[str, meaning("The variant of the architecture; empty without any.")]
    created: Annotated[str, meaning("When it was built, as the image says.")]
    size: Annotated[int, meaning("The size of its layers, compressed, in bytes.")]
    stored: Annotated[bool, meaning("Whether the server has its manifest.")]
    layers: Annotated[int, meaning("How many layers it has.")]
    steps: Annotated[list[ImageStep], meaning("The commands of its history.")]
    labels: Annotated[dict[str, str], meaning("The labels of the image.")]
    entrypoint: Annotated[list[str], meaning("The program that a container runs.")]
    command: Annotated[list[str], meaning("The arguments of that program.")]
    user: Annotated[str, meaning("The user as whom a container runs.")]
    folder: Annotated[str, meaning("The folder in which a container starts.")]
    ports: Annotated[list[str], meaning("The ports that it names.")]
    contents: Annotated[
        list[str] | None,
        meaning(
            "What it has inside, as rules ask for it: root_user, setuid; locked alone if that could not be read, null "
            "until a rule has asked for it."
        ),
    ] = None
    programs: Annotated[
        list[str] | None,
        meaning("The paths of programs with setuid or setgid, at most 50; null until a rule has asked for them."),
    ] = None


class ReferrerRecord(Record):
    """A manifest about an image; kind is signature, attestation, SBOM or its type."""

    digest: Annotated[str, meaning("The digest of the manifest about the image.")]
    kind: Annotated[str, meaning("signature, attestation, SBOM or the type of the manifest.")]
    says: Annotated[str, meaning("The type of what an attestation states.")]
    artifact_type: Annotated[str, meaning("The artifact type of the manifest.")]
    media_type: MediaType
    size: Size
    tag: Annotated[str, meaning("The tag by which it refers to the image; empty if it names it as its subject.")]
    annotations: Annotated[dict[str, str], meaning("The annotations of the manifest.")]
    pushed_at: Annotated[datetime, meaning("When it was pushed.")]


class ImageRecord(Record):
    """What an image is made of, and what refers to it."""

    digest: Annotated[str, meaning("The digest of its manifest or index.")]
    media_type: Annotated[str, meaning("The media type of its manifest or index.")]
    platforms: Annotated[list[PlatformRecord], meaning("The images for single platforms.")]
    platform_count: Annotated[int, meaning("How many platforms it has.")]
    attestations: Annotated[list[str], meaning("The digests of the attestations that its index lists, at most 50.")]
    referrers: Annotated[list[ReferrerRecord], meaning("The manifests about it.")]
    signed_by: Annotated[list[str], meaning("The ids of the trusted keys whose signatures were verified.")]


class ComponentRecord(Record):
    """
    A component in a bill of materials; purl is its package URL.

    What the document does not say is empty. checked is false if that there are none means nothing: it has no package
    URL of a format that the server has advisories of, or these are old.
    """

    name: Annotated[str, meaning("The name of the component.")]
    version: Annotated[str, meaning("The version of the component; empty if the document has none.")]
    license: Annotated[str, meaning("The license, as the package names it.")]
    kind: Annotated[str, meaning("What it is, such as library.")]
    purl: Annotated[str, meaning("The package URL; empty if the document has none.")]
    vulnerabilities: Annotated[
        list[str], meaning("The ids of known vulnerabilities of this version, the worst first.")
    ] = []
    severity: Annotated[str | None, meaning("The severity of the worst of them; null if not known.")] = None
    checked: Annotated[bool, meaning("Whether no vulnerabilities means that there are none.")] = False


class StatementRecord(Record):
    """A document in a manifest about an image: a bill of materials, an attestation, a signature."""

    digest: Annotated[str, meaning("The digest of the document.")]
    media_type: MediaType
    size: Size
    kind: Annotated[str, meaning("CycloneDX, SPDX, the predicate type of an attestation, JSON, or the media type.")]
    subjects: Annotated[list[str], meaning("What the document is about.")]
    made_by: Annotated[str, meaning("The programs that made it.")]
    components: Annotated[list[ComponentRecord], meaning("The components of a bill of materials, at most 5,000.")]
    component_count: Annotated[int, meaning("How many components it has.")]
    text: Annotated[str, meaning("Another JSON document, indented, of at most 64 KiB.")]
    problem: Annotated[str, meaning("Why the document is not shown; empty if it is.")]
