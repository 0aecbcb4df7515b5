"""
The pages of rules of retention: of a repository, with what they would remove and forms that try, save and run them, and
of the server.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from pkgrepo.display import without_blanks
from pkgrepo.errors import Conflict
from pkgrepo.http.responses import Refusal, Response
from pkgrepo.repositories.configuration import Retention, RetentionRule
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit, find_repository

from .rule_forms import Rule, parsed, rule_form, rule_rows, with_rule, without_rule
from .schema_fields import object_fields, object_from

RETENTION: Final = "/repositories/<storage>/<name>/settings/retention"
OPERATION: Final = "/repository/<repository>/retention"
CONFIG: Final = "/repository/<repository>/config/<key>"
SERVER: Final = "/system/retention"
LISTED: Final = 500  # victims on the page
SCHEMA: Final = msgspec.json.schema(RetentionRule)
WHOLE: Final = msgspec.json.schema(Retention)  # with when it runs
RULES: Final = ("rules",)
EXAMPLES: Final[dict[str, Rule]] = {
    "old versions": {"name": "old versions", "keep": {"last": 5, "newer_than_days": 90, "downloaded_within_days": 30}},
    "prereleases": {"name": "prereleases", "match": {"prerelease": True}, "keep": {"last": 3, "newer_than_days": 30}},
    "unused": {"name": "unused", "keep": {"downloaded_within_days": 365, "newer_than_days": 365}},
}

pages = PageTable()


@pages.get(RETENTION)
async def show_rules(visit: Visit, storage: str, name: str) -> Response:
    """The rules of a repository, and what they would remove now."""
    return await _page(visit, storage, name)


@pages.post(RETENTION)
async def save_rules(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """
    Save the retention that the form has as JSON; without any text the repository has no rules any more.

    With the button ``try`` it is not saved, and the page shows what it would remove.
    """
    text = form.secret("rules")
    try:
        whole = parsed(text, dict) or {"rules": []}
        return await _save(visit, form, (storage, name), whole, text=text)
    except REFUSED as error:
        return await _page(visit, storage, name, text=text, error=str(error))


@pages.post(f"{RETENTION}/one")
async def save_rule(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Add a rule, or change or try one."""
    try:
        whole = await _retention_of(visit, f"{storage}/{name}")
        whole["rules"] = with_rule(SCHEMA, whole.get("rules") or [], form)
        return await _save(visit, form, (storage, name), whole, sent=form)
    except REFUSED as error:
        return await _page(visit, storage, name, sent=form, error=str(error))


@pages.post(f"{RETENTION}/remove")
async def remove_rule(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Remove a rule."""
    whole = await _retention_of(visit, f"{storage}/{name}")
    whole["rules"] = without_rule(whole.get("rules") or [], form)
    return await _save(visit, form, (storage, name), whole)


@pages.post(f"{RETENTION}/times")
async def save_times(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Save when the rules run, and what else there is beside them."""
    try:
        rules = (await _retention_of(visit, f"{storage}/{name}")).get("rules") or []
        return await _save(visit, form, (storage, name), {**object_from(WHOLE, form, RULES), "rules": rules})
    except REFUSED as error:
        return await _page(visit, storage, name, error=str(error))


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
    """Save the retention that the form has as JSON; without any text there is none any more."""
    text = form.secret("rules")
    try:
        return await _save_for_server(visit, parsed(text, dict) or None)
    except REFUSED as error:
        return await _server_page(visit, text=text, error=str(error))


@pages.post("/admin/retention/one")
async def save_server_rule(visit: Visit, form: Form) -> Response:
    """Add a rule for every repository, or change one."""
    try:
        whole = await _server_retention(visit)
        return await _save_for_server(visit, whole | {"rules": with_rule(SCHEMA, whole.get("rules") or [], form)})
    except REFUSED as error:
        return await _server_page(visit, sent=form, error=str(error))


@pages.post("/admin/retention/remove")
async def remove_server_rule(visit: Visit, form: Form) -> Response:
    """Remove a rule for every repository."""
    whole = await _server_retention(visit)
    return await _save_for_server(visit, whole | {"rules": without_rule(whole.get("rules") or [], form)})


async def _save(
    visit: Visit,
    form: Form,
    at: tuple[str, str],
    whole: dict[str, Any],
    *,
    text: str | None = None,
    sent: Form | None = None,
) -> Response:
    """Save or try the retention of the repository at a storage and name; what was tried is shown as it was sent."""
    storage, name = at
    if form.flag("try"):
        return await _page(visit, storage, name, text=text, sent=sent, tried=whole)
    await visit.api("PUT", CONFIG, {"repository": f"{storage}/{name}", "key": "retention"}, fields=whole)
    return visit.redirect_to("repositories", storage, name, "settings", "retention")


async def _save_for_server(visit: Visit, whole: dict[str, Any] | None) -> Response:
    await visit.api("PUT", SERVER, fields={"retention": whole})
    return visit.redirect("/admin/retention")


async def _retention_of(visit: Visit, repository: str) -> dict[str, Any]:
    """What the configuration of a repository says of retention, as it is written."""
    return dict(await visit.api("GET", CONFIG, {"repository": repository, "key": "retention"}) or {})


async def _server_retention(visit: Visit) -> dict[str, Any]:
    stored: dict[str, Any] = without_blanks(msgspec.to_builtins((await visit.api("GET", SERVER)).retention)) or {}
    return stored


async def _server_page(visit: Visit, *, text: str | None = None, sent: Form | None = None, error: str = "") -> Response:
    whole = await _server_retention(visit)
    rules = whole.get("rules") or []
    return visit.page(
        "administration/server_retention.html",
        stored=rule_rows(SCHEMA, rules),
        form=rule_form(visit, SCHEMA, rules, EXAMPLES, sent),
        text=_shown(whole) if text is None else text,
        text_sent=text is not None,
        error=error,
    )


async def _page(
    visit: Visit,
    storage: str,
    name: str,
    *,
    text: str | None = None,
    sent: Form | None = None,
    tried: dict[str, Any] | None = None,
    error: str = "",
) -> Response:
    repository = await find_repository(visit, storage, name)
    place = {"repository": f"{storage}/{name}"}
    whole = await _retention_of(visit, f"{storage}/{name}")
    rules = without_blanks(whole.get("rules") or [])
    found = None
    if not error and (tried is not None or whole or repository.type == "Proxy"):
        try:
            fields = {} if tried is None else {"retention": tried}
            found = await visit.api("POST", OPERATION, place, query={"dry_run": True, "limit": LISTED}, fields=fields)
        except (*REFUSED, Conflict) as refused:
            error = str(refused)
    return visit.page(
        "administration/retention.html",
        repository=repository,
        tab="settings",
        stored=rule_rows(SCHEMA, rules),
        form=rule_form(visit, SCHEMA, rules, EXAMPLES, sent),
        times=object_fields(WHOLE, whole, RULES),
        tried=tried is not None,
        text=_shown(without_blanks(whole)) if text is None else text,
        text_sent=text is not None,
        found=found,
        error=error,
    )


def _shown(whole: dict[str, Any]) -> str:
    return json.dumps(whole or {"rules": []}, indent=2, ensure_ascii=False)
