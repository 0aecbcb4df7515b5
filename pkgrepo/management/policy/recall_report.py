"""
The recalls that the server has opened by itself, and the report of one: what was served, when, to whom, and from where.

The Cyber Resilience Act (Regulation (EU) 2024/2847, article 14) asks manufacturers for an early warning within 24 hours
after they know of something that is exploited. The report has what this server knows for that.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

import msgspec
from attrs import frozen

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.gateway.responses.long_bodies import deliver_pieces
from pkgrepo.http.responses import NO_STORE, Content, Response
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import RECALLERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.pages import cursor_of
from pkgrepo.management.api.route import Parameter, Table
from pkgrepo.management.api.schema import LARGEST
from pkgrepo.model import Repository, RepositoryType
from pkgrepo.model.advisories import Advisory
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.fetched import FetchedNames
from pkgrepo.repositories.format import StoredFormat
from pkgrepo.storage.catalog import advisories, download_log, fetches, recalls
from pkgrepo.storage.catalog.fetches import BY_ITEM, ItemFetches, Question, Totals
from pkgrepo.storage.catalog.packages import files, packages, versions
from pkgrepo.storage.catalog.packages.events import publications
from pkgrepo.storage.catalog.recalls import Recall
from pkgrepo.storage.catalog.usage_counts import DAY_MS

from .recall import CSV
from .recall_records import RecallRecord, RecallReport, ReportedFetch, ReportedFile
from .recall_texts import write_markdown, write_table

MOST_SHOWN: Final = 1000  # files in a report
MOST_VERSIONS: Final = 20_000  # of a package that are compared
MOST_EVENTS: Final = 10_000  # of a package that are looked through
MOST_ROWS: Final = 100_000  # of fetches in a document
PAGE: Final = 1000  # of them that are read together
MARKDOWN: Final = b"text/markdown"
FORMATS: Final = ("json", "markdown", "csv")

table = Table("recall")


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
    every_format=True,
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
    found = await call.catalog.scan(fetches.list_item_fetches, subject.question, after, limit + 1)
    made = await _report(call, subject, found[:limit], len(found) > limit)
    if form == FORMATS[0]:
        return made
    rows = partial(_rows, call, subject.question, found[:limit])
    write, kind = (write_markdown, MARKDOWN) if form == "markdown" else (write_table, CSV)
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
    found = dict.fromkeys(fetches.fetched_versions(r, format_name, key, MOST_VERSIONS))
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
    for item in fetches.list_fetched(r, subject.question, MOST_SHOWN):
        place = item.repository, item.path
        if place not in found and len(found) >= MOST_SHOWN:
            continue
        before = found.get(place) or _unstored(item)
        found[place] = msgspec.structs.replace(
            before, first_at=from_ms(item.first_ms), last_at=from_ms(item.last_ms), count=item.count
        )
    return list(found.values())[:MOST_SHOWN], fetches.count_fetches(r, subject.question)


def _unstored(item: fetches.FetchedItem) -> ReportedFile:
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
        found = await call.catalog.scan(fetches.list_item_fetches, question, BY_ITEM.position(found[-1]), PAGE)
