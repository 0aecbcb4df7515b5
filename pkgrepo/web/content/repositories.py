"""Packages, files, set-up and upstreams of a repository, and what is inside its archives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import Any, Final

from attrs import frozen
from markupsafe import Markup

from pkgrepo.errors import AuthenticationRequired, Invalid, NotFound, PkgrepoError
from pkgrepo.http.reading.multipart import Part
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.web.refusals import REFUSED, error_table
from pkgrepo.web.tables import Columns, PageTable, order_of, page_of_rows, sorted_rows
from pkgrepo.web.visits import Form, Visit, find_repository

PER_PAGE: Final = 50
UPLOAD: Final = "/repositories/<storage>/<name>/upload"
PER_LEVEL: Final = 200  # files of a folder on one page
FILE_COLUMNS: Final[Columns[Any]] = {
    "name": lambda each: (each.kind == "file", each.name),
    "size": lambda each: each.size or 0,
    "changed": lambda each: each.modified_at.timestamp() if each.modified_at else 0,
}
ROUTE_COLUMNS: Final[Columns[Any]] = {
    "name": lambda each: each.name,
    "priority": lambda each: each.priority,
    "state": lambda each: each.state,
    "latency": lambda each: each.latency_ms or 0,
    "answers": lambda each: each.successes,
}


# How a step is coloured; the others are neutral.
STEP_SIGNS: Final = {
    **dict.fromkeys(("owned", "merged", "fetched", "confirmed", "cached", "file_kept", "file_listed"), "good"),
    **dict.fromkeys(
        ("stale", "gone", "hidden", "withheld", "unsigned", "file_removed", "owned_inactive", "later", "unknown"),
        "warn",
    ),
    **dict.fromkeys(("failed", "denied", "reserved", "retired", "file_refused", "file_unlisted"), "bad"),
}


pages = PageTable()
ENTRIES_PER_PAGE: Final = 200  # entries
ENTRY_COLUMNS: Final[Columns[Any]] = {
    "name": lambda each: (each.kind != "folder", each.name),
    "size": lambda each: each.size,
}


@pages.get("/repositories/<storage>/<name>")
async def show_packages(visit: Visit, storage: str, name: str) -> Response:
    """The set-up card, the repository's own page, and the packages, with a filter."""
    repository = await find_repository(visit, storage, name)
    query: dict[str, Any] = {"limit": PER_PAGE}
    query |= {each: visit.query(each) for each in ("q", "sort", "cursor") if visit.query(each)}
    place = f"{storage}/{name}"
    listed = await visit.api("GET", "/repository/<repository>/packages", {"repository": place}, query=query)
    snippets = await visit.api("GET", "/repository/<repository>/setup", {"repository": place})
    return visit.page(
        "repositories/packages.html",
        repository=repository,
        tab="packages",
        listed=listed,
        order=visit.query("sort") or "name",
        snippets=snippets,
        members=await _members(visit, repository, place),
        own_page=await _own_page(visit, place),
    )


@pages.get("/repositories/<storage>/<name>/uploads")
async def show_uploads(visit: Visit, storage: str, name: str) -> Response:
    """The uploads of layers that have not ended."""
    return await _uploads_page(visit, storage, name)


@pages.post("/repositories/<storage>/<name>/uploads")
async def cancel_upload(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Cancel one."""
    parameters = {"repository": f"{storage}/{name}", "id": form.text("id")}
    try:
        await visit.api("DELETE", "/repository/<repository>/uploads/<id>", parameters)
    except REFUSED as error:
        return await _uploads_page(visit, storage, name, error=str(error))
    return visit.redirect_to("repositories", storage, name, "uploads")


async def _uploads_page(visit: Visit, storage: str, name: str, error: str = "") -> Response:
    query: dict[str, Any] = {"limit": PER_PAGE}
    query |= {each: visit.query(each) for each in ("cursor",) if visit.query(each)}
    place = {"repository": f"{storage}/{name}"}
    return visit.page(
        "repositories/uploads.html",
        repository=await find_repository(visit, storage, name),
        tab="settings",
        listed=await visit.api("GET", "/repository/<repository>/uploads", place, query=query),
        error=error,
    )


@pages.get("/repositories/<storage>/<name>/tree/")
async def show_root(visit: Visit, storage: str, name: str) -> Response:
    """The files and folders at the root of the repository."""
    return await show_tree(visit, storage, name, "")


@pages.get("/repositories/<storage>/<name>/tree/<path:path>")
async def show_tree(visit: Visit, storage: str, name: str, path: str) -> Response:
    """The files and folders of a folder."""
    repository = await find_repository(visit, storage, name)
    query: dict[str, Any] = {"limit": PER_LEVEL}
    if visit.query("cursor"):
        query["cursor"] = visit.query("cursor")
    operation = "/repository/<repository>/tree/<path:path>"
    listed = await visit.api(
        "GET", operation, {"repository": f"{storage}/{name}", "path": path.strip("/")}, query=query
    )
    # a folder that is longer than a page comes in the order of the database
    whole = listed.next is None and "cursor" not in query
    steps = [step for step in path.split("/") if step]
    above = [(step, "/".join(steps[: at + 1])) for at, step in enumerate(steps)]
    return visit.page(
        "repositories/tree.html",
        repository=repository,
        tab="files",
        listed=listed,
        entries=sorted_rows(visit, listed.items, FILE_COLUMNS, "name") if whole else listed.items,
        order=order_of(visit, FILE_COLUMNS, "name") if whole else "",
        above=above,
    )


@pages.get("/repositories/<storage>/<name>/upstreams")
async def show_upstreams(visit: Visit, storage: str, name: str) -> Response:
    """The routes of a proxy repository, with their health and the figures of the cache."""
    repository = await find_repository(visit, storage, name)
    place = {"repository": f"{storage}/{name}"}
    state = await visit.api("GET", "/repository/<repository>/upstream", place)
    followed = None
    with suppress(NotFound):
        followed = await visit.api("GET", "/repository/<repository>/replication", place)
    return visit.page(
        "repositories/upstreams.html",
        repository=repository,
        tab="upstreams",
        state=state,
        followed=followed,
        routes=sorted_rows(visit, state.routes, ROUTE_COLUMNS, "-priority"),
        order=order_of(visit, ROUTE_COLUMNS, "-priority"),
    )


@pages.get("/repositories/<storage>/<name>/vulnerabilities")
async def show_vulnerabilities(visit: Visit, storage: str, name: str) -> Response:
    """The known vulnerabilities of versions that are stored in the repository, or in its members."""
    repository = await find_repository(visit, storage, name)
    query: dict[str, Any] = {"repository": f"{storage}/{name}", "limit": PER_PAGE}
    query |= {each: visit.query(each) for each in ("cursor", "severity", "sort") if visit.query(each)}
    return visit.page(
        "repositories/vulnerabilities.html",
        repository=repository,
        tab="vulnerabilities",
        found=await visit.api("GET", "/advisories", query=query),
        chosen=visit.query("severity"),
        order=visit.query("sort") or "-severity",
    )


@pages.get("/repositories/<storage>/<name>/past")
async def show_past(visit: Visit, storage: str, name: str) -> Response:
    """How clients are set up for the repository as it was at a time, and what was changed since; or only the form."""
    repository = await find_repository(visit, storage, name)
    place, at = {"repository": f"{storage}/{name}"}, visit.query("at").strip()
    found, snippets, error = None, (), ""
    if at:
        query: dict[str, Any] = {"at": at, "limit": PER_PAGE}
        query |= {each: visit.query(each) for each in ("cursor",) if visit.query(each)}
        try:
            found = await visit.api("GET", "/repository/<repository>/snapshot", place, query=query)
            snippets = await visit.api("GET", "/repository/<repository>/setup", place, query={"at": at})
        except Invalid as refused:
            error = str(refused)
    return visit.page(
        "repositories/past.html",
        repository=repository,
        tab="packages",
        at=at,
        found=found,
        snippets=snippets,
        error=error,
    )


async def _members(visit: Visit, repository: Any, place: str) -> Any:
    """The members of a virtual repository in the order in which they are asked, for those who may change them."""
    if repository.type != "Virtual" or "edit" not in repository.actions:
        return ()
    return (await visit.api("GET", "/repository/<repository>/members", {"repository": place})).members


async def _own_page(visit: Visit, place: str) -> Markup | None:
    """The page that the configuration of the repository has, rendered; None without one, and below other lists."""
    if visit.query("q") or visit.query("cursor"):
        return None
    try:
        raw = await visit.api("GET", "/repository/<repository>/page", {"repository": place})
    except NotFound:
        return None
    return await visit.readmes.render(raw.body.decode(), "text/markdown")


@pages.get(UPLOAD)
async def show_upload(visit: Visit, storage: str, name: str) -> Response:
    """The form that publishes a file."""
    return await _upload_page(visit, storage, name)


@pages.post(UPLOAD, file=True)
async def upload(visit: Visit, parts: AsyncIterator[Part], storage: str, name: str) -> Response:
    """Publish the file of the form, and say as what; or why not, with the status that a client would get."""
    place = {"repository": f"{storage}/{name}"}
    try:
        done = await visit.api("POST", "/repository/<repository>/upload", place, parts=parts)
    except AuthenticationRequired:
        raise
    except (PkgrepoError, Refusal) as error:
        refusal = error_table(lambda _: visit).refusal(visit.request, error)
        return await _upload_page(visit, storage, name, status=refusal.status, error=refusal.sentence)
    return await _upload_page(visit, storage, name, status=201 if done.changed else 200, done=done)


async def _upload_page(
    visit: Visit, storage: str, name: str, *, status: int = 200, error: str = "", done: Any = None
) -> Response:
    repository = await find_repository(visit, storage, name)
    form = await visit.api("GET", "/repository/<repository>/upload", {"repository": f"{storage}/{name}"})
    return visit.page(
        "repositories/upload.html",
        status=status,
        repository=repository,
        tab="upload",
        form=form,
        done=done,
        error=error,
    )


@pages.get("/repositories/<storage>/<name>/explain")
async def show_explanation(visit: Visit, storage: str, name: str) -> Response:
    """Which members and routes decided what clients get of a package, as boxes; without a package, the form."""
    repository = await find_repository(visit, storage, name)
    asked = {each: visit.query(each).strip() for each in ("package", "version")}
    found, status, error = None, 200, None
    if asked["package"]:
        try:
            found = await visit.api("GET", "/explain", query={"repository": f"{storage}/{name}", **asked})
        except (Invalid, NotFound) as refused:
            status, error = (422 if isinstance(refused, Invalid) else 404), str(refused)
    steps = () if found is None else groupby(found.steps, key=lambda step: step.repository)
    return visit.page(
        "repositories/explain.html",
        status=status,
        repository=repository,
        tab="explain",
        asked=asked,
        found=found,
        error=error,
        groups=[(place, list(each)) for place, each in steps],
        signs=STEP_SIGNS,
    )


@pages.get("/repositories/<storage>/<name>/contents/<path:path>")
async def show_contents(visit: Visit, storage: str, name: str, path: str) -> Response:
    """The entries of an archive, with a filter; with the name of one in the query, its text."""
    repository = await find_repository(visit, storage, name)
    place = {"repository": f"{storage}/{name}", "path": path}
    if visit.query("entry"):
        return await _entry_text(visit, repository, place)
    found = error = None
    try:
        found = await visit.api("GET", "/repository/<repository>/contents/<path:path>", place)
    except Invalid as refused:
        error = str(refused)
    entries, text, folder = found.entries if found else [], visit.query("q").lower(), visit.query("folder")
    entries = [each for each in entries if text in each.name.lower()] if text else _level(entries, folder)
    rows = page_of_rows(visit, entries, ENTRY_COLUMNS, "name", ENTRIES_PER_PAGE)
    steps = folder.split("/") if folder else []
    return visit.page(
        "repositories/contents.html",
        repository=repository,
        tab="files",
        path=path,
        found=found,
        error=error,
        rows=rows,
        above=[(step, "/".join(steps[: at + 1])) for at, step in enumerate(steps)],
    )


@frozen
class Folder:
    """A folder of an archive, in a list of its entries: how many files are in it, and their size in bytes."""

    name: str
    files: int
    size: int
    kind: str = "folder"


def _level(entries: Sequence[Any], folder: str) -> list[Any]:
    """The folders and the other entries that are directly in a folder of an archive."""
    start = f"{folder}/" if folder else ""
    folders: dict[str, Folder] = {}
    others = []
    for each in entries:
        name = each.name.rstrip("/")
        if not name.startswith(start) or name == folder:
            continue
        step, below, _ = name[len(start) :].partition("/")
        if not below and each.kind != "folder":
            others.append(each)
            continue
        known = folders.get(step, Folder(start + step, 0, 0))
        is_file = each.kind != "folder"
        folders[step] = Folder(known.name, known.files + is_file, known.size + each.size * is_file)
    return [*folders.values(), *others]


async def _entry_text(visit: Visit, repository: Any, place: dict[str, str]) -> Response:
    entry, text, error = visit.query("entry"), "", None
    try:
        raw = await visit.api("GET", "/repository/<repository>/text/<path:path>", place, query={"entry": entry})
        text = raw.body.decode()
    except Invalid as refused:
        error = str(refused)
    return visit.page(
        "repositories/text.html",
        repository=repository,
        tab="files",
        path=place["path"],
        entry=entry,
        lines=await visit.readmes.lines(text, entry) if text else [],
        error=error,
    )
