"""Packages, files, set-up and upstreams of a repository, and what is inside its archives."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import frozen
from markupsafe import Markup

from pkgrepo.errors import AuthenticationRequired, Invalid, NotFound, PkgrepoError
from pkgrepo.http.reading.multipart import Part
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.web.refusals import error_table
from pkgrepo.web.tables import Columns, PageTable, order_of, page_of_rows, sorted_rows
from pkgrepo.web.visits import Visit

PER_PAGE: Final = 50
REPOSITORY: Final = "/repositories/<storage>/<name>"
UPLOAD: Final = f"{REPOSITORY}/upload"
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


@pages.get(REPOSITORY)
async def show_packages(visit: Visit) -> Response:
    """The set-up card, the repository's own page, and the packages, with a filter."""
    repository = await visit.repository()
    query = visit.asked("q", "sort", "cursor", limit=PER_PAGE)
    return visit.page(
        "repositories/packages.html",
        repository=repository,
        tab="packages",
        listed=await visit.api("GET", "/repository/<repository>/packages", query=query),
        order=visit.query("sort") or "name",
        snippets=await visit.api("GET", "/repository/<repository>/setup"),
        members=await _members(visit, repository),
        own_page=await _own_page(visit),
    )


@pages.get(f"{REPOSITORY}/uploads")
async def show_uploads(visit: Visit) -> Response:
    """The uploads of layers that have not ended."""
    return visit.page(
        "repositories/uploads.html",
        repository=await visit.repository(),
        tab="settings",
        listed=await visit.api("GET", "/repository/<repository>/uploads", query=visit.asked("cursor", limit=PER_PAGE)),
    )


pages.operation(f"{REPOSITORY}/uploads", "DELETE", "/repository/<repository>/uploads/<id>", page=show_uploads)


@pages.get(f"{REPOSITORY}/tree/")
@pages.get(f"{REPOSITORY}/tree/<path:path>")
async def show_tree(visit: Visit) -> Response:
    """The files and folders of a folder, or at the root of the repository."""
    repository, path = await visit.repository(), visit.at.get("path", "")
    query = visit.asked("cursor", limit=PER_LEVEL)
    place = {"path": path.strip("/")}
    listed = await visit.api("GET", "/repository/<repository>/tree/<path:path>", place, query=query)
    # a folder that is longer than a page comes in the order of the database
    whole = listed.next is None and "cursor" not in query
    return visit.page(
        "repositories/tree.html",
        repository=repository,
        tab="files",
        listed=listed,
        entries=sorted_rows(visit, listed.items, FILE_COLUMNS, "name") if whole else listed.items,
        order=order_of(visit, FILE_COLUMNS, "name") if whole else "",
        above=_above(path),
    )


def _above(path: str) -> list[tuple[str, str]]:
    """The folders on the way to one, each with its path, and itself."""
    steps = [step for step in path.split("/") if step]
    return [(step, "/".join(steps[: at + 1])) for at, step in enumerate(steps)]


@pages.get(f"{REPOSITORY}/upstreams")
async def show_upstreams(visit: Visit) -> Response:
    """The routes of a proxy repository, with their health and the figures of the cache."""
    repository = await visit.repository()
    state = await visit.api("GET", "/repository/<repository>/upstream")
    followed = None
    with suppress(NotFound):
        followed = await visit.api("GET", "/repository/<repository>/replication")
    return visit.page(
        "repositories/upstreams.html",
        repository=repository,
        tab="upstreams",
        state=state,
        followed=followed,
        routes=sorted_rows(visit, state.routes, ROUTE_COLUMNS, "-priority"),
        order=order_of(visit, ROUTE_COLUMNS, "-priority"),
    )


@pages.get(f"{REPOSITORY}/vulnerabilities")
async def show_vulnerabilities(visit: Visit) -> Response:
    """The known vulnerabilities of versions that are stored in the repository, or in its members."""
    repository = await visit.repository()
    query = visit.asked("cursor", "severity", "sort", repository=visit.at["repository"], limit=PER_PAGE)
    return visit.page(
        "repositories/vulnerabilities.html",
        repository=repository,
        tab="vulnerabilities",
        found=await visit.api("GET", "/advisories", query=query),
        chosen=visit.query("severity"),
        order=visit.query("sort") or "-severity",
    )


@pages.get(f"{REPOSITORY}/past")
async def show_past(visit: Visit) -> Response:
    """How clients are set up for the repository as it was at a time, and what was changed since; or only the form."""
    repository, at = await visit.repository(), visit.query("at").strip()
    found, snippets = None, ()
    if at:
        try:
            query = visit.asked("cursor", at=at, limit=PER_PAGE)
            found = await visit.api("GET", "/repository/<repository>/snapshot", query=query)
            snippets = await visit.api("GET", "/repository/<repository>/setup", query={"at": at})
        except Invalid as refused:
            visit.error = str(refused)
    return visit.page(
        "repositories/past.html", repository=repository, tab="packages", at=at, found=found, snippets=snippets
    )


async def _members(visit: Visit, repository: Any) -> Any:
    """The members of a virtual repository in the order in which they are asked, for those who may change them."""
    if repository.type != "Virtual" or "edit" not in repository.actions:
        return ()
    return (await visit.api("GET", "/repository/<repository>/members")).members


async def _own_page(visit: Visit) -> Markup | None:
    """The page that the configuration of the repository has, rendered; None without one, and below other lists."""
    if visit.query("q") or visit.query("cursor"):
        return None
    try:
        raw = await visit.api("GET", "/repository/<repository>/page")
    except NotFound:
        return None
    return await visit.readmes.render(raw.body.decode(), "text/markdown")


@pages.get(UPLOAD)
async def show_upload(visit: Visit, *, status: int = 200, done: Any = None) -> Response:
    """The form that publishes a file; with what was ``done`` with one, if it has just been sent."""
    return visit.page(
        "repositories/upload.html",
        status=status,
        repository=await visit.repository(),
        tab="upload",
        form=await visit.api("GET", "/repository/<repository>/upload"),
        done=done,
    )


@pages.post(UPLOAD, file=True)
async def upload(visit: Visit, parts: AsyncIterator[Part]) -> Response:
    """Publish the file of the form, and say as what; or why not, with the status that a client would get."""
    try:
        done = await visit.api("POST", "/repository/<repository>/upload", parts=parts)
    except AuthenticationRequired:
        raise
    except (PkgrepoError, Refusal) as error:
        refusal = error_table(visit).refusal(visit.request, error)
        visit.error = refusal.sentence
        return await show_upload(visit, status=refusal.status)
    return await show_upload(visit, status=201 if done.changed else 200, done=done)


@pages.get(f"{REPOSITORY}/explain")
async def show_explanation(visit: Visit) -> Response:
    """Which members and routes decided what clients get of a package, as boxes; without a package, the form."""
    repository = await visit.repository()
    asked = {each: visit.query(each).strip() for each in ("package", "version")}
    found, status = None, 200
    if asked["package"]:
        try:
            found = await visit.api("GET", "/explain", query={"repository": visit.at["repository"], **asked})
        except (Invalid, NotFound) as refused:
            status, visit.error = (422 if isinstance(refused, Invalid) else 404), str(refused)
    groups: dict[str, list[Any]] = {}
    for step in () if found is None else found.steps:
        groups.setdefault(step.repository, []).append(step)
    return visit.page(
        "repositories/explain.html",
        status=status,
        repository=repository,
        tab="explain",
        asked=asked,
        found=found,
        groups=list(groups.items()),
        signs=STEP_SIGNS,
        **_roles(found),
    )


def _roles(found: Any) -> dict[str, Any]:
    """
    What each repository does: its kind of role by name, why it hides a version, and those that serve what was asked.

    Without a version, one that hides all that it has holds the package back.
    """
    if found is None:
        return {"roles": {}, "why": {}, "serves": ()}
    if found.roles:
        roles = {each.repository: each.kind for each in found.roles}
        return {"roles": roles, "why": {each.repository: each.why for each in found.roles}, "serves": ()}
    roles = {each.repository: "hides" for each in found.serving if each.hides_all}
    serves = [each.repository for each in found.serving if found.outcome == "served" and not each.hides_all]
    return {"roles": roles, "why": {}, "serves": serves}


@pages.get(f"{REPOSITORY}/contents/<path:path>")
async def show_contents(visit: Visit) -> Response:
    """The entries of an archive, with a filter; with the name of one in the query, its text."""
    repository = await visit.repository()
    if visit.query("entry"):
        return await _entry_text(visit, repository)
    found = None
    try:
        found = await visit.api("GET", "/repository/<repository>/contents/<path:path>")
    except Invalid as refused:
        visit.error = str(refused)
    entries, text, folder = found.entries if found else [], visit.query("q").lower(), visit.query("folder")
    entries = [each for each in entries if text in each.name.lower()] if text else _level(entries, folder)
    return visit.page(
        "repositories/contents.html",
        repository=repository,
        tab="files",
        path=visit.at["path"],
        found=found,
        rows=page_of_rows(visit, entries, ENTRY_COLUMNS, "name", ENTRIES_PER_PAGE),
        above=_above(folder),
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


async def _entry_text(visit: Visit, repository: Any) -> Response:
    entry, text = visit.query("entry"), ""
    try:
        raw = await visit.api("GET", "/repository/<repository>/text/<path:path>", query={"entry": entry})
        text = raw.body.decode()
    except Invalid as refused:
        visit.error = str(refused)
    return visit.page(
        "repositories/text.html",
        repository=repository,
        tab="files",
        path=visit.at["path"],
        entry=entry,
        lines=await visit.readmes.lines(text, entry) if text else [],
    )
