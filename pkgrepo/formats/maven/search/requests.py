"""Answers searches for artifacts in the form that the search of the public repository has."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from pkgrepo.errors import Invalid
from pkgrepo.gateway.services import Services
from pkgrepo.http.answers import NO_STORE, Answer, json_answer
from pkgrepo.http.request import Request
from pkgrepo.model import Action
from pkgrepo.storage.catalog.packages.matches import matching_packages

from .documents import Page, find_artifact_versions, find_artifacts
from .query import MOST_ROWS, MOST_SKIPPED, Query, read_number, read_query
from .repositories import SearchScope

ROWS: Final = 20
MOST_CHECKED: Final = 10_000  # packages whose permissions are checked one by one
CORES: Final = (None, "", "ga", "gav")


async def search(services: Services, request: Request, scope: SearchScope) -> Answer:
    """
    A page of the artifacts that match ``q``, or with ``core=gav`` of their versions.

    :raises Invalid: a parameter has a wrong value
    """
    text = request.parameter(b"q") or ""
    rows = read_number(request.parameter(b"rows"), ROWS, MOST_ROWS, "rows")
    start = read_number(request.parameter(b"start"), 0, MOST_SKIPPED, "start")
    core, form = request.parameter(b"core"), request.parameter(b"wt")
    if core not in CORES:
        raise Invalid("core must be ga or gav", "core")
    if form not in (None, "", "json"):
        raise Invalid("wt must be json", "wt")
    page = await _find(services, scope, read_query(text), core == "gav", start, rows)
    shown = {"q": text, "core": core or "ga", "rows": str(rows), "start": str(start), "wt": "json"}
    body: dict[str, Any] = {
        "responseHeader": {"status": 0, "QTime": 0, "params": shown},
        "response": {"numFound": page.total, "start": start, "docs": page.documents},
        "spellcheck": {"suggestions": []},
    }
    return json_answer(body, headers=NO_STORE)


async def _find(services: Services, scope: SearchScope, query: Query, gav: bool, start: int, rows: int) -> Page:
    match = query.match()
    readable: frozenset[str] | None = None
    if not scope.whole and scope.shown is not None:
        keys = await services.catalog.scan(matching_packages, scope.ids, match, 0, MOST_CHECKED)
        readable = frozenset(await services.access.allowed(scope.identity, Action.READ, scope.shown, keys))
    versions = partial(find_artifact_versions, joined=scope.shown is not None)
    find = partial(versions if gav else find_artifacts, repositories=scope.repositories, match=match)
    page: Page = await services.catalog.scan(find, start=start, rows=rows, readable=readable)
    return page
