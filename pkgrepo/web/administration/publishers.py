"""The pipelines that publish to a repository, a package, or all of a project: a list, and the form that adds one."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Response
from pkgrepo.web.rendering.languages import said
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

REPOSITORY: Final = "/repositories/<storage>/<name>/settings/publishers"
PACKAGE: Final = "/repositories/<storage>/<name>/packages/<package>/publishers"
PROJECT: Final = "/projects/<key>/publishers"
FIELDS: Final = ("issuer", "source", "file", "environment", "audience")
ACTIONS: Final = ("write", "overwrite", "delete", "stage")

pages = PageTable()


def _publisher(form: Form) -> dict[str, Any]:
    """The publisher that a form describes. :raises Invalid: a line has no ``=``"""
    claims = {}
    for line in form.lines("claims"):
        claim, equals, pattern = line.partition("=")
        if not equals:
            raise Invalid(said("%(line)s is no claim: write NAME = PATTERN", line=repr(line)), "/claims")
        claims[claim.strip()] = pattern.strip()
    more = {"claims": claims, "packages": form.lines("packages"), "actions": form.all("actions")}
    return {**form.texts(*FIELDS), **more}


async def _page(visit: Visit, *, operation: str, template: str) -> Response:
    shown: dict[str, Any] = {"package": visit.at.get("package")}
    if "key" in visit.at:
        shown["project"] = await visit.api("GET", "/project/<key>")
    else:
        shown["repository"] = await visit.repository()
        shown["tab"] = "settings" if shown["package"] is None else "publishers"
    form = visit.sent if "issuer" in visit.sent else Form({"actions": ["write"]})
    typed = {name: form.secret(name) for name in ("claims", "packages")}
    return visit.page(
        template,
        publishers=await visit.api("GET", operation),
        issuers=await visit.api("GET", "/auth/issuers"),
        actions=ACTIONS,
        typed={**form.texts(*FIELDS), **typed, "actions": form.all("actions")},
        **shown,
    )


for _path, _operation, _template in (
    (REPOSITORY, "/repository/<repository>/publishers", "administration/publishers.html"),
    (PACKAGE, "/package/<repository>/<package>/publishers", "packages/publishers.html"),
    (PROJECT, "/project/<key>/publishers", "projects/publishers.html"),
):
    _show = pages.get(_path)(partial(_page, operation=_operation, template=_template))
    pages.operation(_path, "POST", _operation, _publisher, page=_show)
    pages.operation(f"{_path}/remove", "DELETE", f"{_operation}/<id>", page=_show)
