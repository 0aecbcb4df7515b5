"""The bodies and records of packages, versions and files."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Annotated, Any, Self

from msgspec import Meta

from pkgrepo.management.api.schema import Body, Record, Word
from pkgrepo.model import Origin
from pkgrepo.repositories.clock import from_ms
from pkgrepo.storage.catalog.packages.summaries import PackageSummary, VersionSummary
from pkgrepo.storage.catalog.rows import at, at_or_none

Worst = tuple[int, str | None]  # the number of vulnerabilities, and the worst severity


class PackageFlags(Record):
    """Numbers of yanked and of deprecated versions."""

    yanked: int
    deprecated: int


class PackageRecord(Record):
    """
    A package with the totals of its versions and files; size in bytes.

    source is hosted or cached; route and fetched_at are those of the last fetch from an upstream, null without any.
    vulnerabilities is the number of known ones of all its versions, severity the worst of them; null if they are not
    known, see the advisories of a version.
    """

    name: str
    key: str
    latest: str | None
    versions: int
    files: int
    size: int
    downloads: int
    source: str
    route: str | None
    fetched_at: datetime | None
    created_at: datetime
    updated_at: datetime
    flags: PackageFlags
    vulnerabilities: int | None = None
    severity: str | None = None

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
    """
    A package in a search result, with its repository.

    summary and license are what its highest version says, cut after 300 characters.
    """

    repository_id: str
    repository: str
    format: str
    summary: str
    license: str


class Facet(Record):
    """A value by which hits are told apart, and how many have it."""

    value: str
    count: int


class Facets(Record):
    """
    How many of the hits have which values, the most frequent ones first, at most 30 of each.

    hits is their number; complete is false if there are more, since the best 200 are counted. sources are hosted and
    cached. withdrawn are those with yanked or deprecated versions, vulnerable those with known vulnerabilities, which
    severities tells apart by the worst of them; vulnerable is null if nothing is known of any format. unchecked are the
    formats of which nothing is known, or too little to say that a package has none.
    """

    hits: int
    complete: bool
    formats: list[Facet]
    repositories: list[Facet]
    licenses: list[Facet]
    sources: list[Facet]
    withdrawn: int
    vulnerable: int | None
    severities: list[Facet]
    unchecked: list[str]


class Hits(Record):
    """
    The result of a search, best matches first; truncated is true if more than limit packages match.

    facets is null unless they were asked for.
    """

    items: list[PackageHit]
    truncated: bool
    facets: Facets | None = None


class VersionSummaryRecord(Record):
    """
    A version in a list; size in bytes.

    The versions of an image are its tags, and the digests of manifests that no tag and no other manifest refers to;
    digest is that of the manifest, and downloads are its pulls, also those by other tags, the last of them on the day
    pulled_on. statements are the kinds of manifests about it: signature, attestation, SBOM or another type; signed_by
    are the ids of the keys that the repository trusts, and whose signatures the server has verified. platforms is null
    unless the request has platforms. prerelease says whether the format takes the version for one that comes before a
    release. route and fetched_at are those of the last fetch of a file from an upstream. vulnerabilities is the number
    of known ones, severity the worst of them; null if they are not known.
    """

    version: str
    state: str
    reason: str
    published_at: datetime
    publisher: str
    files: int
    size: int
    downloads: int
    digest: str | None = None
    artifact_type: str | None = None
    pulled_on: date | None = None
    statements: list[str] = []
    signed_by: list[str] = []
    platforms: list[str] | None = None
    prerelease: bool = False
    route: str | None = None
    fetched_at: datetime | None = None
    vulnerabilities: int | None = None
    severity: str | None = None

    @classmethod
    def of(cls, summary: VersionSummary, *, prerelease: bool, known: Worst | None) -> Self:
        """The record of a version of anything but an image."""
        count, severity = known or (None, None)
        return cls.from_attributes(
            summary, version=summary.text, prerelease=prerelease, vulnerabilities=count, severity=severity
        )


class ReleaseRecord(Record):
    """A version that was published, or fetched for the first time; of images, a tag."""

    package: str
    version: str
    published_at: datetime
    publisher: str


class OriginRecord(Record):
    """
    Where a cached file came from.

    route is the name of the upstream route. url is null for callers without the action edit. published_at is the time
    that the upstream gives, null if it gives none.
    """

    route: str
    url: str | None
    fetched_at: datetime
    published_at: datetime | None

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
    """
    A file. path is relative to the address of the repository; digests maps algorithms to hex digests.

    upstream is null unless the file is cached.
    """

    name: str
    path: str
    url: str
    size: int
    media_type: str
    digests: dict[str, str]
    uploaded_at: datetime
    upstream: OriginRecord | None = None


class VersionState(Record):
    """The state of a version (live, yanked or deprecated) and its reason."""

    package: str
    version: str
    state: str
    reason: str


class Requirement(Record):
    """
    A package that a version needs; text is the dependency as it is written, kind why it is needed.

    package is its name if the same repository has it, else null.
    """

    name: str
    text: str
    kind: str
    package: str | None = None


class DependentRecord(Record):
    """
    A package that needs another one; text is the dependency as it is written, kind why it is needed.

    latest is its highest version that is neither yanked nor deprecated, which is the one that declares the dependency.
    accepts tells whether the dependency accepts the version of the query; null without one, and where the dependency
    names no range, but a tag or an address.
    """

    name: str
    repository_id: str
    repository: str
    latest: str
    text: str
    kind: str
    accepts: bool | None = None


class PromotedFrom(Record):
    """The repository that a version was copied or moved from, by whom and when."""

    repository: str
    by: str
    at: datetime

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

    published_at: datetime
    publisher: str
    license: str
    keywords: list[str]
    links: dict[str, str]
    dependencies: list[str]
    requirements: list[Requirement]
    maintainers: list[str]
    tags: list[str]
    files: list[FileRecord]
    file_count: int
    size: int
    metadata: dict[str, Any]
    digest: str | None = None
    promoted: PromotedFrom | None = None
    refused: str | None = None


class DayDownloads(Record):
    """The downloads of one day."""

    day: date
    count: int


class VersionDownloads(Record):
    """The downloads of a version, or the pulls of a tag."""

    version: str
    count: int


class DailyDownloads(Record):
    """
    The downloads of a package: in total, and of each day asked for, the oldest first.

    versions are the at most 20 that were downloaded most in the weeks with these days; weeks begin on Thursdays, as
    the epoch did. Tags of one manifest all have its pulls of these days.
    """

    package: str
    total: int
    days: list[DayDownloads]
    versions: list[VersionDownloads]


class RepositoryDownloads(Record):
    """The downloads of a repository on each day asked for, the oldest first."""

    repository: str
    days: list[DayDownloads]


class DeletedVersion(Record):
    """
    What was deleted, or would be with dry_run: paths of files; for images, tags and digests.

    trash is the id of the entry of the trash that has it, null if it cannot be restored.
    """

    deleted: list[str]
    dry_run: bool
    trash: str | None = None


class PathsGiven(Body):
    """What to delete: names of packages, package/version, or paths of files."""

    paths: Annotated[list[Word], Meta(min_length=1, max_length=1000)]


class Rejected(Record):
    """A path that could not be deleted, and the reason."""

    path: str
    reason: str


class DeletedPaths(Record):
    """The paths that were deleted, those that do not exist, and those that could not be deleted."""

    deleted: list[str]
    missing: list[str]
    rejected: list[Rejected]


class Reason(Body):
    """The reason of a yank; clients show it."""

    reason: Annotated[str, Meta(max_length=1000)] = ""


class AttestationRecord(Record):
    """
    What a signature or an attestation says of a file: by is who has signed, says the type of the statement.

    about is the path of that file, path that of the document. verified is false: the server has not checked it.
    """

    kind: str
    path: str
    about: str
    by: str
    says: str
    verified: bool


class Attestations(Record):
    """Who attests the files of a version; complete is false if there are more documents than were read."""

    items: list[AttestationRecord]
    complete: bool
