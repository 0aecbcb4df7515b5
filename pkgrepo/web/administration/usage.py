"""How the server is used, and how it is."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from pkgrepo.http.answers import Answer
from pkgrepo.web.job_kinds import KINDS
from pkgrepo.web.rendering.filters import number
from pkgrepo.web.rows import Columns, order_of, sorted_rows
from pkgrepo.web.tables import Pages, PageTable
from pkgrepo.web.visits import Visit

DAYS: Final = ("7", "30", "90", "365")
MOST_LISTED: Final = 1000  # repositories whose sizes are compared
MOST_SHOWN: Final = 25
LATEST_JOBS: Final = 5
COLUMNS: Final[Columns[Any]] = {
    "name": lambda each: (each.storage_name, each.name),
    "size": lambda each: each.usage_bytes or 0,
    "packages": lambda each: each.package_count or 0,
}


class UsagePages(Pages):
    """Statistics and health."""

    pages: ClassVar = PageTable()

    @pages.get("/admin/statistics")
    async def statistics(self, visit: Visit) -> Answer:
        """Pictures of the last days with tables, sizes of repositories, and latencies."""
        days = visit.query("days") if visit.query("days") in DAYS else "30"
        found = await visit.api("GET", "/statistics", query={"days": days})
        listed = await visit.api("GET", "/repository", query={"include_usage": True, "limit": MOST_LISTED})
        repositories = sorted_rows(visit, listed.items, COLUMNS, "-size")
        names = ("downloads", "uploads", "hit_ratio")
        return visit.page(
            "administration/statistics.html",
            found=found,
            days=found.days,
            numbers={name: [(str(each.day), getattr(each, name) or 0) for each in found.days] for name in names},
            repositories=repositories[:MOST_SHOWN],
            order=order_of(visit, COLUMNS, "-size"),
            left_out=len(repositories) - MOST_SHOWN,
            total=sum(each.usage_bytes or 0 for each in repositories),
            number=number,
            percent=_percent,
        )

    @pages.get("/admin/health")
    async def health(self, visit: Visit) -> Answer:
        """Checks, disks, upstreams, versions, the lag of the reactor, and the last jobs."""
        return visit.page(
            "administration/health.html",
            server=await visit.api("GET", "/server/state"),
            storages=await visit.api("GET", "/storage"),
            jobs=await visit.api("GET", "/job", query={"limit": LATEST_JOBS}),
            kinds=KINDS,
        )


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"
