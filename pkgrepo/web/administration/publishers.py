"""The pipelines that publish to a repository, or to one package: a list, and the form that adds one."""

from __future__ import annotations

from typing import Any, Final

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit, find_repository

REPOSITORY: Final = "/repositories/<storage>/<name>/settings/publishers"
PACKAGE: Final = "/repositories/<storage>/<name>/packages/<package>/publishers"
OF_REPOSITORY: Final = "/repository/<repository>/publishers"
OF_PACKAGE: Final = "/package/<repository>/<package>/publishers"
FIELDS: Final = ("issuer", "source", "file", "environment", "audience")
ACTIONS: Final = ("write", "overwrite", "delete", "stage")
EMPTY: Final[dict[str, Any]] = {**dict.fromkeys(FIELDS, ""), "claims": "", "packages": "", "actions": ["write"]}

pages = PageTable()


@pages.get(REPOSITORY)
async def show_of_repository(visit: Visit, storage: str, name: str) -> Response:
    """The publishers of a repository."""
    return await _page(visit, storage, name, None)


@pages.post(REPOSITORY)
async def add_to_repository(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Add a publisher to a repository."""
    return await _add(visit, form, storage, name, None)


@pages.post(f"{REPOSITORY}/remove")
async def remove_from_repository(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Remove a publisher from a repository."""
    return await _remove(visit, form, storage, name, None)


@pages.get(PACKAGE)
async def show_of_package(visit: Visit, storage: str, name: str, package: str) -> Response:
    """The publishers of a package, which need not exist."""
    return await _page(visit, storage, name, package)


@pages.post(PACKAGE)
async def add_to_package(visit: Visit, form: Form, storage: str, name: str, package: str) -> Response:
    """Add a publisher to a package."""
    return await _add(visit, form, storage, name, package)


@pages.post(f"{PACKAGE}/remove")
async def remove_from_package(visit: Visit, form: Form, storage: str, name: str, package: str) -> Response:
    """Remove a publisher from a package."""
    return await _remove(visit, form, storage, name, package)


async def _add(visit: Visit, form: Form, storage: str, name: str, package: str | None) -> Response:
    operation, place = _operation(storage, name, package)
    given = {each: form.text(each) for each in FIELDS}
    typed = {**given, **{each: form.secret(each) for each in ("claims", "packages")}, "actions": form.all("actions")}
    try:
        fields = {**given, "claims": _claims(form), "packages": form.lines("packages"), "actions": typed["actions"]}
        await visit.api("POST", operation, place, fields=fields)
    except REFUSED as error:
        return await _page(visit, storage, name, package, typed=typed, error=str(error))
    return _back(visit, storage, name, package)


async def _remove(visit: Visit, form: Form, storage: str, name: str, package: str | None) -> Response:
    operation, place = _operation(storage, name, package)
    try:
        await visit.api("DELETE", f"{operation}/<id>", {**place, "id": form.text("id")})
    except REFUSED as error:
        return await _page(visit, storage, name, package, error=str(error))
    return _back(visit, storage, name, package)


def _back(visit: Visit, storage: str, name: str, package: str | None) -> Response:
    place = ("settings",) if package is None else ("packages", package)
    return visit.redirect_to("repositories", storage, name, *place, "publishers")


def _claims(form: Form) -> dict[str, str]:
    """The claims that are written one on a line. :raises Invalid: a line has no ``=``"""
    claims = {}
    for line in form.lines("claims"):
        claim, equals, pattern = line.partition("=")
        if not equals:
            raise Invalid(f"{line!r} is no claim: write NAME = PATTERN", "/claims")
        claims[claim.strip()] = pattern.strip()
    return claims


async def _page(
    visit: Visit,
    storage: str,
    name: str,
    package: str | None,
    *,
    typed: dict[str, Any] = EMPTY,
    error: str = "",
) -> Response:
    repository = await find_repository(visit, storage, name)
    operation, place = _operation(storage, name, package)
    return visit.page(
        "administration/publishers.html" if package is None else "packages/publishers.html",
        status=422 if error else 200,
        repository=repository,
        tab="settings" if package is None else "publishers",
        package=package,
        publishers=await visit.api("GET", operation, place),
        issuers=await visit.api("GET", "/auth/issuers"),
        actions=ACTIONS,
        typed=typed,
        error=error,
    )


def _operation(storage: str, name: str, package: str | None) -> tuple[str, dict[str, str]]:
    place = {"repository": f"{storage}/{name}"}
    return (OF_REPOSITORY, place) if package is None else (OF_PACKAGE, {**place, "package": package})
