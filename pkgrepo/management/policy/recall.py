"""Recall: who fetched a version, by the download log."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.http.responses import NO_STORE, Response
from pkgrepo.interfaces import Reader
from pkgrepo.management.api.access_rules import RECALLERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import FirstFetch, LastFetch, NextCursor, RepositoryPath
from pkgrepo.management.api.names import find_repository
from pkgrepo.management.api.pages import cursor_of
from pkgrepo.management.api.route import Parameter, Table, sorting
from pkgrepo.management.api.schema import Record
from pkgrepo.model import RepositoryType
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.advisories.package_urls import read_purl
from pkgrepo.repositories.clock import from_ms
from pkgrepo.repositories.fetched import FetchedNames
from pkgrepo.storage.catalog import download_log, fetches
from pkgrepo.storage.catalog.fetches import FETCH_ORDERS, FetchedItem, Fetches, Question
from pkgrepo.storage.catalog.images.relations import manifests_of_blob
from pkgrepo.storage.catalog.usage_counts import DAY_MS

FetchCount = Annotated[int, meaning("How many fetches there were.")]

table = Table("recall")
MOST_FETCHED: Final = 200  # files and manifests in an answer
MOST_IMAGES: Final = 1000  # that have one layer
MOST_ANONYMOUS: Final = 100  # networks in an answer
MOST_LINES: Final = 100_000  # of a CSV document, of some 100 bytes each
CSV: Final = b"text/csv"
LINE: Final = ("user", "token", "address", "first_at", "last_at", "count")
_SHA256 = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")  # what programs for tables take a cell for that begins with one


class FetchRecord(Record):
    """The fetches by one user with one token, null if it was a password, from one network."""

    user: Annotated[str, meaning("The name of the user.")]
    token: Annotated[str | None, meaning("The name of the token; null if it was a password.")]
    address: Annotated[str | None, meaning("The network, null unless it was kept (downloads.log_addresses).")]
    first_at: FirstFetch
    last_at: LastFetch
    count: FetchCount


class AnonymousRecord(Record):
    """The fetches by anonymous clients from one network; address is null unless it was kept."""

    address: Annotated[str | None, meaning("The network, null unless it was kept (downloads.log_addresses).")]
    first_at: FirstFetch
    last_at: LastFetch
    count: FetchCount


class FetchedRecord(Record):
    """A file or manifest that was fetched, with the names that it had then; digest is null if that is not known."""

    repository: RepositoryPath
    package: Annotated[str, meaning("The name of the package then.")]
    version: Annotated[str, meaning("The version that it had then.")]
    path: Annotated[str, meaning("The path in the repository.")]
    digest: Annotated[str | None, meaning("The digest; null if it is not known.")]
    first_at: FirstFetch
    last_at: LastFetch
    count: FetchCount


class Recall(Record):
    """
    Who fetched a version: a page of users and tokens, next is the cursor of the following page.

    What was fetched before since, or is older than log_days, is not known; problem is a sentence if nothing is, or if
    nothing of this name is stored.
    """

    items: Annotated[list[FetchRecord], meaning("The users and tokens of the page.")]
    next: NextCursor
    anonymous: Annotated[int, meaning("How many of the fetches were by anonymous clients.")]
    anonymous_items: Annotated[
        list[AnonymousRecord], meaning("The networks from which anonymous clients fetched last, at most 100.")
    ]
    count: FetchCount
    clients: Annotated[int, meaning("How many pairs of user and token there are.")]
    fetched: Annotated[list[FetchedRecord], meaning("The files and manifests, the 200 files that were fetched last.")]
    files: Annotated[int, meaning("How many files and manifests were fetched.")]
    since: Annotated[
        datetime | None, meaning("When the log begins; earlier fetches are not known. Null if nothing is.")
    ]
    log_days: Annotated[int, meaning("For how many days the log is kept.")]
    problem: Annotated[str, meaning("Why nothing is known, or that nothing of this name is stored; else empty.")]


@table.get(
    "/recall",
    RECALLERS,
    "Show who fetched a version",
    query=(
        Parameter("purl", "The package URL of a package, with or without a version, in all repositories."),
        Parameter("digest", "The sha256 digest of a file, manifest or layer, in all repositories."),
        Parameter("repository", "The repository, its id or storage/name, also of one that was removed."),
        Parameter("package", "With a repository, the package."),
        Parameter("version", "With a package, the version; of an image the tag or digest."),
        sorting(FETCH_ORDERS, "-last_at"),
        Parameter("limit", "Maximum number of items on the page, 1 to 1000; 50 by default.", "integer"),
        Parameter("cursor", "The value of next of the previous page; absent for the first page."),
        Parameter("format", "csv returns all rows, those of anonymous clients too, as comma-separated values."),
    ),
    audit="recall.read",
    every_format=True,
)
async def show_recall(call: Call) -> Recall | Response:
    """
    By the download log: of complete fetches, and of parts that begin at the first byte.

    Of a virtual repository they are those of its members. Fetches of what is made of the version, such as the conda
    package of a wheel, count, too. Downloads of the last ten seconds at other processes of the
    server may be missing. Comma-separated values are refused where an answer would have a problem.
    """
    question, call.object = await _question(call)
    order = call.order(FETCH_ORDERS, "-last_at")
    downloads = call.shared.downloads
    await downloads.flush()
    accepted = call.request.header(b"accept") or b""
    if call.query("format") == "csv" or CSV in accepted:
        body = await call.catalog.scan(_lines, question, order.name)
        problem = "" if body.count(b"\n") > 1 else await _problem(call, question, fetched=False)
        if problem:  # an empty table would say that nobody has it
            raise Invalid(problem, "purl")
        return Response(
            body=body,
            content_type=CSV + b"; charset=utf-8",
            headers=(*NO_STORE, (b"Content-Disposition", b'attachment; filename="recall.csv"')),
        )
    page = call.page_request
    found = await call.catalog.scan(
        fetches.list_fetches,
        question,
        after=page.after_position(order),
        limit=page.limit + 1,
        order=order.name,
        anonymous=False,
    )
    shown = found[: page.limit]
    anonymous = await call.catalog.scan(fetches.list_fetches, question, limit=MOST_ANONYMOUS, anonymous=True)
    totals = await call.catalog.scan(fetches.count_fetches, question)
    since_ms = await call.catalog.look(download_log.logged_since)
    kept_ms = (call.now_ms // DAY_MS - downloads.log_days + 1) * DAY_MS
    return Recall(
        items=[_fetch_record(each) for each in shown],
        next=cursor_of(order.place(shown[-1])) if len(found) > len(shown) else None,
        anonymous=totals.anonymous,
        anonymous_items=[_anonymous_record(each) for each in anonymous],
        count=totals.count,
        clients=totals.clients,
        fetched=list(map(_fetched_record, await call.catalog.scan(fetches.list_fetched, question, MOST_FETCHED))),
        files=totals.items,
        since=None if since_ms is None else from_ms(max(since_ms, kept_ms)),
        log_days=downloads.log_days,
        problem=await _problem(call, question, fetched=totals.items > 0),
    )


async def _problem(call: Call, question: Question, *, fetched: bool) -> str:
    """Why that nothing was found means nothing; empty if it does. :raises NotFound: there was no such repository"""
    if not call.shared.downloads.log_days:
        return "this server logs no downloads (downloads.log_days is 0)"
    if fetched:
        return ""
    ids = question.repositories
    if ids is not None and not ids and question.paths:
        raise NotFound("repository", question.paths[0])
    if ids is None:
        ids = [each.id for each in call.registry.all() if question.format in (None, each.format)]
    if await call.catalog.scan(fetches.is_stored, question, ids):
        return ""
    return "nothing of this name is stored here either: check how it is written"


async def _question(call: Call) -> tuple[Question, str]:
    """What the query asks for, and how the audit log names it."""
    names = ("purl", "digest", "repository", "package", "version")
    given = {name: call.query(name) for name in names if call.query(name)}
    text = " ".join(f"{name}={value}" for name, value in given.items())
    match sorted(given):
        case ["purl"]:
            return _of_purl(call, given["purl"]), text
        case ["digest"]:
            return await _of_digest(call, _digest(given["digest"])), text
        case ["package", "repository"] | ["package", "repository", "version"]:
            return _of_repository(call, given["repository"], given["package"], given.get("version", "")), text
    raise Invalid("a recall needs a purl, a digest, or a repository with a package, and no other of these", "purl")


def _digest(text: str) -> bytes:
    found = _SHA256.fullmatch(text.strip().lower())
    if found is None:
        raise Invalid("a digest is a sha256 in hexadecimal, with or without sha256: before it", "digest")
    return bytes.fromhex(found[1])


async def _of_digest(call: Call, digest: bytes) -> Question:
    """What has a digest, and the images that have a layer or a configuration with it."""
    ids = [each.id for each in call.registry.all() if call.services.formats[each.format].images is not None]
    around = await call.catalog.scan(manifests_of_blob, ids, f"sha256:{digest.hex()}")
    if len(around) > MOST_IMAGES:
        raise Invalid(f"more than {MOST_IMAGES} images have this layer: ask for one of them", "digest")
    return Question(digests=[digest, *around])


def _of_purl(call: Call, purl: str) -> Question:
    read = read_purl(purl, call.services.formats.values(), "purl")
    name_of_format, urls, version = read.format.name, read.format.package_urls, read.version
    if version.startswith("sha256:"):
        return Question(format=name_of_format, digests=[_digest(version)])
    if read.type in urls.digest_types:
        raise Invalid(f"a package URL of the type {read.type} has the digest of the image as its version", "purl")
    names = names_of(call)
    packages = [key for name in urls.names(read.type, read.name) for key in names.keys([name_of_format], name)]
    versions = _versions(names, [name_of_format], version)
    copies = names.copies(names.every, packages, [version] if version else None)
    return Question(format=name_of_format, packages=packages, versions=versions, copies=copies)


def _of_repository(call: Call, place: str, package: str, version: str) -> Question:
    repository = find_repository(call.registry, place)
    formats = list(call.services.formats) if repository is None else [repository.format]
    digests = [_digest(version)] if version.startswith("sha256:") else None
    names = names_of(call)
    packages, versions = names.keys(formats, package), None if digests else _versions(names, formats, version)
    if repository is None:
        if "/" not in place:
            raise NotFound("repository", place)
        return Question(repositories=[], paths=[place], packages=packages, versions=versions, digests=digests)
    members = [repository]
    if repository.type is RepositoryType.VIRTUAL:
        members = list(call.shared.proxy.resolver.flat_members(repository))
    return Question(
        repositories=[each.id for each in members],
        paths=[each.path for each in members],
        packages=packages,
        versions=versions,
        digests=digests,
        copies=[] if digests else names.copies(members, packages, [version] if version else None),
    )


def names_of(call: Call) -> FetchedNames:
    """Names as the log has them."""
    return FetchedNames(call.services.formats, call.registry.all())


def _versions(names: FetchedNames, formats: Sequence[str], version: str) -> list[str] | None:
    """What a version is normalised to by these formats; None for an empty one, which stands for all."""
    return names.versions(formats, [version]) if version else None


def _lines(r: Reader, question: Question, order: str) -> bytes:
    """All rows as CSV (RFC 4180). :raises Invalid: there are too many"""
    found = fetches.list_fetches(r, question, limit=MOST_LINES + 1, order=order)
    if len(found) > MOST_LINES:
        raise Invalid(f"there are more than {MOST_LINES} rows: ask for one version, or one repository", "format")
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(LINE)
    for each in found:
        first, last = (from_ms(ms).isoformat().replace("+00:00", "Z") for ms in (each.first_ms, each.last_ms))
        writer.writerow((cell(each.username), cell(each.token), each.address, first, last, each.count))
    return text.getvalue().encode()


def cell(text: str | None) -> str:
    """A text that no program for tables takes for a formula."""
    found = text or ""
    return f"'{found}" if found.startswith(_FORMULA) else found


def _fetch_record(each: Fetches) -> FetchRecord:
    return FetchRecord(
        user=each.username or "",
        token=each.token,
        address=each.address or None,
        first_at=from_ms(each.first_ms),
        last_at=from_ms(each.last_ms),
        count=each.count,
    )


def _anonymous_record(each: Fetches) -> AnonymousRecord:
    return AnonymousRecord(
        address=each.address or None,
        first_at=from_ms(each.first_ms),
        last_at=from_ms(each.last_ms),
        count=each.count,
    )


def _fetched_record(each: FetchedItem) -> FetchedRecord:
    return FetchedRecord(
        repository=each.repository,
        package=each.package,
        version=each.version,
        path=each.path,
        digest=None if each.sha256 is None else f"sha256:{each.sha256.hex()}",
        first_at=from_ms(each.first_ms),
        last_at=from_ms(each.last_ms),
        count=each.count,
    )
