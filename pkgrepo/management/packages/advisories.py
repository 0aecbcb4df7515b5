"""The route that shows the known vulnerabilities of a version."""

from __future__ import annotations

from typing import Final

from pkgrepo.interfaces import IAdvisedFormat
from pkgrepo.management.api.access_rules import CONTENT_READERS
from pkgrepo.management.api.call import Call
from pkgrepo.management.api.route import Table
from pkgrepo.model import VersionAdvisory

from .handlers import find_version
from .schema import Advisories, AdvisoryRecord

MOST: Final = 200  # of a version that are shown
SEVERITIES: Final = ("critical", "high", "moderate", "low", "info")


table = Table("packages")


@table.route(
    "GET",
    "/package/<repository>/<package>/versions/<version>/advisories",
    access=CONTENT_READERS,
    summary="Show the known vulnerabilities of a version",
    answer=Advisories,
)
async def list_advisories(call: Call, version: str) -> Advisories:
    """
    From the export of the OSV database that the server was given, the worst first.

    checked is false if there is none for this format: then nothing is known of any version.
    """
    package, found = await find_version(call, version)
    format_ = call.services.formats[call.repository.format]
    known = None
    if IAdvisedFormat.providedBy(format_):
        shared = call.services.shared
        known = await format_.find_advisories(package.key, found.text, shared.pools, shared.clock)
    if known is None:
        return Advisories(items=[], total=0, checked=False)
    worst = sorted(known, key=lambda each: (SEVERITIES.index(each.severity), each.id))
    return Advisories(items=[_record(each) for each in worst[:MOST]], total=len(worst), checked=True)


def _record(advisory: VersionAdvisory) -> AdvisoryRecord:
    return AdvisoryRecord(
        id=advisory.id,
        title=advisory.title,
        severity=advisory.severity,
        url=advisory.url,
        aliases=list(advisory.aliases),
        affected=advisory.affected,
        fixed=advisory.fixed,
    )
