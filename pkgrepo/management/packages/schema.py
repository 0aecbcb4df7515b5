"""The bodies and records of packages, versions and files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, Self

from msgspec import Meta

from pkgrepo.management.api.fields import (
    CreatedAt,
    Day,
    DownloadCount,
    DryRun,
    FormatName,
    MediaType,
    PackageName,
    RepositoryId,
    RepositoryPath,
    Size,
    UpdatedAt,
    UpstreamRoute,
    VersionName,
)
from pkgrepo.management.api.pages import Behind
from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.model import Origin
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.clock import from_ms
from pkgrepo.storage.catalog.packages.summaries import PackageSummary, VersionSummary
from pkgrepo.storage.catalog.rows import at, at_or_none

PublisherName = Annotated[str, meaning("Who published it.")]

Worst = tuple[int, str | None]  # the number of vulnerabilities, and the worst severity


class PackageFlags(Record):
    """Numbers of yanked and of deprecated versions."""

    yanked: Annotated[int, meaning("How many versions are yanked.")]
    deprecated: Annotated[int, meaning("How many versions are deprecated.")]


class PackageRecord(Record):
    """A package with the totals of its versions and files; size in bytes."""

    name: Annotated[str, meaning("The name of the package.")]
    key: Annotated[str, meaning("The name in the form in which the format compares names.")]
    latest: Annotated[str | None, meaning("The version that clients take for the latest; null if there is none.")]
    versions: Annotated[int, meaning("How many versions there are.")]
    files: Annotated[int, meaning("How many files there are.")]
    size: Size
    downloads: DownloadCount
    source: Annotated[str, meaning("hosted or cached.")]
    route: UpstreamRoute
    fetched_at: Annotated[datetime | None, meaning("When it was last fetched from an upstream.")]
    created_at: CreatedAt
    updated_at: UpdatedAt
    flags: Annotated[PackageFlags, meaning("How many versions are withdrawn.")]
    vulnerabilities: Annotated[int | None, meaning("How many known vulnerabilities there are; null if not known.")] = (
        None
    )
    severity: Annotated[str | None, meaning("The worst severity of the known vulnerabilities; null if not known.")] = (
        None
    )
    member: Annotated[
        str | None, meaning("Of a virtual repository, the path of the member that has it; null in others.")
    ] = None

    measured = frozenset({"downloads"})

    @classmethod
    def of(cls, summary: PackageSummary, /, *, known: Worst | None = None, **more: str) -> Self:
        """The record of a package; ``more`` are fields of a subclass."""
        flags = PackageFlags(yanked=summary.withdrawn, deprecated=summary.deprecated)
        source = "hosted" if summary.route is None else "cached"
        count, severity = known or (None, None)
        return cls.from_attributes(
            summary, source=source, flags=flags, vulnerabilities=count, severity=severity, **more
        )


class PackageHit(PackageRecord, kw_only=True):
    """A package in a search result, with its repository."""

    repository_id: Annotated[str, meaning("The id of its repository.")]
    repository: RepositoryPath
    format: FormatName
    summary: Annotated[str, meaning("What its highest version says about it, cut after 300 characters.")]
    license: Annotated[str, meaning("The license of its highest version, cut after 300 characters.")]


class Facet(Record):
    """A value by which hits are told apart, and how many have it."""

    value: Annotated[str, meaning("The value by which hits are told apart.")]
    count: Annotated[int, meaning("How many hits have it.")]


class Facets(Record):
    """How many of the hits have which values, the most frequent ones first, at most 30 of each."""

    hits: Annotated[int, meaning("How many hits there are.")]
    complete: Annotated[bool, meaning("Whether all hits were counted; the best 200 are.")]
    formats: Annotated[list[Facet], meaning("Hits by format.")]
    repositories: Annotated[list[Facet], meaning("Hits by repository.")]
    licenses: Annotated[list[Facet], meaning("Hits by license.")]
    sources: Annotated[list[Facet], meaning("Hits by hosted and cached.")]
    withdrawn: Annotated[int, meaning("How many have yanked or deprecated versions.")]
    vulnerable: Annotated[
        int | None, meaning("How many have known vulnerabilities; null if nothing is known of any format.")
    ]
    severities: Annotated[list[Facet], meaning("The vulnerable hits by the worst severity.")]
    unchecked: Annotated[list[str], meaning("The formats of which too little is known to say that a package has none.")]


class Hits(Record):
    """The result of a search, best matches first; truncated is true if more than limit packages match."""

    items: Annotated[list[PackageHit], meaning("The packages, best matches first.")]
    truncated: Annotated[bool, meaning("Whether more than limit packages match.")]
    behind: Behind
    facets: Annotated[Facets | None, meaning("How the hits divide; null unless the request has facets.")] = None


class VersionSummaryRecord(Record):
    """
    A version in a list; size in bytes.

    The versions of an image are its tags, and the digests of manifests that no tag and no other manifest refers to;
    digest is that of the manifest, and downloads are its pulls, also those by other tags, the last of them on the day
    pulled_on.
    """

    version: Annotated[
        str, meaning("The version; of an image, a tag, or the digest of a manifest that nothing refers to.")
    ]
    state: Annotated[str, meaning("live, yanked or deprecated.")]
    reason: Annotated[str, meaning("The reason of the state; empty without any.")]
    published_at: Annotated[datetime, meaning("When it was published.")]
    publisher: PublisherName
    files: Annotated[int, meaning("How many files there are.")]
    size: Size
    downloads: Annotated[
        int, meaning("How many complete downloads there were; of images, pulls, also those by other tags.")
    ]
    digest: Annotated[str | None, meaning("The digest of the manifest; null unless it is an image.")] = None
    artifact_type: Annotated[str | None, meaning("The type of what a manifest holds, if it is no image.")] = None
    pulled_on: Annotated[date | None, meaning("The day of the last pull; null for never.")] = None
    statements: Annotated[
        list[str], meaning("The kinds of manifests about it: signature, attestation, SBOM or another type.")
    ] = []
    signed_by: Annotated[list[str], meaning("The ids of the trusted keys whose signatures were verified.")] = []
    platforms: Annotated[
        list[str] | None, meaning("The platforms of the image; null unless the request has platforms.")
    ] = None
    prerelease: Annotated[bool, meaning("Whether the format takes it for one that comes before a release.")] = False
    route: UpstreamRoute = None
    fetched_at: Annotated[datetime | None, meaning("When it was last fetched from an upstream.")] = None
    vulnerabilities: Annotated[int | None, meaning("How many known vulnerabilities there are; null if not known.")] = (
        None
    )
    severity: Annotated[str | None, meaning("The worst severity of the known vulnerabilities; null if not known.")] = (
        None
    )

    @classmethod
    def of(cls, summary: VersionSummary, *, prerelease: bool, known: Worst | None) -> Self:
        """The record of a version of anything but an image."""
        count, severity = known or (None, None)
        return cls.from_attributes(
            summary, version=summary.text, prerelease=prerelease, vulnerabilities=count, severity=severity
        )


class ReleaseRecord(Record):
    """A version that was published, or fetched for the first time; of images, a tag."""

    package: PackageName
    version: Annotated[str, meaning("The version; of images, a tag.")]
    published_at: Annotated[datetime, meaning("When it was published, or fetched for the first time.")]
    publisher: PublisherName


class OriginRecord(Record):
    """Where a cached file came from."""

    route: Annotated[str, meaning("The name of the upstream route.")]
    url: Annotated[str | None, meaning("The address there; null for callers without the action edit.")]
    fetched_at: Annotated[datetime, meaning("When it was fetched.")]
    published_at: Annotated[datetime | None, meaning("The time that the upstream gives; null if it gives none.")]

    @classmethod
    def of(cls, origin: Origin | None, *, shows_url: bool) -> Self | None:
        """The record of the origin of a file, if it has one."""
        if origin is None:
            return None
        return cls(
            route=origin.route,
            url=origin.url if shows_url else None,
            fetched_at=at(origin.fetched_ms),
            published_at=at_or_none(origin.published_ms),
        )


class FileRecord(Record):
    """A file."""

    name: Annotated[str, meaning("The name of the file.")]
    path: Annotated[str, meaning("The path below the address of the repository.")]
    url: Annotated[str, meaning("The address of the file.")]
    size: Size
    media_type: MediaType
    digests: Annotated[dict[str, str], meaning("Digests in hex, by algorithm.")]
    uploaded_at: Annotated[datetime, meaning("When it was uploaded, or fetched.")]
    contents: Annotated[
        list[str] | None,
        meaning(
            "What its bytes have inside, as rules ask for it: install_script, native_build, pth, executable, "
            "native_binary; locked alone if that could not be read, null until a rule has asked for it."
        ),
    ] = None
    unpacked_size: Annotated[
        int | None, meaning("How many bytes it has unpacked; null until a rule has asked for what is inside.")
    ] = None
    licences: Annotated[
        list[str] | None,
        meaning(
            "The licences that its bytes declare, and have the text of; null until a rule has asked for what is inside."
        ),
    ] = None
    unpacked_files: Annotated[
        int | None, meaning("How many files it has inside; null until a rule has asked for what is inside.")
    ] = None
    upstream: Annotated[OriginRecord | None, meaning("Where a cached file came from; null unless it is cached.")] = None


class VersionState(Record):
    """The state of a version (live, yanked or deprecated) and its reason."""

    package: PackageName
    version: VersionName
    state: Annotated[str, meaning("live, yanked or deprecated.")]
    reason: Annotated[str, meaning("The reason of the state.")]


class Requirement(Record):
    """A package that a version needs; text is the dependency as it is written, kind why it is needed."""

    name: Annotated[str, meaning("The name of the package that is needed.")]
    text: Annotated[str, meaning("The dependency as it is written.")]
    kind: Annotated[str, meaning("Why it is needed.")]
    package: Annotated[str | None, meaning("The name of the package if the same repository has it, else null.")] = None


class DependentRecord(Record):
    """
    A package that needs another one; text is the dependency as it is written, kind why it is needed.

    accepts tells whether the dependency accepts the version of the query; null without one, and where the dependency
    names no range, but a tag or an address.
    """

    name: Annotated[str, meaning("The name of the package that needs the other one.")]
    repository_id: RepositoryId
    repository: RepositoryPath
    latest: Annotated[
        str, meaning("Its highest version that is neither yanked nor deprecated, which declares the dependency.")
    ]
    text: Annotated[str, meaning("The dependency as it is written.")]
    kind: Annotated[str, meaning("Why it is needed.")]
    accepts: Annotated[
        bool | None, meaning("Whether the dependency accepts the version of the query; null if that cannot be told.")
    ] = None


class PromotedFrom(Record):
    """The repository that a version was copied or moved from, by whom and when."""

    repository: Annotated[str, meaning("The repository that the version was copied or moved from.")]
    by: Annotated[str, meaning("The user who did it.")]
    at: Annotated[datetime, meaning("When that was done.")]

    @classmethod
    def of(cls, origin: Mapping[str, Any] | None) -> PromotedFrom | None:
        """The record of what the catalog has; None for a version that was published here."""
        if origin is None:
            return None
        return cls(repository=origin["from"], by=origin["by"], at=from_ms(origin["at_ms"]))


class VersionRecord(VersionState):
    """
    A version with its files; metadata contains further fields of the format.

    promoted says where it was copied or moved from; null if it was published here. refused is why clients do not get
    it, if a rule refuses all of its files; null otherwise, and for images.

    requirements are the dependencies by name, also those that are optional. maintainers are people and organisations,
    as the publisher names them.
    """

    published_at: Annotated[datetime, meaning("When it was published.")]
    publisher: PublisherName
    license: Annotated[str, meaning("The license, as the package names it.")]
    keywords: Annotated[list[str], meaning("The keywords, as the package names them.")]
    links: Annotated[dict[str, str], meaning("Addresses that the package names, by what they are.")]
    dependencies: Annotated[list[str], meaning("The dependencies as they are written.")]
    requirements: Annotated[list[Requirement], meaning("The dependencies by name, also those that are optional.")]
    maintainers: Annotated[list[str], meaning("People and organisations, as the publisher names them.")]
    tags: Annotated[list[str], meaning("The tags that point to it.")]
    files: Annotated[list[FileRecord], meaning("The files of the version.")]
    file_count: Annotated[int, meaning("How many files it has.")]
    size: Annotated[int, meaning("The size of its files, in bytes.")]
    metadata: Annotated[dict[str, Any], meaning("Further fields of the format.")]
    digest: Annotated[str | None, meaning("The digest of the manifest; null unless it is an image.")] = None
    promoted: Annotated[
        PromotedFrom | None, meaning("Where it was copied or moved from; null if it was published here.")
    ] = None
    refused: Annotated[
        str | None, meaning("Why clients do not get it, if a rule refuses all of its files; null otherwise.")
    ] = None


class DayDownloads(Record):
    """The downloads of one day."""

    day: Day
    count: Annotated[int, meaning("How many downloads there were.")]


class VersionDownloads(Record):
    """The downloads of a version, or the pulls of a tag."""

    version: VersionName
    count: Annotated[int, meaning("How many downloads there were; of a tag, pulls.")]


class DailyDownloads(Record):
    """
    The downloads of a package: in total, and of each day asked for, the oldest first.

    versions are the at most 20 that were downloaded most in the weeks with these days; weeks begin on Thursdays, as
    the epoch did. Tags of one manifest all have its pulls of these days.
    """

    package: PackageName
    total: Annotated[int, meaning("All downloads, of all days.")]
    days: Annotated[list[DayDownloads], meaning("The downloads of each day asked for, the oldest first.")]
    versions: Annotated[
        list[VersionDownloads],
        meaning("The at most 20 versions that were downloaded most in the weeks with these days."),
    ]


class RepositoryDownloads(Record):
    """The downloads of a repository on each day asked for, the oldest first."""

    repository: RepositoryPath
    days: Annotated[list[DayDownloads], meaning("The downloads of each day asked for, the oldest first.")]


class DeletedVersion(Record):
    """What was deleted, or would be with dry_run: paths of files; for images, tags and digests."""

    deleted: Annotated[list[str], meaning("The paths of the files; of images, tags and digests.")]
    dry_run: DryRun
    trash: Annotated[
        str | None, meaning("The id of the entry of the trash that has it; null if it cannot be restored.")
    ] = None


class PathsGiven(Body):
    """What to delete: names of packages, package/version, or paths of files."""

    paths: Annotated[
        list[Word],
        Meta(min_length=1, max_length=1000),
        meaning("Names of packages, package/version, or paths of files."),
    ]


class Rejected(Record):
    """A path that could not be deleted, and the reason."""

    path: Annotated[str, meaning("The path that could not be deleted.")]
    reason: Annotated[str, meaning("The reason, for people.")]


class DeletedPaths(Record):
    """The paths that were deleted, those that do not exist, and those that could not be deleted."""

    deleted: Annotated[list[str], meaning("The paths that were deleted.")]
    missing: Annotated[list[str], meaning("The paths that do not exist.")]
    rejected: Annotated[list[Rejected], meaning("The paths that could not be deleted.")]


class Reason(Body):
    """The reason of a yank; clients show it."""

    reason: Annotated[str, Meta(max_length=1000), meaning("The reason, which clients show.")] = ""


class AttestationRecord(Record):
    """
    What a signature or an attestation says of a file: by is who has signed, says the type of the statement.

    The provenance of npm and Python files is verified by the trusted root of Sigstore that the server has; why says why
    one is not. Of one that is verified the certificate names issuer, source, workflow, ref and commit.
    """

    kind: Annotated[str, meaning("What the document is.")]
    path: Annotated[str, meaning("The path of the document.")]
    about: Annotated[str, meaning("The path of the file that it is about.")]
    by: Annotated[str, meaning("Who has signed it.")]
    says: Annotated[str, meaning("The type of the statement.")]
    verified: Annotated[bool, meaning("Whether the server has verified it.")]
    why: Annotated[str, meaning("Why it is not verified; empty for what the server does not verify.")] = ""
    issuer: Annotated[str, meaning("Who issued the identity token of the pipeline, if it is verified.")] = ""
    source: Annotated[str, meaning("The address of its source repository, if it is verified.")] = ""
    workflow: Annotated[str, meaning("The address of the pipeline's definition, if it is verified.")] = ""
    ref: Annotated[str, meaning("The branch or tag that it was made of, if it is verified.")] = ""
    commit: Annotated[str, meaning("The commit that it was made of, if it is verified.")] = ""


class Attestations(Record):
    """Who attests the files of a version; complete is false if there are more documents than were read."""

    items: Annotated[list[AttestationRecord], meaning("What is attested.")]
    complete: Annotated[bool, meaning("Whether all documents were read.")]
