"""A package with its versions, and one version with its readme and files."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from attrs import frozen

from pkgrepo.archives.listing import LONGEST_TEXT, is_archive
from pkgrepo.errors import Invalid, NotFound
from pkgrepo.http.responses import Response
from pkgrepo.web.rendering.languages import Language, marked, said
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

NEEDS: Final = 100  # dependencies that are shown
MOST_REQUIRED: Final = 4  # interpreters and their versions that are shown
VERSIONS: Final = 20  # beside a version
SPANS: Final = (30, 90, 365)  # days of downloads that a page shows; the second one unless asked
PER_PAGE: Final = 100  # on the page of all versions
CHANGES: Final = 300  # files that differ between versions
ENTRIES: Final = 100  # of its archive
FILES: Final = 50  # of a version that are shown on its page
DETAILS: Final = {
    "name": marked("Name"),
    "organization": marked("Organisation"),
    "packaging": marked("Packaging"),
    "parent": marked("Parent"),
    "relocated_to": marked("Moved to"),
    "subdir": marked("Platform"),
}
MOST_CLASSIFIERS: Final = 60
LABEL: Final = "org.opencontainers.image."
LABELS: Final = (
    "title",
    "description",
    "version",
    "licenses",
    "authors",
    "vendor",
    "created",
    "revision",
    "url",
    "source",
    "documentation",
)
LABEL_LINKS: Final = {marked("Homepage"): "url", marked("Source"): "source", marked("Documentation"): "documentation"}
REPOSITORY: Final = "/repositories/<storage>/<name>"
PACKAGE: Final = f"{REPOSITORY}/packages/<package>"
VERSION: Final = f"{PACKAGE}/versions/<version>"
OF_PACKAGE: Final = "/package/<repository>/<package>"  # in the API
OF_VERSION: Final = f"{OF_PACKAGE}/versions/<version>"
LISTED: Final = ("q", "sort", "cursor")  # the filter, the order and the page of a list
MOST_TARGETS: Final = 50  # repositories that a form lists


pages = PageTable()


@pages.get(PACKAGE)
async def show_package(visit: Visit) -> Response:
    """The latest version of a package."""
    summary = await visit.api("GET", OF_PACKAGE)
    if summary.member is not None:
        return _go_to_member(visit, PACKAGE, summary)
    latest = summary.latest
    if latest is None:
        listed = await visit.api("GET", f"{OF_PACKAGE}/versions", query={"limit": 1})
        if not listed.items:
            raise NotFound("version of package", visit.at["package"])
        latest = listed.items[0].version
    visit.at["version"] = latest
    return await _show(visit, summary)


@pages.get(f"{PACKAGE}/versions")
async def show_versions(visit: Visit) -> Response:
    """All versions of a package."""
    repository = await visit.repository()
    if repository.type == "Virtual":
        return _go_to_member(visit, f"{PACKAGE}/versions", await visit.api("GET", OF_PACKAGE))
    images = visit.format_of(repository).images is not None
    more = {"platforms": True, "without_statements": True} if images else {}
    query = visit.asked(*LISTED, limit=PER_PAGE, **more)
    return visit.page(
        "packages/tags.html" if images else "packages/versions.html",
        repository=repository,
        package=visit.at["package"],
        listed=await visit.api("GET", f"{OF_PACKAGE}/versions", query=query),
        order=visit.query("sort") or ("-published_at" if images else "-version"),
    )


@pages.get(VERSION)
async def show_version(visit: Visit) -> Response:
    """A version: how to install it, its readme, files and dependencies, and the other versions."""
    summary = await visit.api("GET", OF_PACKAGE)
    if summary.member is not None:
        return _go_to_member(visit, VERSION, summary)
    return await _show(visit, summary)


def _go_to_member(visit: Visit, page: str, summary: Any) -> Response:
    """A page of the member of a virtual repository that has the package."""
    storage, _, name = summary.member.partition("/")
    return visit.redirect(page, storage=storage, name=name, package=summary.name)


async def _show(visit: Visit, summary: Any) -> Response:
    repository = await visit.repository()
    found = await visit.api("GET", OF_VERSION, query={"files": FILES})
    listed = await visit.api("GET", f"{OF_PACKAGE}/versions", query={"limit": VERSIONS, "without_statements": True})
    about = {"package": found.package, "version": found.version}
    if isinstance(artifact := found.metadata.get("artifact_type"), str):
        about["artifact"] = artifact
    snippets = await visit.api("GET", "/repository/<repository>/setup", query=about)
    images = visit.format_of(repository).images is not None
    image = await _if_readable(visit, "image") if images else None
    labels = _labels(found, image)
    advisories = await _if_readable(visit, "advisories")
    downloads = await visit.api("GET", f"{OF_PACKAGE}/downloads", query={"days": SPANS[1]})
    pins = await visit.api("GET", f"{OF_PACKAGE}/pins")
    return visit.page(
        "packages/version.html",
        repository=repository,
        pin=next((each for each in pins if each.version == found.version), None),
        package=summary.name,
        release=found.version,
        summary=summary,
        found=found,
        listed=listed,
        snippets=snippets,
        needs=NEEDS,
        readme=await _readme(visit),
        inside=await _inside(visit, repository, found),
        image=image,
        labels=labels,
        advisories=advisories,
        severities=_severities(advisories),
        requires=_requires(found.metadata, visit.language),
        details=_details(found),
        needing=await _needing(visit, repository),
        classifiers=_classifiers(found.metadata),
        attestations=None if images else await visit.api("GET", f"{OF_VERSION}/attestations"),
        links=_web_links({label: labels[name] for label, name in LABEL_LINKS.items()} | found.links),
        downloads=downloads,
        counted=_counted(downloads),
        targets=await _targets(visit, repository),
    )


@pages.get(f"{PACKAGE}/difference")
async def show_difference(visit: Visit) -> Response:
    """What differs between two versions of a package; without any in the query, a form that asks for them."""
    repository = await visit.repository()
    listed = await visit.api("GET", f"{OF_PACKAGE}/versions", query={"limit": PER_PAGE})
    asked = {each: visit.query(each) for each in ("before", "after")}
    found, lines, entry = None, [], visit.query("entry")
    if all(asked.values()) and entry:
        try:
            raw = await visit.api("GET", f"{OF_PACKAGE}/difference/text", query={**asked, "entry": entry})
            lines = raw.body.decode().split("\n")[2:-1]  # after the two names
        except Invalid as refused:
            visit.error = str(refused)
    elif all(asked.values()):
        found = await visit.api("GET", f"{OF_PACKAGE}/difference", query=asked)
    known = [each.version for each in listed.items]
    return visit.page(
        "packages/difference.html",
        repository=repository,
        package=visit.at["package"],
        found=found,
        most=CHANGES,
        entry=entry,
        lines=lines,
        versions=list(dict.fromkeys([*known, *filter(None, asked.values())])),
        before=asked["before"] or (known[1:2] or known or [""])[0],
        after=asked["after"] or (known or [""])[0],
    )


@pages.get(f"{PACKAGE}/dependents")
async def show_dependents(visit: Visit) -> Response:
    """The packages of this server that need a package."""
    repository = await visit.repository()
    version = visit.query("version") or (await visit.api("GET", OF_PACKAGE)).latest or ""
    query = visit.asked(*LISTED, limit=PER_PAGE, count=True, version=version)
    listed = await visit.api("GET", f"{OF_PACKAGE}/dependents", query=query)
    package = visit.at["package"]
    return visit.page(
        "packages/dependents.html", repository=repository, package=package, listed=listed, accepted=version
    )


@pages.get(f"{PACKAGE}/downloads")
async def show_downloads(visit: Visit) -> Response:
    """The downloads of a package by day, as a picture and as a table."""
    repository = await visit.repository()
    days = int(visit.query("days")) if visit.query("days") in map(str, SPANS) else SPANS[1]
    found = await visit.api("GET", f"{OF_PACKAGE}/downloads", query={"days": days})
    return visit.page(
        "packages/downloads.html",
        repository=repository,
        package=visit.at["package"],
        found=found,
        counted=_counted(found),
        spans=SPANS,
    )


@pages.get(f"{VERSION}/files")
async def show_files(visit: Visit) -> Response:
    """All files of a version."""
    return visit.page(
        "packages/files.html",
        repository=await visit.repository(),
        package=visit.at["package"],
        release=visit.at["version"],
        listed=await visit.api("GET", f"{OF_VERSION}/files", query=visit.asked(*LISTED, limit=PER_PAGE)),
        order=visit.query("sort") or "name",
    )


@pages.post(f"{VERSION}/yank", then=VERSION)
async def yank_version(visit: Visit, form: Form) -> None:
    """Yank the version, or take that back."""
    if form.flag("undo"):
        await visit.api("POST", f"{OF_VERSION}/unyank")
    else:
        await visit.api("POST", f"{OF_VERSION}/yank", fields=form.texts("reason"))


@pages.post(f"{VERSION}/pin", then=VERSION)
async def pin_version(visit: Visit, form: Form) -> None:
    """Pin the version, or take that back."""
    if form.flag("undo"):
        await visit.api("DELETE", f"{OF_VERSION}/pin")
    else:
        await visit.api("PUT", f"{OF_VERSION}/pin", fields=form.texts("reason"))


@pages.post(f"{VERSION}/promote")
async def promote_version(visit: Visit, form: Form) -> Response:
    """Copy or move the version to another repository, and show it there."""
    fields = {"to": form.text("to"), "move": form.flag("move")}
    await visit.api("POST", f"{OF_VERSION}/promote", fields=fields)
    storage, _, name = form.text("to").partition("/")
    return visit.redirect(VERSION, storage=storage, name=name)


@pages.post(f"{VERSION}/delete", then=REPOSITORY)
async def delete_version(visit: Visit, form: Form) -> None:
    """Delete the version, whose name is typed as confirmation."""
    if form.text("confirm") != visit.at["version"]:
        raise Invalid(said("type %(name)s to confirm that it is deleted", name=visit.at["version"]))
    await visit.api("DELETE", OF_VERSION)


async def _targets(visit: Visit, repository: Any) -> list[Any]:
    """The repositories to which the caller may promote versions of this one."""
    if not visit.csrf or repository.type != "Hosted":
        return []
    query = {"type": "Hosted", "format": repository.format, "storage": repository.storage_name, "limit": MOST_TARGETS}
    listed = await visit.api("GET", "/repository", query=query)
    others = [f"{each.storage_name}/{each.name}" for each in listed.items if each.id != repository.id]
    records = [await visit.api("GET", "/repository/<repository>", {"repository": each}) for each in others]
    return [each for each in records if "write" in each.actions]


async def _readme(visit: Visit) -> Any:
    try:
        raw = await visit.api("GET", f"{OF_VERSION}/readme")
    except NotFound:
        return None
    kind = dict(raw.headers)[b"X-Readme-Type"].decode("ascii")
    return await visit.readmes.render(raw.body.decode("utf-8", "replace"), kind)


@frozen
class Inside:
    """What is shown of an archive at a ``path``: texts, as names in it and their lines, and a list of other entries."""

    path: str
    texts: list[tuple[str, list[Any]]]
    entries: list[Any]


async def _inside(visit: Visit, repository: Any, found: Any) -> Inside | None:
    """Those files in the archive of a version that its format has shown; None if it has none, or there are none."""
    wanted = visit.format_of(repository).look.inside
    archive = next((each for each in found.files if wanted and is_archive(each.name)), None)
    if archive is None:
        return None
    at = {"path": archive.path}
    try:
        listed = await visit.api("GET", "/repository/<repository>/contents/<path:path>", at)
    except (Invalid, NotFound):  # damaged, or not kept
        return None
    inner = [(each.name.removeprefix("./").partition("/")[2], each) for each in listed.entries if each.kind == "file"]
    shown = Inside(archive.path, [], [])
    for name, each in inner:
        if name in wanted and each.size <= LONGEST_TEXT:
            raw = await visit.api("GET", "/repository/<repository>/text/<path:path>", at, query={"entry": each.name})
            shown.texts.append((each.name, await visit.readmes.lines(raw.body.decode(), name)))
        elif name.startswith(wanted) and len(shown.entries) < ENTRIES:
            shown.entries.append(each)
    return shown if shown.texts or shown.entries else None


async def _if_readable(visit: Visit, what: str) -> Any:
    """What an image is made of, or the known vulnerabilities; None of an image whose manifest cannot be read."""
    try:
        return await visit.api("GET", f"{OF_VERSION}/{what}")
    except (Invalid, NotFound):
        return None


def _counted(found: Any) -> list[tuple[str, int]]:
    """Days and their downloads, as pictures take them."""
    return [(each.day.isoformat(), each.count) for each in found.days]


def _severities(advisories: Any) -> list[tuple[str, int]]:
    """How many of the advisories that are shown have which severity, the most frequent one first."""
    return [] if advisories is None else Counter(each.severity for each in advisories.items).most_common()


def _labels(found: Any, image: Any) -> dict[str, str]:
    """What an image says of itself: annotations of its manifest, and labels of its first platform."""
    labels = image.platforms[0].labels if image is not None and image.platforms else {}
    said = {**labels, **(found.metadata.get("annotations", {}) if image is not None else {})}
    return {name: str(said.get(f"{LABEL}{name}", "")) for name in LABELS}


async def _needing(visit: Visit, repository: Any) -> Any:
    """The first page of the packages that need one, for those who may delete it; None for others."""
    if "delete" not in repository.actions or visit.format_of(repository).images:
        return None
    return await visit.api("GET", f"{OF_PACKAGE}/dependents", query={"limit": 1, "count": True})


def _classifiers(metadata: dict[str, Any]) -> list[str]:
    found = metadata.get("classifiers")
    return [str(each) for each in found[:MOST_CLASSIFIERS]] if isinstance(found, list) else []


def _details(found: Any) -> list[tuple[str, str]]:
    """What the metadata of some formats say beside what all have."""
    said = {label: found.metadata.get(key) for key, label in DETAILS.items()}
    return [(label, text) for label, text in said.items() if isinstance(text, str) and text not in ("", found.package)]


def _requires(metadata: dict[str, Any], language: Language) -> list[str]:
    """What a version needs of the interpreter that runs it, in the words of its format's metadata."""
    engines = metadata.get("engines")
    wanted = {"Python": metadata.get("requires_python"), "Ruby": metadata.get("required_ruby_version")}
    wanted |= {
        "Java": language.text("%(version)s or later", version=java) if (java := metadata.get("requires_java")) else None
    }
    wanted |= engines if isinstance(engines, dict) else {}
    return [f"{name} {text}" for name, text in wanted.items() if isinstance(text, str) and text][:MOST_REQUIRED]


def _web_links(links: dict[str, str]) -> list[tuple[str, str]]:
    """The links that a browser may follow."""
    return [(label, url) for label, url in links.items() if url.lower().startswith(("https://", "http://"))]
