"""What is told of the recalls that the server has opened by itself, and of who fetched malware."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Self

from pkgrepo.management.api.fields import FirstFetch, LastFetch, NextCursor, PackageName, RepositoryPath
from pkgrepo.management.api.schema import Record
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.clock import from_ms
from pkgrepo.storage.catalog.recalls import Recall

from .recall import FetchCount


class RecallPlace(Record):
    """A repository that has, or had, versions of the package that are malware."""

    repository: RepositoryPath
    versions: Annotated[list[str], meaning("The versions, at most 20.")]
    count: Annotated[int, meaning("How many versions there are.")]


class RecallRecord(Record):
    """Known malware that is, or was, in repositories: a recall that the server has opened by itself."""

    id: Annotated[str, meaning("The id of the advisory.")]
    title: Annotated[str, meaning("Its title.")]
    ecosystem: Annotated[str, meaning("Where the package is from, such as npm or PyPI.")]
    package: PackageName
    places: Annotated[list[RecallPlace], meaning("The repositories, at most 20.")]
    opened_at: Annotated[datetime, meaning("When it was opened; versions that are blocked are since then.")]
    clients: Annotated[int, meaning("How many pairs of user and token had fetched it then.")]
    anonymous: Annotated[int, meaning("How often anonymous clients had fetched it then.")]
    blocked: Annotated[bool, meaning("Whether the server refuses it by itself.")]
    cleared_at: Annotated[datetime | None, meaning("When the advisory was withdrawn; null for never.")]

    @classmethod
    def of(cls, recall: Recall) -> Self:
        """The record of a recall."""
        return cls(
            id=recall.advisory,
            title=recall.title,
            ecosystem=recall.ecosystem,
            package=recall.package,
            places=[
                RecallPlace(repository=each.repository, versions=list(each.versions), count=each.count)
                for each in recall.places
            ],
            opened_at=from_ms(recall.opened_ms),
            clients=recall.clients,
            anonymous=recall.anonymous,
            blocked=recall.blocked,
            cleared_at=None if recall.is_open else from_ms(recall.cleared_ms),
        )


class ReportedFile(Record):
    """A file that is, or was, served; what is not known is null."""

    repository: RepositoryPath
    package: Annotated[str, meaning("The name of the package.")]
    version: Annotated[str, meaning("The version.")]
    path: Annotated[str, meaning("The path in the repository.")]
    digest: Annotated[str | None, meaning("The digest.")]
    stored: Annotated[bool, meaning("Whether it is stored now.")]
    upstream: Annotated[str | None, meaning("The address at the upstream; null for what was published here.")]
    published_at: Annotated[datetime | None, meaning("When it was published, as the upstream says if it has one.")]
    here_since: Annotated[datetime | None, meaning("When it came here.")]
    by: Annotated[str | None, meaning("Who published it here.")]
    token: Annotated[str | None, meaning("The token or the pipeline with which that was done.")]
    first_at: Annotated[datetime | None, meaning("When it was fetched first.")]
    last_at: Annotated[datetime | None, meaning("When it was fetched last: until then it was served.")]
    count: FetchCount


class ReportedFetch(Record):
    """The fetches of a file by one client from one network."""

    repository: RepositoryPath
    package: Annotated[str, meaning("The name of the package then.")]
    version: Annotated[str, meaning("The version that it had then.")]
    path: Annotated[str, meaning("The path in the repository.")]
    user: Annotated[str | None, meaning("The user; null for anonymous clients.")]
    token: Annotated[str | None, meaning("The token, or the pipeline; null for a password.")]
    pipeline: Annotated[bool, meaning("Whether it was a pipeline: a build.")]
    address: Annotated[str | None, meaning("The network, null unless it was kept (downloads.log_addresses).")]
    first_at: FirstFetch
    last_at: LastFetch
    count: FetchCount


class RecallReport(Record):
    """
    What is known of something that an advisory names: what was served, when, to whom, and from where.

    items are a page of fetches, next is the cursor of the following one.
    """

    id: Annotated[str, meaning("The id of the advisory.")]
    title: Annotated[str, meaning("Its title.")]
    url: Annotated[str, meaning("The address of its page.")]
    aliases: Annotated[list[str], meaning("Its ids in other databases.")]
    packages: Annotated[
        list[str], meaning("The packages that it names, as ECOSYSTEM/NAME, with the affected versions.")
    ]
    advised_at: Annotated[str, meaning("When the advisory was published, as it says itself.")]
    changed_at: Annotated[str, meaning("When it was changed last.")]
    known: Annotated[bool, meaning("Whether it holds; false if it was withdrawn.")]
    opened_at: Annotated[datetime | None, meaning("When this server has opened the recall; null if it did not.")]
    blocked_at: Annotated[datetime | None, meaning("Since when this server refuses it by itself; null if it does not.")]
    cleared_at: Annotated[datetime | None, meaning("When the advisory was withdrawn.")]
    files: Annotated[list[ReportedFile], meaning("The files, at most 1,000.")]
    first_at: Annotated[datetime | None, meaning("When something of it was fetched first.")]
    last_at: Annotated[datetime | None, meaning("When something of it was fetched last.")]
    clients: Annotated[int, meaning("How many pairs of user and token have fetched it.")]
    count: FetchCount
    anonymous: Annotated[int, meaning("How many of the fetches were by anonymous clients.")]
    items: Annotated[list[ReportedFetch], meaning("The fetches of the page.")]
    next: NextCursor
    since: Annotated[datetime | None, meaning("When the log of downloads begins; null if nothing is logged.")]
    problem: Annotated[str, meaning("Why that nobody is shown may mean nothing; else empty.")]
    made_at: Annotated[datetime, meaning("When the report was made.")]
