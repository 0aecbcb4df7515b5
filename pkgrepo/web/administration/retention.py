"""
The pages of rules of retention: of a repository, with what they would remove and forms that try, save and run them, and
of the server.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pkgrepo.display import without_blanks
from pkgrepo.http.responses import Response
from pkgrepo.repositories.configuration import Retention, RetentionRule
from pkgrepo.web.rendering.languages import marked
from pkgrepo.web.tables import REFUSED, PageTable
from pkgrepo.web.visits import Form, Visit

from .rule_forms import RuleEditor, Whole, rules_of
from .schema_fields import object_fields, object_from

RETENTION: Final = "/repositories/<storage>/<name>/settings/retention"
OPERATION: Final = "/repository/<repository>/retention"
CONFIG: Final = "/repository/<repository>/config/<key>"
KEY: Final = {"key": "retention"}
SERVER: Final = "/system/retention"
LISTED: Final = 500  # victims on the page
WHOLE: Final = msgspec.json.schema(Retention)  # with when it runs
RULES: Final = ("rules",)
EDITOR: Final = RuleEditor(
    msgspec.json.schema(RetentionRule),
    {
        "old versions": {
            "name": "old versions",
            "keep": {"last": 5, "newer_than_days": 90, "downloaded_within_days": 30},
        },
        "prereleases": {
            "name": "prereleases",
            "match": {"prerelease": True},
            "keep": {"last": 3, "newer_than_days": 30},
        },
        "unused": {"name": "unused", "keep": {"downloaded_within_days": 365, "newer_than_days": 365}},
    },
    dict,
    first=("/name", "/keep/last", "/keep/newer_than_days", "/keep/downloaded_within_days", "/action"),
    about={
        "old versions": marked("the last five stay, and what is young or was downloaded of late"),
        "prereleases": marked("of those before a release the last three stay, and what is young"),
        "unused": marked("what was not downloaded for a year goes"),
    },
)

pages = PageTable()


@pages.get(RETENTION)
async def show_rules(visit: Visit, tried: Whole | None = None) -> Response:
    """The rules of a repository, and what they would remove now; or what others would, that are ``tried``."""
    repository = await visit.repository()
    whole = await _read(visit)
    found = None
    if not visit.error and (tried is not None or whole or repository.type == "Proxy"):
        try:
            fields = {} if tried is None else {"retention": tried}
            found = await visit.api("POST", OPERATION, query={"dry_run": True, "limit": LISTED}, fields=fields)
        except REFUSED as refused:
            visit.error = str(refused)
    return visit.page(
        "administration/retention.html",
        repository=repository,
        tab="settings",
        **EDITOR.values(visit, without_blanks(whole)),
        times=object_fields(WHOLE, whole, RULES),
        tried=tried is not None,
        found=found,
    )


@pages.get("/admin/retention")
async def show_server_rules(visit: Visit) -> Response:
    """The rules that hold for every repository."""
    return visit.page("administration/server_retention.html", **EDITOR.values(visit, await _read_of_server(visit)))


@pages.post(f"{RETENTION}/times", page=show_rules)
async def save_times(visit: Visit, form: Form) -> Response | None:
    """Save when the rules run, and what else there is beside them."""
    return await _save(visit, form, {**object_from(WHOLE, form, RULES), "rules": rules_of(await _read(visit))})


@pages.post(f"{RETENTION}/run")
async def run_rules(visit: Visit, form: Form) -> Response:
    """Start a run of the saved rules, and show its job; or that of the one that runs already."""
    return await visit.start_job(OPERATION, {"confirm": form.flag("confirm")})


async def _read(visit: Visit) -> Whole:
    """What the configuration of a repository says of retention, as it is written."""
    return dict(await visit.api("GET", CONFIG, KEY) or {})


async def _save(visit: Visit, form: Form, whole: Whole) -> Response | None:
    """
    Save the retention of the repository; without any text of JSON it has no rules any more.

    With the button ``try`` it is not saved, and the page shows what it would remove.
    """
    whole = whole or {"rules": []}
    if form.flag("try"):
        visit.sent = form
        return await show_rules(visit, whole)
    await visit.api("PUT", CONFIG, KEY, fields=whole)
    return None


async def _read_of_server(visit: Visit) -> Whole:
    return without_blanks(msgspec.to_builtins((await visit.api("GET", SERVER)).retention)) or {}


async def _save_for_server(visit: Visit, _form: Form, whole: Whole) -> None:
    await visit.api("PUT", SERVER, fields={"retention": whole or None})


EDITOR.mount(pages, show_rules, _read, _save)
EDITOR.mount(pages, show_server_rules, _read_of_server, _save_for_server)
