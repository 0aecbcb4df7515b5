"""The routes that list known vulnerabilities of stored packages, and load the export that they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Annotated, Any

import msgspec

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.http.responses import Response
from pkgrepo.management.api.access_rules import SYSTEM_MANAGERS, VIEWERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.fields import FormatName, JobId, NextCursor, PackageName, RepositoryId, RepositoryPath
from pkgrepo.management.api.pages import cursor_of
from pkgrepo.management.api.route import PAGING, Parameter, Table, sorting
from pkgrepo.management.api.schema import Body, Record
from pkgrepo.management.jobs.maintenance import STILL_RUNNING, WAIT, answer_job
from pkgrepo.management.packages.advisories import WORST, AdvisoryRecord, ecosystem_of, knowledge_of
from pkgrepo.model import Action, Repository, RepositoryType
from pkgrepo.model.advisories import SEVERITIES, Advisory
from pkgrepo.model.structs import meaning
from pkgrepo.repositories.advisories.records import RECORD_SIZE
from pkgrepo.repositories.advisories.refresh import begin_refresh
from pkgrepo.storage.catalog import advisories
from pkgrepo.storage.catalog.advisories import FINDING_ORDERS, Finding, Place

table = Table("advisories")


class FindingRecord(Record):
    """A vulnerability of a package in a repository."""

    repository: RepositoryPath
    repository_id: RepositoryId
    format: FormatName
    package: PackageName
    advisory: Annotated[AdvisoryRecord, meaning("The vulnerability.")]
    affected_versions: Annotated[int, meaning("How many affected versions are stored there.")]
    versions: Annotated[list[str], meaning("The highest of the affected versions, at most 20.")]


class Findings(Record):
    """
    The vulnerabilities of stored packages: a page of them, next is the cursor of the following page.

    severities counts all of them by severity, packages is the number of packages that have any, both without
    repositories of which the caller may read some packages only. checked is false if
    those of some repositories are not known, or of all; problems says why, by format. unsupported are the formats of
    repositories whose packages no database has, which is a problem only for a repository that was asked for.
    """

    items: Annotated[list[FindingRecord], meaning("The vulnerabilities of the page.")]
    next: NextCursor
    severities: Annotated[dict[str, int], meaning("How many vulnerabilities there are in all, by severity.")]
    packages: Annotated[int, meaning("How many packages have any.")]
    checked: Annotated[bool, meaning("Whether those of all repositories are known; problems says why not.")]
    problems: Annotated[dict[str, str], meaning("Why some are not known, by format.")]
    unsupported: Annotated[list[str], meaning("The formats whose packages no database has.")]


class AdvisoryData(Record):
    """The export of advisories: its source, and when it was loaded last, null if it never was."""

    source: Annotated[str, meaning("Where the export comes from.")]
    loaded_at: Annotated[datetime | None, meaning("When it was loaded last; null for never.")]
    exported_at: Annotated[datetime | None, meaning("The time of the export itself; null if it is not known.")]
    records: Annotated[dict[str, int], meaning("How many records there are, by ecosystem.")]
    unreadable: Annotated[int, meaning("How many records were skipped.")]
    problem: Annotated[str, meaning("Why no vulnerabilities mean nothing at present; empty if they do.")]


class Refreshed(Record):
    """The result of a refresh: how many records were changed and removed, skipped, and are stored by ecosystem."""

    job_id: JobId
    changed: Annotated[int, meaning("How many records were changed.")]
    removed: Annotated[int, meaning("How many records were removed.")]
    unreadable: Annotated[int, meaning("How many records were skipped.")]
    records: Annotated[dict[str, int], meaning("How many records there are, by ecosystem.")]


@table.command(
    "advisories list",
    options="repository -r, package, severity, limit 100",
    columns="SEVERITY: advisory.severity | ADVISORY: advisory.id | REPOSITORY: repository | PACKAGE: package | "
    "VERSIONS: :affected | FIXED IN: advisory.fixed_versions or 'no version' | TITLE: advisory.title",
    rows="items",
    whole=True,
    nothing="{:harmless}",
    notes="unsupported:unchecked",
    fails="problems:problems",
    about="List the vulnerabilities of stored versions, the worst first.",
    more="Exit code 1 if something was not checked, also if nothing was found: its data are missing or old.",
)
@table.get(
    "/advisories",
    VIEWERS,
    "List the known vulnerabilities of stored packages",
    query=(
        Parameter("repository", "Only those in this repository: its id, or storage/name."),
        Parameter("package", "With a repository, only those of this package."),
        Parameter("severity", "Only those of this severity.", choices=tuple(WORST)),
        sorting(FINDING_ORDERS, "-severity"),
        *PAGING[:2],
    ),
)
async def list_findings(call: Call) -> Findings:
    """
    Of all versions that are stored in active repositories that the caller may see, hosted or cached; the worst first.

    Of a virtual repository they are those of its members. What is not known of any format is in problems.
    """
    page_request, order = call.page_request, call.order(FINDING_ORDERS, "-severity")
    severity = _severity_of(call.query("severity"))
    repositories, package = await _searched(call)
    states = {each.format: await knowledge_of(call, each) for each in repositories.values()}
    places = [(each.id, ecosystem_of(call, each)) for each in repositories.values() if states[each.format].loaded]
    found = await call.catalog.scan(
        advisories.list_findings,
        places,
        after=page_request.after_position(order),
        limit=page_request.limit + 1,
        order=order.name,
        package_key=package,
        severity=severity,
    )
    shown = found[: page_request.limit]
    counted = await _counted(call, repositories, package)
    mine = [each for each in places if each[0] in counted]
    counts, packages = await call.catalog.scan(advisories.count_findings, mine, package)
    supported = {each.format for each in repositories.values() if ecosystem_of(call, each)}
    problems = {
        name: state.problem
        for name, state in states.items()
        if state.problem and (name in supported or call.query("repository"))
    }
    return Findings(
        items=await _records(call, shown, repositories, dict(places)),
        next=cursor_of(order.place(shown[-1])) if len(found) > len(shown) else None,
        severities={name: counts[name] for name in WORST if name in counts},
        packages=packages,
        checked=not problems,
        problems=problems,
        unsupported=sorted(states.keys() - supported),
    )


@table.command(
    "advisories status",
    fields="source: source | exported: exported_at or 'never' | loaded: loaded_at or 'never' | "
    "records: records:counts | unreadable: unreadable",
    fails="problem",
    about="Show the export: its age, and how many records of it are stored.",
    more="Exit code 1 if it is missing or too old.",
)
@table.get("/advisories/data", VIEWERS, "Show the export that advisories come from")
async def show_data(call: Call) -> AdvisoryData:
    """The source is empty for callers who are not system managers."""
    known = call.shared.advisories
    state = await known.knowledge()
    manages = await call.services.callers.authorizer.may_use(call.identity, "system")
    return AdvisoryData(
        source=known.source if manages else "",
        loaded_at=state.loaded_at,
        exported_at=state.exported_at,
        records=dict(state.records),
        unreadable=state.unreadable,
        problem=state.problem,
    )


class OsvRecord(Body, forbid_unknown_fields=False):
    """A record in the form of the OSV schema; what it has beside these fields is not read."""

    id: Annotated[str, meaning("The id, such as MAL-2026-1.")]
    modified: Annotated[str, meaning("When it was changed last, such as 2026-09-01T00:00:00Z.")]
    published: Annotated[str, meaning("When it was published.")] = ""
    withdrawn: Annotated[str | None, meaning("When it was withdrawn; null for never.")] = None
    aliases: Annotated[list[str], meaning("Ids in other databases.")] = []
    summary: Annotated[str, meaning("A title.")] = ""
    details: Annotated[str, meaning("What it is about.")] = ""
    severity: Annotated[list[dict[str, Any]], meaning("CVSS vectors.")] = []
    affected: Annotated[list[dict[str, Any]], meaning("Packages, with ranges and versions.")] = []
    database_specific: Annotated[dict[str, Any], meaning("What its database adds.")] = {}


class Taken(Record):
    """A record that is stored, and what it is about here."""

    id: Annotated[str, meaning("Its id.")]
    packages: Annotated[list[str], meaning("The packages that it names, as ECOSYSTEM/NAME, of formats that are here.")]
    malware: Annotated[bool, meaning("Whether it says that they are malware.")]
    blocked: Annotated[bool, meaning("Whether all repositories refuse them from now on.")]


@table.post(
    "/advisories/records",
    SYSTEM_MANAGERS,
    "Store one advisory",
    audit="advisories.add",
    largest=RECORD_SIZE,
)
async def add_record(call: Call, body: OsvRecord) -> Taken:
    """
    For feeds that send a record the moment that they have it. Malware (MAL-) is blocked when this answers, on all
    workers and nodes; a record with withdrawn lifts that. An export that is older neither removes nor replaces it.

    409 before the first export was loaded, 422 for a record that is older than the stored one.
    """
    call.object = body.id[:100]
    record = await call.services.advisory_refresh.take(msgspec.json.encode(body))
    await call.registry.refresh()
    malware = any(each.is_malware for each in record.advisories)
    return Taken(
        id=record.id,
        packages=[f"{each.ecosystem}/{each.package}" for each in record.advisories],
        malware=malware,
        blocked=malware and call.registry.policy.malware is not None,
    )


@table.post(
    "/advisories/refresh",
    SYSTEM_MANAGERS,
    "Refresh the advisories from their export",
    query=(WAIT,),
    audit="advisories.refresh",
    further=STILL_RUNNING,
)
async def refresh(call: Call) -> Refreshed | Response:
    """
    Reads the export (advisories.source) now, and stores what has changed; it is read every advisories.refresh anyway.

    One refresh runs at a time: while another one runs, the answer is 409 with its Location.
    """
    work = call.services.advisory_refresh
    if not work.source:
        raise Invalid("the server has no source of advisories (advisories.source)")
    call.object = "advisories"
    job = await answer_job(call, partial(begin_refresh, call.services.jobs, work, by=call.actor.name))
    return job if isinstance(job, Response) else msgspec.convert({**job.result, "job_id": job.uid}, Refreshed)


def _severity_of(text: str) -> int | None:
    if text and text not in SEVERITIES:
        raise Invalid(f"severity is one of {', '.join(WORST)}", "severity")
    return SEVERITIES.index(text) if text else None


async def _searched(call: Call) -> tuple[dict[int, Repository], str | None]:
    """The repositories that the query names and the caller may see, by catalog key, and the key of the package."""
    place, name = call.query("repository"), call.query("package")
    every = [each for each in call.registry.all() if each.active and (place or each.parent is None)]
    visible = await call.services.callers.authorizer.visible(call.identity, every)
    if not place:
        if name:
            raise Invalid("package needs a repository", "package")
        return {each.id: each for each in visible}, None
    found = next((each for each in visible if place.casefold() in (each.uid, each.path.casefold())), None)
    if found is None:
        raise NotFound("repository", place)
    chosen = [found]
    if found.type is RepositoryType.VIRTUAL:
        members = {each.id for each in call.shared.proxy.resolver.flat_members(found)}
        chosen = [each for each in visible if each.id in members]
    return {each.id: each for each in chosen}, call.services.formats[found.format].package_key(name) if name else None


async def _counted(call: Call, repositories: Mapping[int, Repository], package: str | None) -> set[int]:
    """Those of the repositories that the caller may read as a whole, or whose package they may: counts say no more."""
    every = [*repositories.values()]
    may = await call.services.callers.authorizer.may_each(
        call.identity, [(Action.READ, each, package) for each in every]
    )
    return {each.id for each, whole in zip(every, may, strict=True) if whole}


async def _records(
    call: Call, found: Sequence[Finding], repositories: Mapping[int, Repository], ecosystems: Mapping[int, str]
) -> list[FindingRecord]:
    """The records of findings, without those of packages that the caller may not read."""
    known: dict[tuple[str, str], Advisory] = {}
    for ecosystem in sorted(set(ecosystems.values())):
        keys = {each.key for each in found if ecosystems[each.repository_id] == ecosystem}
        for key, on_package in (await call.shared.advisories.of(ecosystem, sorted(keys))).items():
            known.update({(key, each.id): each for each in on_package})
    allowed: dict[int, set[str]] = {}
    for owner in {each.repository_id for each in found}:
        names = [each.key for each in found if each.repository_id == owner]
        access = call.shared.access
        allowed[owner] = set(await access.allowed(call.identity, Action.READ, repositories[owner], names))
    records = []
    for each in found:
        advisory = known.get((each.key, each.advisory))
        if advisory is None or each.key not in allowed[each.repository_id]:
            continue
        repository = repositories[each.repository_id]
        place: Place = (repository.id, ecosystems[repository.id])
        versions: Any = await call.catalog.scan(advisories.affected_versions, place, each)
        records.append(
            FindingRecord(
                repository=repository.path,
                repository_id=repository.uid,
                format=repository.format,
                package=each.package,
                advisory=AdvisoryRecord.of(advisory),
                affected_versions=each.versions,
                versions=versions,
            )
        )
    return records
