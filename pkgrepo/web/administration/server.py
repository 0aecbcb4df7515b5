"""The pages about the server as a whole: storages, audit log, statistics and health."""

from __future__ import annotations

import shlex
from typing import Any, Final
from urllib.parse import urlencode

from pkgrepo.display import number, size
from pkgrepo.errors import AuthenticationRequired, Forbidden, Invalid, NotFound
from pkgrepo.http.responses import Response
from pkgrepo.web.rendering.languages import JOB_KINDS, marked
from pkgrepo.web.tables import Columns, PageTable, order_of, sorted_rows
from pkgrepo.web.visits import Form, Visit

PER_PAGE: Final = 100
FILTERS: Final = ("actor", "object", "action", "outcome", "from", "to", "sort", "cursor")


pages = PageTable()
DAYS: Final = ("7", "30", "90", "365")
MOST_LISTED: Final = 1000  # repositories whose sizes are compared
MOST_SHOWN: Final = 25
LATEST_JOBS: Final = 5
MOST_WAITING: Final = 10  # stages that wait for an approval
SPAN: Final = 30  # days that the overview shows
PROXY_COLUMNS: Final[Columns[Any]] = {
    "name": lambda each: each.repository,
    "requests": lambda each: each.hits + each.misses,
    "hits": lambda each: each.hit_ratio or 0,
    "took": lambda each: each.upstream_ms or 0,
}
COLUMNS: Final[Columns[Any]] = {
    "name": lambda each: (each.storage_name, each.name),
    "size": lambda each: each.usage_bytes or 0,
    "packages": lambda each: each.package_count or 0,
}


@pages.get("/admin")
async def show_overview(visit: Visit) -> Response:
    """How the server is and is used, for those who manage it; what a caller may not see is None."""
    identity = visit.identity
    if identity.anonymous:
        raise AuthenticationRequired
    if not (identity.admin or identity.system_manager or identity.user_manager):
        raise Forbidden(marked("this is for admins, system managers and user managers"))
    info = await visit.api("GET", "/info")
    if not (identity.admin or identity.system_manager):
        return visit.page("administration/overview.html", info=info, storages=None)
    storages = await visit.api("GET", "/storage")
    used = await visit.api("GET", "/statistics", query={"days": SPAN})
    return visit.page(
        "administration/overview.html",
        info=info,
        storages=storages,
        server=await visit.api("GET", "/server/state"),
        backup=await visit.api("GET", "/system/backup"),
        repositories=(await visit.api("GET", "/repository", query={"limit": 1, "count": True})).total,
        jobs=(await visit.api("GET", "/job", query={"limit": LATEST_JOBS})).items,
        webhooks=await visit.api("GET", "/system/webhooks"),
        stages=await visit.api("GET", "/stages", query={"state": "open", "limit": MOST_WAITING}),
        kinds=JOB_KINDS,
        days=used.days,
        numbers=_by_day(used.days),
        sizes={each.name: _sizes(used, each) for each in storages.items},
        proxies=sorted_rows(visit, used.proxies, PROXY_COLUMNS, "-took")[:MOST_SHOWN],
        order=order_of(visit, PROXY_COLUMNS, "-took"),
        hit_ratio=_ratio(used.days),
        size=size,
        number=number,
        percent=_percent,
    )


def _storage(form: Form) -> dict[str, Any]:
    """A storage in the data folder, or at a path."""
    settings = {"settings": {"path": form.text("path")}} if form.text("path") else {}
    return {**form.texts("name"), "type": "Local", **settings}


pages.operation("/admin/storages", "POST", "/storage", _storage, page=show_overview)


def _sizes(used: Any, storage: Any) -> list[tuple[str, float]]:
    """What a storage held on each day and holds now; on a day without a measurement, what it held before."""
    known, held = {each.day: each.bytes for each in used.storages if each.storage == storage.name}, 0
    known[used.days[-1].day] = storage.usage.bytes
    found = []
    for each in used.days:
        held = known.get(each.day, held)
        found.append((str(each.day), held))
    return found


def _by_day(days: Any) -> dict[str, list[tuple[str, float]]]:
    """The figures of the days by their names, as pictures take them."""
    names = ("downloads", "uploads", "hit_ratio")
    return {name: [(str(each.day), getattr(each, name) or 0) for each in days] for name in names}


def _ratio(days: Any) -> float | None:
    """The part of all requests to proxies that needed no upstream; None without any."""
    hits, misses = sum(each.hits for each in days), sum(each.misses for each in days)
    return hits / (hits + misses) if hits + misses else None


@pages.get("/admin/audit")
async def show_audit(visit: Visit) -> Response:
    """The audit log, the newest rows first, with filters."""
    query = visit.asked(*FILTERS)
    query |= {name: f"{query[name][:10]}T00:00:00Z" for name in ("from", "to") if name in query}
    listed = await visit.listed("/audit", query, PER_PAGE)
    return visit.page(
        "administration/audit.html",
        listed=listed,
        order="-time" if visit.error else visit.query("sort") or "-time",
        api_query=f"?{urlencode(query)}",
    )


@pages.get("/admin/recall")
async def show_recall(visit: Visit) -> Response:
    """Who fetched a version; without a question, the form for one."""
    given = {name: text.strip() for name, text in visit.asked("repository", "package", "version").items()}
    what, found = visit.query("what").strip(), None
    if what:
        given = {"purl" if what.startswith("pkg:") else "digest": what}
    try:
        query = {**given, **visit.asked("sort", "cursor", limit=PER_PAGE)}
        found = await visit.api("GET", "/recall", query=query) if given else None
    except (Invalid, NotFound) as wrong:
        visit.error = str(wrong)
    opened = await visit.api("GET", "/recalls") if found is None and not visit.error else []
    named = given.get("package", "") + (f"=={given['version']}" if "version" in given else "")
    return visit.page(
        "administration/recall.html",
        found=found,
        opened=opened,
        order=visit.query("sort") or "-last_at",
        api_query=urlencode(given),
        block=_block(given, found),
        words=shlex.join([what] if what else [given.get("repository", ""), named]),
        csv=f"/api/recall?{urlencode({**given, 'format': 'csv'})}",
    )


def _block(given: dict[str, str], found: Any) -> dict[str, str]:
    """The fields of a block of what was asked for."""
    fetched = [] if found is None else found.fetched
    packages, versions = {each.package for each in fetched}, {each.version for each in fetched}
    version = given.get("version") or (versions.pop() if "purl" in given and len(versions) == 1 else "")
    digest = given.get("digest", "")
    if digest and ":" not in digest:
        digest = f"sha256:{digest}"
    by_digest = bool(digest) or version.startswith("sha256:")
    return {
        "repository": given.get("repository", "*"),
        "package": given.get("package") or ("" if by_digest or len(packages) != 1 else packages.pop()),
        "versions": "" if by_digest else version,
        "digests": digest or (version if by_digest else ""),
    }


@pages.get("/admin/statistics")
async def show_statistics(visit: Visit) -> Response:
    """Pictures of the last days with tables, sizes of repositories, and latencies."""
    days = visit.query("days") if visit.query("days") in DAYS else "30"
    found = await visit.api("GET", "/statistics", query={"days": days})
    listed = await visit.api("GET", "/repository", query={"include_usage": True, "limit": MOST_LISTED})
    repositories = sorted_rows(visit, listed.items, COLUMNS, "-size")
    return visit.page(
        "administration/statistics.html",
        found=found,
        days=found.days,
        numbers=_by_day(found.days),
        repositories=repositories[:MOST_SHOWN],
        order=order_of(visit, COLUMNS, "-size"),
        left_out=len(repositories) - MOST_SHOWN,
        total=sum(each.usage_bytes or 0 for each in repositories),
        number=number,
        percent=_percent,
    )


@pages.get("/admin/health")
async def show_health(visit: Visit) -> Response:
    """Checks, disks, upstreams, versions, the lag of the reactor, and the last jobs."""
    return visit.page(
        "administration/health.html",
        server=await visit.api("GET", "/server/state"),
        backup=await visit.api("GET", "/system/backup"),
        twins=await visit.api("GET", "/system/twins"),
        storages=await visit.api("GET", "/storage"),
        jobs=await visit.api("GET", "/job", query={"limit": LATEST_JOBS}),
        kinds=JOB_KINDS,
    )


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"
