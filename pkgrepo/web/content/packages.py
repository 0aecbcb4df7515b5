"""A package with its versions, and one version with its readme and files."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from pkgrepo.errors import Invalid, NotFound
from pkgrepo.http.responses import Response
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit, find_repository

NEEDS: Final = 100  # dependencies that are shown
MOST_REQUIRED: Final = 4  # interpreters and their versions that are shown
VERSIONS: Final = 20  # beside a version
SPANS: Final = (30, 90, 365)  # days of downloads that a page shows; the second one unless asked
PER_PAGE: Final = 100  # on the page of all versions
CHANGES: Final = 300  # files that differ between versions
FILES: Final = 50  # of a version that are shown on its page
DETAILS: Final = {
    "name": "Name",
    "organization": "Organisation",
    "packaging": "Packaging",
    "parent": "Parent",
    "relocated_to": "Moved to",
    "subdir": "Platform",
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
LABEL_LINKS: Final = {"Homepage": "url", "Source": "source", "Documentation": "documentation"}
REPOSITORY: Final = "/repositories/<storage>/<name>"
PACKAGE: Final = f"{REPOSITORY}/packages/<package>"
VERSION: Final = f"{PACKAGE}/versions/<version>"
MOST_TARGETS: Final = 50  # repositories that a form lists


pages = PageTable()


@pages.get(PACKAGE)
async def show_package(visit: Visit, storage: str, name: str, package: str) -> Response:
    """The latest version of a package."""
    found = await visit.api(
        "GET", "/package/<repository>/<package>", {"repository": f"{storage}/{name}", "package": package}
    )
    latest = found.latest
    if latest is None:
        listed = await _versions(visit, storage, name, package, limit=1)
        if not listed.items:
            raise NotFound("version of package", package)
        latest = listed.items[0].version
    return await show_version(visit, storage, name, package, latest)


@pages.get(f"{PACKAGE}/versions")
async def show_versions(visit: Visit, storage: str, name: str, package: str) -> Response:
    """All versions of a package."""
    repository = await find_repository(visit, storage, name)
    images = visit.format_of(repository).images is not None
    more: dict[str, str | int] = {"platforms": True, "without_statements": True} if images else {}
    listed = await _versions(visit, storage, name, package, limit=PER_PAGE, **more, **_order(visit))
    usual = "-published_at" if images else "-version"
    return visit.page(
        "packages/tags.html" if images else "packages/versions.html",
        repository=repository,
        package=package,
        listed=listed,
        order=visit.query("sort") or usual,
    )


@pages.get(VERSION)
async def show_version(visit: Visit, storage: str, name: str, package: str, version: str) -> Response:
    """A version: how to install it, its readme, files and dependencies, and the other versions."""
    repository = await find_repository(visit, storage, name)
    place = {"repository": f"{storage}/{name}", "package": package}
    found = await visit.api(
        "GET",
        "/package/<repository>/<package>/versions/<version>",
        {**place, "version": version},
        query={"files": FILES},
    )
    summary = await visit.api("GET", "/package/<repository>/<package>", place)
    listed = await _versions(visit, storage, name, package, limit=VERSIONS, without_statements=True)
    snippets = await visit.api(
        "GET",
        "/repository/<repository>/setup",
        {"repository": f"{storage}/{name}"},
        query={"package": found.package, "version": found.version},
    )
    images = visit.format_of(repository).images is not None
    image = await _image(visit, {**place, "version": version}) if images else None
    labels = _labels(found, image)
    advisories = await _advisories(visit, {**place, "version": version})
    downloads = await _downloads(visit, place, SPANS[1])
    pins = await visit.api("GET", "/package/<repository>/<package>/pins", place)
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
        readme=await _readme(visit, place, version),
        image=image,
        labels=labels,
        advisories=advisories,
        severities=_severities(advisories),
        requires=_requires(found.metadata),
        details=_details(found),
        needing=await _needing(visit, repository, place),
        classifiers=_classifiers(found.metadata),
        attestations=await _attestations(visit, {**place, "version": version}) if not images else None,
        links=_web_links({label: labels[name] for label, name in LABEL_LINKS.items()} | found.links),
        downloads=downloads,
        counted=_counted(downloads),
        targets=await _targets(visit, repository),
    )


@pages.get(f"{PACKAGE}/difference")
async def show_difference(visit: Visit, storage: str, name: str, package: str) -> Response:
    """What differs between two versions of a package; without any in the query, a form that asks for them."""
    repository = await find_repository(visit, storage, name)
    listed = await _versions(visit, storage, name, package, limit=PER_PAGE)
    asked = {each: visit.query(each) for each in ("before", "after")}
    found = error = None
    lines: list[str] = []
    place, entry = {"repository": f"{storage}/{name}", "package": package}, visit.query("entry")
    if all(asked.values()) and entry:
        operation = "/package/<repository>/<package>/difference/text"
        try:
            raw = await visit.api("GET", operation, place, query={**asked, "entry": entry})
            lines = raw.body.decode().split("\n")[2:-1]  # after the two names
        except Invalid as refused:
            error = str(refused)
    elif all(asked.values()):
        found = await visit.api("GET", "/package/<repository>/<package>/difference", place, query=asked)
    known = [each.version for each in listed.items]
    return visit.page(
        "packages/difference.html",
        repository=repository,
        package=package,
        found=found,
        most=CHANGES,
        entry=entry,
        lines=lines,
        error=error,
        versions=list(dict.fromkeys([*known, *filter(None, asked.values())])),
        before=asked["before"] or (known[1:2] or known or [""])[0],
        after=asked["after"] or (known or [""])[0],
    )


@pages.get(f"{PACKAGE}/dependents")
async def show_dependents(visit: Visit, storage: str, name: str, package: str) -> Response:
    """The packages of this server that need a package."""
    repository = await find_repository(visit, storage, name)
    place = {"repository": f"{storage}/{name}", "package": package}
    version = visit.query("version") or (await visit.api("GET", "/package/<repository>/<package>", place)).latest or ""
    query: dict[str, str | int] = {"limit": PER_PAGE, "count": True, "version": version, **_order(visit)}
    listed = await visit.api("GET", "/package/<repository>/<package>/dependents", place, query=query)
    return visit.page(
        "packages/dependents.html", repository=repository, package=package, listed=listed, accepted=version
    )


@pages.get(f"{PACKAGE}/downloads")
async def show_downloads(visit: Visit, storage: str, name: str, package: str) -> Response:
    """The downloads of a package by day, as a picture and as a table."""
    repository = await find_repository(visit, storage, name)
    days = int(visit.query("days")) if visit.query("days") in map(str, SPANS) else SPANS[1]
    found = await _downloads(visit, {"repository": f"{storage}/{name}", "package": package}, days)
    return visit.page(
        "packages/downloads.html",
        repository=repository,
        package=package,
        found=found,
        counted=_counted(found),
        spans=SPANS,
    )


@pages.get(f"{VERSION}/files")
async def show_files(visit: Visit, storage: str, name: str, package: str, version: str) -> Response:
    """All files of a version."""
    repository = await find_repository(visit, storage, name)
    listed = await visit.api(
        "GET",
        "/package/<repository>/<package>/versions/<version>/files",
        {"repository": f"{storage}/{name}", "package": package, "version": version},
        query={"limit": PER_PAGE, **_order(visit)},
    )
    order = visit.query("sort") or "name"
    return visit.page(
        "packages/files.html", repository=repository, package=package, release=version, listed=listed, order=order
    )


@pages.post(f"{VERSION}/yank")
async def yank_version(visit: Visit, form: Form, storage: str, name: str, package: str, version: str) -> Response:
    """Yank the version, or take that back."""
    place = {"repository": f"{storage}/{name}", "package": package, "version": version}
    operation = "/package/<repository>/<package>/versions/<version>/"
    if form.flag("undo"):
        await visit.api("POST", f"{operation}unyank", place)
    else:
        await visit.api("POST", f"{operation}yank", place, fields={"reason": form.text("reason")})
    return visit.redirect_to("repositories", storage, name, "packages", package, "versions", version)


@pages.post(f"{VERSION}/pin")
async def pin_version(visit: Visit, form: Form, storage: str, name: str, package: str, version: str) -> Response:
    """Pin the version, or take that back."""
    place = {"repository": f"{storage}/{name}", "package": package, "version": version}
    operation = "/package/<repository>/<package>/versions/<version>/pin"
    if form.flag("undo"):
        await visit.api("DELETE", operation, place)
    else:
        await visit.api("PUT", operation, place, fields={"reason": form.text("reason")})
    return visit.redirect_to("repositories", storage, name, "packages", package, "versions", version)


@pages.post(f"{VERSION}/promote")
async def promote_version(visit: Visit, form: Form, storage: str, name: str, package: str, version: str) -> Response:
    """Copy or move the version to another repository, and show it there."""
    place = {"repository": f"{storage}/{name}", "package": package, "version": version}
    fields = {"to": form.text("to"), "move": form.flag("move")}
    await visit.api("POST", "/package/<repository>/<package>/versions/<version>/promote", place, fields=fields)
    target, _, of = form.text("to").partition("/")
    return visit.redirect_to("repositories", target, of, "packages", package, "versions", version)


@pages.post(f"{VERSION}/delete")
async def delete_version(visit: Visit, form: Form, storage: str, name: str, package: str, version: str) -> Response:
    """Delete the version, whose name is typed as confirmation."""
    place = {"repository": f"{storage}/{name}", "package": package}
    if form.text("confirm") != version:
        raise Invalid(f"type {version} to confirm that it is deleted")
    await visit.api("DELETE", "/package/<repository>/<package>/versions/<version>", {**place, "version": version})
    return visit.redirect_to("repositories", storage, name)


async def _targets(visit: Visit, repository: Any) -> list[Any]:
    """The repositories to which the caller may promote versions of this one."""
    if not visit.csrf or repository.type != "Hosted":
        return []
    query = {"type": "Hosted", "format": repository.format, "storage": repository.storage_name, "limit": MOST_TARGETS}
    listed = await visit.api("GET", "/repository", query=query)
    others = [each for each in listed.items if each.id != repository.id]
    records = [await find_repository(visit, each.storage_name, each.name) for each in others]
    return [each for each in records if "write" in each.actions]


async def _versions(visit: Visit, storage: str, name: str, package: str, **query: str | int) -> Any:
    operation = "/package/<repository>/<package>/versions"
    return await visit.api("GET", operation, {"repository": f"{storage}/{name}", "package": package}, query=query)


async def _readme(visit: Visit, place: dict[str, str], version: str) -> Any:
    operation = "/package/<repository>/<package>/versions/<version>/readme"
    try:
        raw = await visit.api("GET", operation, {**place, "version": version})
    except NotFound:
        return None
    kind = dict(raw.headers)[b"X-Readme-Type"].decode("ascii")
    return await visit.readmes.render(raw.body.decode("utf-8", "replace"), kind)


async def _advisories(visit: Visit, place: dict[str, str]) -> Any:
    """The known vulnerabilities; None of an image whose manifest cannot be read."""
    try:
        return await visit.api("GET", "/package/<repository>/<package>/versions/<version>/advisories", place)
    except (Invalid, NotFound):
        return None


async def _attestations(visit: Visit, place: dict[str, str]) -> Any:
    return await visit.api("GET", "/package/<repository>/<package>/versions/<version>/attestations", place)


async def _image(visit: Visit, place: dict[str, str]) -> Any:
    """What an image is made of; None if its manifest cannot be read."""
    try:
        return await visit.api("GET", "/package/<repository>/<package>/versions/<version>/image", place)
    except (Invalid, NotFound):
        return None


async def _downloads(visit: Visit, place: dict[str, str], days: int) -> Any:
    return await visit.api("GET", "/package/<repository>/<package>/downloads", place, query={"days": days})


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


async def _needing(visit: Visit, repository: Any, place: dict[str, str]) -> int:
    """How many packages need one, for those who may delete it; 0 for others."""
    if "delete" not in repository.actions or visit.format_of(repository).images:
        return 0
    query = {"limit": 1, "count": True}
    return int((await visit.api("GET", "/package/<repository>/<package>/dependents", place, query=query)).total)


def _classifiers(metadata: dict[str, Any]) -> list[str]:
    found = metadata.get("classifiers")
    return [str(each) for each in found[:MOST_CLASSIFIERS]] if isinstance(found, list) else []


def _details(found: Any) -> list[tuple[str, str]]:
    """What the metadata of some formats say beside what all have."""
    said = {label: found.metadata.get(key) for key, label in DETAILS.items()}
    return [(label, text) for label, text in said.items() if isinstance(text, str) and text not in ("", found.package)]


def _requires(metadata: dict[str, Any]) -> list[str]:
    """What a version needs of the interpreter that runs it, in the words of its format's metadata."""
    engines = metadata.get("engines")
    wanted = {"Python": metadata.get("requires_python"), "Ruby": metadata.get("required_ruby_version")}
    wanted |= {"Java": f"{java} or later" if (java := metadata.get("requires_java")) else None}
    wanted |= engines if isinstance(engines, dict) else {}
    return [f"{name} {text}" for name, text in wanted.items() if isinstance(text, str) and text][:MOST_REQUIRED]


def _order(visit: Visit) -> dict[str, str]:
    """The filter, the order and the page of a list that the query asks for."""
    return {each: visit.query(each) for each in ("q", "sort", "cursor") if visit.query(each)}


def _web_links(links: dict[str, str]) -> list[tuple[str, str]]:
    """The links that a browser may follow."""
    return [(label, url) for label, url in links.items() if url.lower().startswith(("https://", "http://"))]
