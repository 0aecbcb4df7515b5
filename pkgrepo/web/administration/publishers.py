"""The pipelines that publish to a repository, a package, or all of a project: a list, and the form that adds one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit, find_repository

REPOSITORY: Final = "/repositories/<storage>/<name>/settings/publishers"
PACKAGE: Final = "/repositories/<storage>/<name>/packages/<package>/publishers"
PROJECT: Final = "/projects/<key>/publishers"
FIELDS: Final = ("issuer", "source", "file", "environment", "audience")
ACTIONS: Final = ("write", "overwrite", "delete", "stage")
EMPTY: Final[dict[str, Any]] = {**dict.fromkeys(FIELDS, ""), "claims": "", "packages": "", "actions": ["write"]}

pages = PageTable()


@frozen
class Place:
    """
    What has publishers: the operation of the API with its parameters, the segments of the page, and its template.

    A repository has ``storage`` and ``name``, a package of it has ``package``, too, and a project has ``project``.
    """

    operation: str
    parameters: Mapping[str, str]
    segments: tuple[str, ...]
    template: str
    storage: str = ""
    name: str = ""
    package: str | None = None
    project: str = ""


def _repository(storage: str, name: str) -> Place:
    parameters = {"repository": f"{storage}/{name}"}
    segments = ("repositories", storage, name, "settings", "publishers")
    template = "administration/publishers.html"
    return Place("/repository/<repository>/publishers", parameters, segments, template, storage, name)


def _package(storage: str, name: str, package: str) -> Place:
    parameters = {"repository": f"{storage}/{name}", "package": package}
    segments = ("repositories", storage, name, "packages", package, "publishers")
    operation, template = "/package/<repository>/<package>/publishers", "packages/publishers.html"
    return Place(operation, parameters, segments, template, storage, name, package)


def _project(key: str) -> Place:
    segments, template = ("projects", key, "publishers"), "projects/publishers.html"
    return Place("/project/<key>/publishers", {"key": key}, segments, template, project=key)


@pages.get(REPOSITORY)
async def show_of_repository(visit: Visit, storage: str, name: str) -> Response:
    """The publishers of a repository."""
    return await _page(visit, _repository(storage, name))


@pages.post(REPOSITORY)
async def add_to_repository(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Add a publisher to a repository."""
    return await _add(visit, form, _repository(storage, name))


@pages.post(f"{REPOSITORY}/remove")
async def remove_from_repository(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Remove a publisher from a repository."""
    return await _remove(visit, form, _repository(storage, name))


@pages.get(PACKAGE)
async def show_of_package(visit: Visit, storage: str, name: str, package: str) -> Response:
    """The publishers of a package, which need not exist."""
    return await _page(visit, _package(storage, name, package))


@pages.post(PACKAGE)
async def add_to_package(visit: Visit, form: Form, storage: str, name: str, package: str) -> Response:
    """Add a publisher to a package."""
    return await _add(visit, form, _package(storage, name, package))


@pages.post(f"{PACKAGE}/remove")
async def remove_from_package(visit: Visit, form: Form, storage: str, name: str, package: str) -> Response:
    """Remove a publisher from a package."""
    return await _remove(visit, form, _package(storage, name, package))


@pages.get(PROJECT)
async def show_of_project(visit: Visit, key: str) -> Response:
    """The publishers of a project."""
    return await _page(visit, _project(key))


@pages.post(PROJECT)
async def add_to_project(visit: Visit, form: Form, key: str) -> Response:
    """Add a publisher to a project."""
    return await _add(visit, form, _project(key))


@pages.post(f"{PROJECT}/remove")
async def remove_from_project(visit: Visit, form: Form, key: str) -> Response:
    """Remove a publisher from a project."""
    return await _remove(visit, form, _project(key))


async def _add(visit: Visit, form: Form, place: Place) -> Response:
    given = {each: form.text(each) for each in FIELDS}
    typed = {**given, **{each: form.secret(each) for each in ("claims", "packages")}, "actions": form.all("actions")}
    try:
        fields = {**given, "claims": _claims(form), "packages": form.lines("packages"), "actions": typed["actions"]}
        await visit.api("POST", place.operation, place.parameters, fields=fields)
    except REFUSED as error:
        return await _page(visit, place, typed=typed, error=str(error))
    return visit.redirect_to(*place.segments)


async def _remove(visit: Visit, form: Form, place: Place) -> Response:
    try:
        await visit.api("DELETE", f"{place.operation}/<id>", {**place.parameters, "id": form.text("id")})
    except REFUSED as error:
        return await _page(visit, place, error=str(error))
    return visit.redirect_to(*place.segments)


def _claims(form: Form) -> dict[str, str]:
    """The claims that are written one on a line. :raises Invalid: a line has no ``=``"""
    claims = {}
    for line in form.lines("claims"):
        claim, equals, pattern = line.partition("=")
        if not equals:
            raise Invalid(f"{line!r} is no claim: write NAME = PATTERN", "/claims")
        claims[claim.strip()] = pattern.strip()
    return claims


async def _page(visit: Visit, place: Place, *, typed: dict[str, Any] = EMPTY, error: str = "") -> Response:
    shown: dict[str, Any] = {"package": place.package}
    if place.project:
        shown["project"] = await visit.api("GET", "/project/<key>", place.parameters)
    else:
        shown["repository"] = await find_repository(visit, place.storage, place.name)
        shown["tab"] = "settings" if place.package is None else "publishers"
    return visit.page(
        place.template,
        publishers=await visit.api("GET", place.operation, place.parameters),
        issuers=await visit.api("GET", "/auth/issuers"),
        actions=ACTIONS,
        typed=typed,
        error=error,
        **shown,
    )
