"""What a tag of an image pointed to, and what the manifests about an image say: SBOMs, attestations, signatures."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.http.responses import Response
from pkgrepo.web.content.packages import PACKAGE, PER_PAGE, VERSION
from pkgrepo.web.tables import Columns, PageTable, page_of_rows
from pkgrepo.web.visits import Visit

TAG: Final = "/package/<repository>/<package>/tags/<tag>"
COMPONENTS: Final = 100  # of a bill of materials on one page
SHOWN_TEXT: Final = 24_000  # characters of another document on a page
COMPONENT_COLUMNS: Final[Columns[Any]] = {
    "name": lambda each: each.name.lower(),
    "version": lambda each: each.version,
    "license": lambda each: each.license,
}

pages = PageTable()


@pages.get(f"{VERSION}/statements")
async def show_statements(visit: Visit) -> Response:
    """What an SBOM, an attestation or a signature of an image says; components with a filter, a page at a time."""
    repository = await visit.repository()
    listed = await visit.api("GET", "/package/<repository>/<package>/versions/<version>/statements")
    text = visit.query("q").lower()
    tables = [
        page_of_rows(
            visit,
            [row for row in each.components if text in f"{row.name} {row.license}".lower()],
            COMPONENT_COLUMNS,
            "name",
            COMPONENTS,
        )
        for each in listed
    ]
    return visit.page(
        "packages/statements.html",
        repository=repository,
        package=visit.at["package"],
        release=visit.at["version"],
        documents=list(zip(listed, tables, strict=True)),
        most=SHOWN_TEXT,
    )


@pages.get(f"{PACKAGE}/tags/<tag>")
async def show_tag(visit: Visit) -> Response:
    """What a tag of an image pointed to."""
    repository = await visit.repository()
    listed = await visit.api("GET", f"{TAG}/history", query=visit.asked("cursor", limit=PER_PAGE))
    return visit.page(
        "packages/tag_history.html",
        repository=repository,
        package=visit.at["package"],
        tag=visit.at["tag"],
        listed=listed,
        current=listed.items[0].digest if listed.items and not visit.query("cursor") else None,
    )


# an earlier manifest again
pages.operation(f"{PACKAGE}/tags/<tag>", "POST", TAG, ("digest",), page=show_tag)
