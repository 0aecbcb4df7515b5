"""
The pages of rules of retention: of a repository, with what they would remove and forms that try, save and run them, and
of the server.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from pkgrepo.errors import Conflict, Invalid
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.rendering.filters import without_blanks
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit, find_repository

RETENTION: Final = "/repositories/<storage>/<name>/settings/retention"
OPERATION: Final = "/repository/<repository>/retention"
CONFIG: Final = "/repository/<repository>/config/<key>"
SERVER: Final = "/system/retention"
LISTED: Final = 500  # victims on the page
EXAMPLE: Final[dict[str, Any]] = {
    "schedule": "15 3 * * *",
    "max_delete_percent": 20,
    "rules": [
        {
            "name": "old versions",
            "match": {"packages": ["*"], "prerelease": True},
            "keep": {"last": 5, "newer_than_days": 90, "downloaded_within_days": 30},
            "action": "trash",
        }
    ],
}

pages = PageTable()


@pages.get(RETENTION)
async def show_rules(visit: Visit, storage: str, name: str) -> Response:
    """The rules of a repository, and what they would remove now."""
    return await _page(visit, storage, name)


@pages.post(RETENTION)
async def save_rules(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """
    Save the rules of the form; without any text the repository has none any more.

    With the button ``try`` they are not saved, and the page shows what they would remove.
    """
    text = form.secret("rules")
    if form.flag("try"):
        return await _page(visit, storage, name, text=text)
    place = {"repository": f"{storage}/{name}", "key": "retention"}
    try:
        await visit.api("PUT", CONFIG, place, fields=_parse(text) if text.strip() else {"rules": []})
    except REFUSED as error:
        return await _page(visit, storage, name, text=text, error=str(error))
    return visit.redirect_to("repositories", storage, name, "settings", "retention")


@pages.post(f"{RETENTION}/run")
async def run_rules(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Start a run of the saved rules, and show its job; or that of the one that runs already."""
    place, query = {"repository": f"{storage}/{name}"}, {"wait": 0, "confirm": form.flag("confirm")}
    try:
        answer: Response = await visit.api("POST", OPERATION, place, query=query, fields={})
        location = dict(answer.headers)[b"Location"]
    except Refusal as refused:
        location = dict(refused.headers).get(b"Location", b"")
        if not location:
            raise
    return visit.redirect_to("admin", "jobs", location.decode("ascii").rpartition("/")[2])


@pages.get("/admin/retention")
async def show_server_rules(visit: Visit) -> Response:
    """The rules that hold for every repository."""
    return await _server_page(visit)


@pages.post("/admin/retention")
async def save_server_rules(visit: Visit, form: Form) -> Response:
    """Save the rules of the form; without any text there are none any more."""
    text = form.secret("rules")
    try:
        await visit.api("PUT", SERVER, fields={"retention": _parse(text) if text.strip() else None})
    except REFUSED as error:
        return await _server_page(visit, text=text, error=str(error))
    return visit.redirect("/admin/retention")


async def _server_page(visit: Visit, *, text: str | None = None, error: str = "") -> Response:
    stored = msgspec.to_builtins((await visit.api("GET", SERVER)).retention)
    shown = text
    if shown is None:
        shown = json.dumps(without_blanks(stored) if stored else EXAMPLE, indent=2, ensure_ascii=False)
    return visit.page(
        "administration/server_retention.html", status=422 if error else 200, stored=stored, text=shown, error=error
    )


async def _page(visit: Visit, storage: str, name: str, *, text: str | None = None, error: str = "") -> Response:
    repository = await find_repository(visit, storage, name)
    place = {"repository": f"{storage}/{name}"}
    stored = await visit.api("GET", CONFIG, {**place, "key": "retention"})
    found = None
    if not error and (text is not None or stored or repository.type == "Proxy"):
        try:
            fields = {} if text is None else {"retention": _parse(text)}
            found = await visit.api("POST", OPERATION, place, query={"dry_run": True, "limit": LISTED}, fields=fields)
        except (*REFUSED, Conflict) as refused:
            error = str(refused)
    shown = text
    if shown is None:
        shown = json.dumps(without_blanks(stored) if stored else EXAMPLE, indent=2, ensure_ascii=False)
    return visit.page(
        "administration/retention.html",
        status=422 if error else 200,
        repository=repository,
        tab="settings",
        stored=stored,
        tried=text is not None,
        text=shown,
        found=found,
        error=error,
    )


def _parse(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the rules are not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Invalid("rules of retention are a JSON object")
    return value
