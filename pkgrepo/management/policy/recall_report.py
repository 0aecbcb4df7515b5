"""
The recalls that the server has opened by itself, and the report of one: what was served, when, to whom, and from where.

The Cyber Resilience Act (Regulation (EU) 2024/2847, article 14) asks manufacturers for an early warning within 24 hours
after they know of something that is exploited. The report has what this server knows for that.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Final, Self

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.gateway.responses.long_bodies import deliver_pieces
from pkgrepo.http.responses import NO_STORE, Content, Response
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import RECALLERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import FirstFetch, LastFetch, NextCursor, PackageName, RepositoryPath
from pkgrepo.management.api.pages import cursor_of
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.schema import LARGEST, Record
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.model.advisories import Advisory
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.clock import format_time, from_ms
from pkgrepo.repositories.fetched import FetchedNames
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.storage.catalog import advisories, download_log, recalls
from pkgrepo.storage.catalog.download_log import BY_ITEM, ItemFetches, Question, Totals
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.packages.events import publications
from pkgrepo.storage.catalog.recalls import Recall
from pkgrepo.storage.catalog.usage_counts import DAY_MS

from .recall import CSV, FetchCount, cell

MOST_SHOWN: Final = 1000  # files in a report
MOST_VERSIONS: Final = 20_000  # of a package that are compared
MOST_EVENTS: Final = 10_000  # of a package that are looked through
MOST_ROWS: Final = 100_000  # of fetches in a document
PAGE: Final = 1000  # of them that are read together
MARKDOWN: Final = b"text/markdown"
FORMATS: Final = ("json", "markdown", "csv")
_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>()#+!|~&])")

table = Table("recall")


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


@table.command(
    "recalls",
    columns="ADVISORY: id | PACKAGE: package | REPOSITORIES: places:places | CLIENTS: clients:number | "
    "SINCE: opened_at:ago | CLEARED: cleared_at:ago | TITLE: title",
    nothing="no known malware is, or was, here",
    about="List the recalls that the server has opened by itself.",
    more="pkgrepo recall report ID has all that is known of one.",
)
@table.get("/recalls", RECALLERS, "List the recalls that the server has opened by itself")
async def list_recalls(call: Call) -> list[RecallRecord]:
    """Known malware that is, or was, in repositories, the newest first: at most 500."""
    found = await call.catalog.scan(recalls.read_recalls)
    return [RecallRecord.of(each) for each in reversed(found.recalls)]


@table.get(
    "/recall/report",
    RECALLERS,
    "Report who fetched what an advisory names",
    query=(
        Parameter("id", "The id of an advisory, such as MAL-2026-1."),
        Parameter("format", "json, by default; markdown or csv for all rows as a document.", choices=FORMATS),
        Parameter("limit", "Maximum number of items on the page, 1 to 1000; 50 by default.", "integer"),
        Parameter("cursor", "The value of next of the previous page; absent for the first page."),
    ),
    audit="recall.read",
)
async def report(call: Call) -> RecallReport | Response:
    """
    Of all versions that it affects, stored or fetched, in all repositories; also after it was withdrawn.

    What was fetched before since is not known. Downloads of the last ten seconds at other processes may be missing.
    """
    id_, form = call.query("id").strip(), call.query("format") or FORMATS[0]
    if not id_:
        raise Invalid("name an advisory", "id")
    if form not in FORMATS:
        raise Invalid(f"format is one of {', '.join(FORMATS)}", "format")
    call.object = id_[:200]
    await call.shared.downloads.flush()
    subject = await _find(call, id_)
    page = call.page_request
    after = page.after_position(BY_ITEM)
    limit = page.limit if form == FORMATS[0] else PAGE
    found = await call.catalog.scan(download_log.list_item_fetches, subject.question, after, limit + 1)
    made = await _report(call, subject, found[:limit], len(found) > limit)
    if form == FORMATS[0]:
        return made
    rows = partial(_rows, call, subject.question, found[:limit])
    write, kind = (_markdown, MARKDOWN) if form == "markdown" else (_table, CSV)
    ending = b"md" if form == "markdown" else b"csv"
    return Response(
        body=Content(LARGEST, deliver=partial(deliver_pieces, partial(write, made, rows)), endless=True),
        content_type=kind + b"; charset=utf-8",
        headers=(*NO_STORE, (b"Content-Disposition", b'attachment; filename="recall-report.' + ending + b'"')),
    )


@frozen
class _Subject:
    """What a report is about: records by format, recalls, and the question to the log."""

    id: str
    advisories: Sequence[Advisory]
    recalls: Sequence[Recall]
    affected: Mapping[tuple[str, str], Sequence[str]]  # versions by format and key of a package
    question: Question


async def _find(call: Call, id_: str) -> _Subject:
    """:raises NotFound: there is no such record, and was none that a recall was opened for"""
    found: list[Advisory] = await call.catalog.scan(advisories.find_record, id_)
    opened = [each for each in (await call.catalog.scan(recalls.read_recalls)).recalls if each.advisory == id_]
    if not found and not opened:
        raise NotFound("advisory", id_)
    formats = {each.ecosystem.name: each for each in call.services.formats.values() if each.ecosystem is not None}
    affected: dict[tuple[str, str], list[str]] = {}
    places = {(each.ecosystem, each.package) for each in found} | {
        (each.ecosystem, each.package_key) for each in opened
    }
    names = FetchedNames(call.services.formats, call.registry.all())
    for ecosystem, key in sorted(places):
        format_ = formats.get(ecosystem)
        if format_ is None:
            continue
        ids = [each.id for each in names.every if each.format == format_.name]
        every = await call.catalog.scan(_versions_of, format_.name, key, ids)
        about = [each for each in found if (each.ecosystem, each.package) == (ecosystem, key)]
        said = {one for each in opened if each.package_key == key for place in each.places for one in place.versions}
        affected[format_.name, key] = [
            each for each in every if _affects(format_, about, each) or (not about and each in said)
        ]
    questions = [
        Question(
            format=format_name,
            packages=[key],
            versions=names.versions([format_name], some),
            copies=names.copies(names.every, [key], some),
        )
        for (format_name, key), some in affected.items()
    ]
    question = Question(packages=[], copies=questions)
    return _Subject(id_, found, opened, affected, question)


def _affects(format_: StoredFormat, about: Iterable[Advisory], version: str) -> bool:
    assert format_.versions is not None, "it has an ecosystem"
    try:
        sort = format_.versions.sort(version)
    except Invalid:
        return any(each.affects_all or each.is_malware for each in about)
    return any(each.affects(sort) for each in about)


def _versions_of(r: Reader, format_name: str, key: str, ids: Sequence[int]) -> list[str]:
    """The versions of a package that are stored in some repositories, or were fetched."""
    found = dict.fromkeys(download_log.fetched_versions(r, format_name, key, MOST_VERSIONS))
    for each in ids:
        package = packages.find_package(r, each, key)
        if package is not None:
            found |= dict.fromkeys(one.text for one in versions.list_versions(r, package.id))
    return list(found)


async def _report(call: Call, subject: _Subject, found: Sequence[ItemFetches], more: bool) -> RecallReport:
    stored, totals = await call.catalog.scan(_facts, call.registry.all(), subject)
    first = next(iter(subject.advisories), None)
    opened = min((each.opened_ms for each in subject.recalls), default=None)
    cleared = max((each.cleared_ms for each in subject.recalls), default=0)
    blocked = first is not None and any(each.is_malware for each in subject.advisories) and subject.recalls
    blocks = call.registry.policy.malware is not None
    downloads = call.shared.downloads
    since_ms = await call.catalog.look(download_log.logged_since)
    kept_ms = (call.now_ms // DAY_MS - downloads.log_days + 1) * DAY_MS
    times = [each for each in stored if each.first_at is not None and each.last_at is not None]
    return RecallReport(
        id=subject.id,
        title=subject.recalls[-1].title if first is None else first.title,
        url="" if first is None else first.url,
        aliases=[] if first is None else list(first.aliases),
        packages=[f"{each.ecosystem}/{each.package} {each.affected}".strip() for each in subject.advisories]
        or [f"{each.ecosystem}/{each.package}" for each in subject.recalls],
        advised_at="" if first is None else first.published,
        changed_at="" if first is None else first.modified,
        known=first is not None,
        opened_at=None if opened is None else from_ms(opened),
        blocked_at=from_ms(opened) if blocked and blocks and opened is not None else None,
        cleared_at=from_ms(cleared) if cleared and first is None else None,
        files=stored,
        first_at=min((each.first_at for each in times if each.first_at is not None), default=None),
        last_at=max((each.last_at for each in times if each.last_at is not None), default=None),
        clients=totals.clients,
        count=totals.count,
        anonymous=totals.anonymous,
        items=[_fetch(each) for each in found],
        next=cursor_of(BY_ITEM.place(found[-1])) if more else None,
        since=None if since_ms is None or not downloads.log_days else from_ms(max(since_ms, kept_ms)),
        problem="" if downloads.log_days else "this server logs no downloads (downloads.log_days is 0)",
        made_at=from_ms(call.now_ms),
    )


def _fetch(each: ItemFetches) -> ReportedFetch:
    return ReportedFetch(
        repository=each.repository,
        package=each.package,
        version=each.version,
        path=each.path,
        user=each.username,
        token=each.token,
        pipeline=bool(each.pipeline),
        address=each.address or None,
        first_at=from_ms(each.first_ms),
        last_at=from_ms(each.last_ms),
        count=each.count,
    )


def _facts(r: Reader, repositories: Sequence[Repository], subject: _Subject) -> tuple[list[ReportedFile], Totals]:
    """The files, stored and fetched, and the sums of fetches."""
    found: dict[tuple[str, str], ReportedFile] = {}
    for (format_name, key), some in subject.affected.items():
        for repository in repositories:
            if repository.format == format_name and len(found) < MOST_SHOWN:
                found |= {(each.repository, each.path): each for each in _stored(r, repository, key, {*some})}
    for item in download_log.list_fetched(r, subject.question, MOST_SHOWN):
        place = item.repository, item.path
        if place not in found and len(found) >= MOST_SHOWN:
            continue
        before = found.get(place) or _unstored(item)
        found[place] = msgspec.structs.replace(
            before, first_at=from_ms(item.first_ms), last_at=from_ms(item.last_ms), count=item.count
        )
    return list(found.values())[:MOST_SHOWN], download_log.count_fetches(r, subject.question)


def _unstored(item: download_log.FetchedItem) -> ReportedFile:
    return ReportedFile(
        repository=item.repository,
        package=item.package,
        version=item.version,
        path=item.path,
        digest=None if item.sha256 is None else f"sha256:{item.sha256.hex()}",
        stored=False,
        upstream=None,
        published_at=None,
        here_since=None,
        by=None,
        token=None,
        first_at=None,
        last_at=None,
        count=0,
    )


def _stored(r: Reader, repository: Repository, key: str, affected: set[str]) -> list[ReportedFile]:
    """The files of affected versions of a package (a key) of a repository."""
    package = packages.find_package(r, repository.id, key)
    if package is None:
        return []
    events = publications(r, package.id, MOST_EVENTS)
    cached = repository.type is RepositoryType.PROXY
    found: list[ReportedFile] = []
    for version in versions.list_versions(r, package.id):
        if version.text not in affected:
            continue
        actor, token, _ = events.get(version.key, (version.publisher, "", 0))
        for file in files.files_of_version(r, version.id):
            if file.role is not None or len(found) >= MOST_SHOWN:
                continue
            origin = file.origin
            upstream_ms = None if origin is None or origin.first_seen else origin.published_ms
            published = version.published_at if not cached else None if upstream_ms is None else from_ms(upstream_ms)
            found.append(
                ReportedFile(
                    repository=repository.path,
                    package=package.name,
                    version=version.text,
                    path=file.path,
                    digest=f"sha256:{file.sha256}",
                    stored=True,
                    upstream=None if origin is None else origin.url,
                    published_at=published,
                    here_since=file.created_at,
                    by=None if cached else actor or None,
                    token=None if cached else token or None,
                    first_at=None,
                    last_at=None,
                    count=0,
                )
            )
    return found


async def _rows(call: Call, question: Question, found: Sequence[ItemFetches]) -> AsyncIterator[ReportedFetch]:
    """All fetches, page by page, of which the first is ``found``; at most ``MOST_ROWS``."""
    count = 0
    while found:
        for each in found:
            yield _fetch(each)
        count += len(found)
        if len(found) < PAGE or count >= MOST_ROWS:
            return
        found = await call.catalog.scan(download_log.list_item_fetches, question, BY_ITEM.position(found[-1]), PAGE)


Rows = Callable[[], AsyncIterator[ReportedFetch]]
_COLUMNS: Final = (
    *("row", "repository", "package", "version", "path", "digest", "upstream", "published_at", "here_since", "by"),
    *("token", "pipeline", "address", "first_at", "last_at", "count"),
)


async def _table(made: RecallReport, rows: Rows) -> AsyncIterator[bytes]:
    """The report as CSV (RFC 4180): a row for each file, and one for each client that fetched it."""
    yield _csv(_COLUMNS)
    for each in made.files:
        origin = (each.digest, each.upstream, _time(each.published_at), _time(each.here_since), each.by, each.token, "")
        place = ("file", each.repository, each.package, each.version, each.path)
        yield _csv((*place, *origin, "", _time(each.first_at), _time(each.last_at), str(each.count)))
    async for one in rows():
        pipeline = "yes" if one.pipeline else "no"
        place = ("fetch", one.repository, one.package, one.version, one.path)
        who = (one.user or "anonymous", one.token, pipeline, one.address)
        yield _csv((*place, "", "", "", "", *who, _time(one.first_at), _time(one.last_at), str(one.count)))


def _csv(values: Iterable[str | None]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow([cell(each) for each in values])
    return text.getvalue().encode()


async def _markdown(made: RecallReport, rows: Rows) -> AsyncIterator[bytes]:
    """The report as Markdown."""
    facts = {
        "Advisory": f"{made.id}{f' ({chr(44).join(made.aliases)})' if made.aliases else ''}",
        "Title": made.title,
        "Page": made.url,
        "Packages": "; ".join(made.packages),
        "Advisory published": made.advised_at or "not known",
        "Recall opened": _time(made.opened_at) or "no",
        "Refused since": _time(made.blocked_at) or "not by the server itself",
        "Advisory withdrawn": _time(made.cleared_at) or "no",
        "First fetched": _time(made.first_at) or "not known to be",
        "Last fetched": _time(made.last_at) or "not known to be",
        "Fetches": f"{made.count}, of which {made.anonymous} by anonymous clients",
        "Users and tokens": str(made.clients),
        "Log of downloads since": _time(made.since) or "nothing is logged",
        "Report made": _time(made.made_at),
    }
    yield f"# Recall report: {_plain(made.id)}\n\n".encode()
    yield "".join(f"- {name}: {_plain(value)}\n" for name, value in facts.items()).encode()
    if made.problem:
        yield f"\n**{_plain(made.problem)}**\n".encode()
    yield b"\n## What\n\n" + _line(
        [
            "Repository",
            "Version",
            "File",
            "Digest",
            "From",
            "Published",
            "Here since",
            "By",
            "First",
            "Last fetched",
            "Fetches",
        ]
    )
    yield _line(["---"] * 11)
    for each in made.files:
        by = " with ".join(filter(None, (each.by, each.token)))
        place = [
            each.repository,
            f"{each.package} {each.version}",
            each.path,
            each.digest,
            each.upstream or "published here",
        ]
        times = [_time(one) for one in (each.published_at, each.here_since)]
        fetched = [_time(each.first_at), _time(each.last_at), str(each.count)]
        yield _line([*map(_plain, (*place, *times, by, *fetched))])
    yield b"\n## Who\n\n" + _line(
        ["User", "Token or pipeline", "Network", "Repository", "File", "First", "Last", "Fetches"]
    )
    yield _line(["---"] * 8)
    async for one in rows():
        token = f"{one.token} (pipeline)" if one.pipeline else one.token
        who = [one.user or "anonymous", token, one.address, one.repository, one.path]
        yield _line([*map(_plain, (*who, _time(one.first_at), _time(one.last_at), str(one.count)))])
    yield b"\nCopies that other caches and people hand on are not known, and nothing of the time before the log.\n"


def _line(cells: Sequence[str]) -> bytes:
    return f"| {' | '.join(cells)} |\n".encode()


def _plain(text: str | None) -> str:
    """A text in one line that Markdown shows as it is."""
    return _SPECIAL.sub(r"\\\1", " ".join((text or "").split()))


def _time(at: datetime | None) -> str:
    return "" if at is None else format_time(at)
