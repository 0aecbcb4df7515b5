"""The pages of what is served: rules of a repository and of the server, blocks, and versions in quarantine."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from pkgrepo.errors import Forbidden, Invalid
from pkgrepo.http.responses import Response
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.rendering.filters import without_blanks
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit, find_repository

RULES: Final = "/repositories/<storage>/<name>/settings/rules"
VERSION: Final = "/repositories/<storage>/<name>/packages/<package>/versions/<version>"
CONFIG: Final = "/repository/<repository>/config/<key>"
LISTED: Final = 100  # versions in quarantine on the page
EXAMPLE: Final[list[dict[str, Any]]] = [
    {"name": "young", "match": {"age_days": 7, "source": "cached"}, "exempt": ["@acme/*"]},
    {"name": "critical", "match": {"advisories": "critical"}, "reason": "ask security@acme.example"},
]

pages = PageTable()


@pages.get("/admin/policy")
async def show_policy(visit: Visit) -> Response:
    """Blocks and versions in quarantine that the caller may decide about; rules for all repositories for managers."""
    return await _page(visit)


@pages.post("/admin/policy")
async def save_server_rules(visit: Visit, form: Form) -> Response:
    """Save the rules for all repositories, or try them."""
    text = form.secret("rules")
    try:
        if form.flag("try"):
            tried = await _try(visit, _parse(text))
            return tried if isinstance(tried, Response) else await _page(visit, text=text, tried=tried)
        await visit.api("PUT", "/policy/rules", fields={"rules": _parse(text)})
    except REFUSED as error:
        return await _page(visit, text=text, error=str(error))
    return visit.redirect("/admin/policy")


@pages.post("/admin/policy/blocks")
async def add_block(visit: Visit, form: Form) -> Response:
    """Add a block."""
    names = ("repository", "package", "versions", "reason")
    fields: dict[str, Any] = {name: form.text(name).strip() for name in names}
    fields["digests"] = form.text("digests").split()
    try:
        await visit.api("POST", "/policy/blocks", fields=fields)
    except REFUSED as error:
        return await _page(visit, error=str(error), block=fields)
    return visit.redirect("/admin/policy")


@pages.post("/admin/policy/blocks/<block>/remove")
async def remove_block(visit: Visit, _form: Form, block: str) -> Response:
    """Remove a block."""
    await visit.api("DELETE", "/policy/blocks/<block>", {"block": block})
    return visit.redirect("/admin/policy")


@pages.post("/admin/policy/quarantine/<quarantined>")
async def decide(visit: Visit, form: Form, quarantined: str) -> Response:
    """Approve or deny a version in quarantine."""
    verb = "approve" if form.flag("approve") else "deny"
    fields = {"reason": form.text("reason")}
    await visit.api("POST", f"/policy/quarantine/<quarantined>/{verb}", {"quarantined": quarantined}, fields=fields)
    return visit.redirect("/admin/policy")


@pages.post(f"{VERSION}/block")
async def block_version(visit: Visit, form: Form, storage: str, name: str, package: str, version: str) -> Response:
    """Block the version that the page is about."""
    by_digest = ":" in version  # of an image without a tag
    fields: dict[str, Any] = {"repository": f"{storage}/{name}", "package": package, "reason": form.text("reason")}
    fields |= {"digests": [version]} if by_digest else {"versions": version}
    await visit.api("POST", "/policy/blocks", fields=fields)
    return visit.redirect("/admin/policy")


@pages.get(RULES)
async def show_rules(visit: Visit, storage: str, name: str) -> Response:
    """The rules of a repository, and how often each has matched."""
    return await _rules_page(visit, storage, name)


@pages.post(RULES)
async def save_rules(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Save the rules of the form, or try them; other parts of the policy stay."""
    text = form.secret("rules")
    place = {"repository": f"{storage}/{name}", "key": "policy"}
    try:
        if form.flag("try"):
            tried = await _try(visit, _parse(text), f"{storage}/{name}")
            if isinstance(tried, Response):
                return tried
            return await _rules_page(visit, storage, name, text=text, tried=tried)
        await visit.api("PATCH", CONFIG, place, fields={"rules": _parse(text)})
    except REFUSED as error:
        return await _rules_page(visit, storage, name, text=text, error=str(error))
    return visit.redirect_to("repositories", storage, name, "settings", "rules")


async def _try(visit: Visit, rules: list[Any], repository: str = "") -> Any:
    """The record of a rehearsal; if that takes longer than a page, the way to the page of its job."""
    fields = {"rules": rules, "repository": repository}
    found: Any = await visit.api("POST", "/policy/rehearse", fields=fields)
    if isinstance(found, Response):
        return visit.redirect_to("admin", "jobs", dict(found.headers)[b"Location"].decode().rpartition("/")[2])
    return found


async def _rules_page(
    visit: Visit, storage: str, name: str, *, text: str | None = None, error: str = "", tried: Any = None
) -> Response:
    repository = await find_repository(visit, storage, name)
    path = f"{storage}/{name}"
    policy = await visit.api("GET", CONFIG, {"repository": path, "key": "policy"}) or {}
    rules = policy.get("rules") or []
    counts = await visit.api("GET", "/policy/counts")
    return visit.page(
        "administration/rules.html",
        status=422 if error else 200,
        repository=repository,
        tab="settings",
        stored=rules,
        text=_shown(rules) if text is None else text,
        counts=[each for each in counts if each.repository == path],
        tried=tried,
        error=error,
    )


async def _page(
    visit: Visit,
    *,
    text: str | None = None,
    error: str = "",
    block: dict[str, Any] | None = None,
    tried: Any = None,
) -> Response:
    try:
        found = await visit.api("GET", "/policy/rules")
    except Forbidden:  # not for those who manage single repositories
        found = None
    rules = [] if found is None else without_blanks(msgspec.to_builtins(found.rules))
    waiting = await visit.api("GET", "/policy/quarantine", query={"limit": LISTED})
    return visit.page(
        "administration/policy.html",
        status=422 if error else 200,
        found=found,
        stored=rules,
        text=_shown(rules) if text is None else text,
        blocks=await visit.api("GET", "/policy/blocks"),
        waiting=waiting,
        block=block or {},
        tried=tried,
        error=error,
    )


def _shown(rules: list[Any]) -> str:
    return json.dumps(rules or EXAMPLE, indent=2, ensure_ascii=False)


def _parse(text: str) -> list[Any]:
    """The rules in a text; none if it is empty. :raises Invalid: it is no list"""
    try:
        value = json.loads(text) if text.strip() else []
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the rules are not JSON: {error}") from None
    if not isinstance(value, list):
        raise Invalid("rules are a JSON array")
    return value
