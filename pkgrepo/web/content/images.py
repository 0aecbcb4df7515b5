"""What a tag of an image pointed to, and what the manifests about an image say: SBOMs, attestations, signatures."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.http.responses import Response
from pkgrepo.web.content.packages import PACKAGE, PER_PAGE, VERSION
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import Columns, PageTable, page_of_rows
from pkgrepo.web.visits import Form, Visit, find_repository

COMPONENTS: Final = 100  # of a bill of materials on one page
SHOWN_TEXT: Final = 24_000  # characters of another document on a page
COMPONENT_COLUMNS: Final[Columns[Any]] = {
    "name": lambda each: each.name.lower(),
    "version": lambda each: each.version,
    "license": lambda each: each.license,
}

pages = PageTable()


@pages.get(f"{VERSION}/statements")
async def show_statements(visit: Visit, storage: str, name: str, package: str, version: str) -> Response:
    """What an SBOM, an attestation or a signature of an image says; components with a filter, a page at a time."""
    repository = await find_repository(visit, storage, name)
    place = {"repository": f"{storage}/{name}", "package": package, "version": version}
    listed = await visit.api("GET", "/package/<repository>/<package>/versions/<version>/statements", place)
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
        package=package,
        release=version,
        documents=list(zip(listed, tables, strict=True)),
        most=SHOWN_TEXT,
    )


@pages.get(f"{PACKAGE}/tags/<tag>")
async def show_tag(visit: Visit, storage: str, name: str, package: str, tag: str) -> Response:
    """What a tag of an image pointed to."""
    return await _tag_page(visit, storage, name, package, tag)


@pages.post(f"{PACKAGE}/tags/<tag>")
async def move_tag(visit: Visit, form: Form, storage: str, name: str, package: str, tag: str) -> Response:
    """Let a tag point to an earlier manifest again."""
    place = {"repository": f"{storage}/{name}", "package": package, "tag": tag}
    operation = "/package/<repository>/<package>/tags/<tag>"
    try:
        await visit.api("POST", operation, place, fields={"digest": form.text("digest")})
    except REFUSED as error:
        return await _tag_page(visit, storage, name, package, tag, error=str(error))
    return visit.redirect_to("repositories", storage, name, "packages", package, "tags", tag)


async def _tag_page(visit: Visit, storage: str, name: str, package: str, tag: str, *, error: str = "") -> Response:
    repository = await find_repository(visit, storage, name)
    place = {"repository": f"{storage}/{name}", "package": package, "tag": tag}
    query: dict[str, str | int] = {"limit": PER_PAGE}
    query |= {"cursor": visit.query("cursor")} if visit.query("cursor") else {}
    listed = await visit.api("GET", "/package/<repository>/<package>/tags/<tag>/history", place, query=query)
    return visit.page(
        "packages/tag_history.html",
        repository=repository,
        package=package,
        tag=tag,
        listed=listed,
        current=listed.items[0].digest if listed.items and not visit.query("cursor") else None,
        error=error,
    )
