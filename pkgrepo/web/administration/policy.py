"""The pages of what is served: rules of a repository and of the server, blocks, and versions in quarantine."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from pkgrepo.display import without_blanks
from pkgrepo.errors import Forbidden
from pkgrepo.http.responses import Response
from pkgrepo.repositories.policy.schema import PolicyRule
from pkgrepo.web.refusals import REFUSED
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit, find_repository

from .rule_forms import Rule, parsed, rule_form, rule_rows, with_rule, without_rule

RULES: Final = "/repositories/<storage>/<name>/settings/rules"
VERSION: Final = "/repositories/<storage>/<name>/packages/<package>/versions/<version>"
CONFIG: Final = "/repository/<repository>/config/<key>"
LISTED: Final = 100  # versions in quarantine on the page
SCHEMA: Final = msgspec.json.schema(PolicyRule)
EXAMPLES: Final[dict[str, Rule]] = {
    "young": {"name": "young", "match": {"age_days": 7, "source": "cached"}, "exempt": ["@acme/*"]},
    "critical": {"name": "critical", "match": {"advisories": "critical"}, "reason": "ask security@acme.example"},
    "licence": {"name": "licence", "match": {"licences": ["AGPL-*"]}, "action": "quarantine"},
    "install scripts": {"name": "install scripts", "match": {"install_scripts": True}, "action": "warn"},
}

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
        return await _save_server_rules(visit, form, parsed(text, list), text=text)
    except REFUSED as error:
        return await _page(visit, text=text, error=str(error))


@pages.post("/admin/policy/one")
async def save_server_rule(visit: Visit, form: Form) -> Response:
    """Add a rule for all repositories, or change or try one."""
    try:
        return await _save_server_rules(visit, form, with_rule(SCHEMA, await _server_rules(visit), form), sent=form)
    except REFUSED as error:
        return await _page(visit, sent=form, error=str(error))


@pages.post("/admin/policy/remove")
async def remove_server_rule(visit: Visit, form: Form) -> Response:
    """Remove a rule for all repositories."""
    return await _save_server_rules(visit, form, without_rule(await _server_rules(visit), form))


@pages.post("/admin/policy/blocks")
async def add_block(visit: Visit, form: Form) -> Response:
    """Add a block."""
    names = ("repository", "package", "versions", "reason")
    fields: dict[str, Any] = {name: form.text(name).strip() for name in names}
    fields["digests"] = form.text("digests").split()
    try:
        made = await visit.api("POST", "/policy/blocks", fields=fields)
    except REFUSED as error:
        return await _page(visit, error=str(error), block=fields)
    if made.warning:
        return await _page(visit, warning=made.warning)
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
    try:
        return await _save_rules(visit, form, (storage, name), parsed(text, list), text=text)
    except REFUSED as error:
        return await _rules_page(visit, storage, name, text=text, error=str(error))


@pages.post(f"{RULES}/one")
async def save_rule(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Add a rule to a repository, or change or try one."""
    try:
        rules = with_rule(SCHEMA, await _rules_of(visit, f"{storage}/{name}"), form)
        return await _save_rules(visit, form, (storage, name), rules, sent=form)
    except REFUSED as error:
        return await _rules_page(visit, storage, name, sent=form, error=str(error))


@pages.post(f"{RULES}/remove")
async def remove_rule(visit: Visit, form: Form, storage: str, name: str) -> Response:
    """Remove a rule of a repository."""
    rules = without_rule(await _rules_of(visit, f"{storage}/{name}"), form)
    return await _save_rules(visit, form, (storage, name), rules)


async def _save_rules(
    visit: Visit,
    form: Form,
    place: tuple[str, str],
    rules: list[Rule],
    *,
    text: str | None = None,
    sent: Form | None = None,
) -> Response:
    """Save or try rules of the repository at a storage and name; what was tried is shown as it was sent."""
    storage, name = place
    if form.flag("try"):
        tried = await _try(visit, rules, f"{storage}/{name}")
        if isinstance(tried, Response):
            return tried
        return await _rules_page(visit, storage, name, text=text, sent=sent, tried=tried)
    await visit.api("PATCH", CONFIG, {"repository": f"{storage}/{name}", "key": "policy"}, fields={"rules": rules})
    return visit.redirect_to("repositories", storage, name, "settings", "rules")


async def _save_server_rules(
    visit: Visit, form: Form, rules: list[Rule], *, text: str | None = None, sent: Form | None = None
) -> Response:
    """The same for all repositories."""
    if form.flag("try"):
        tried = await _try(visit, rules)
        return tried if isinstance(tried, Response) else await _page(visit, text=text, sent=sent, tried=tried)
    await visit.api("PUT", "/policy/rules", fields={"rules": rules})
    return visit.redirect("/admin/policy")


async def _rules_of(visit: Visit, repository: str) -> list[Rule]:
    """The rules of a repository, as its configuration has them."""
    policy = await visit.api("GET", CONFIG, {"repository": repository, "key": "policy"}) or {}
    return list(policy.get("rules") or [])


async def _server_rules(visit: Visit) -> list[Rule]:
    return _as_written((await visit.api("GET", "/policy/rules")).rules)


def _as_written(rules: list[PolicyRule]) -> list[Rule]:
    written: list[Rule] = without_blanks(msgspec.to_builtins(rules))
    return written


async def _try(visit: Visit, rules: list[Any], repository: str = "") -> Any:
    """The record of a rehearsal; if that takes longer than a page, the way to the page of its job."""
    fields = {"rules": rules, "repository": repository}
    found: Any = await visit.api("POST", "/policy/rehearse", fields=fields)
    if isinstance(found, Response):
        return visit.redirect_to("admin", "jobs", dict(found.headers)[b"Location"].decode().rpartition("/")[2])
    return found


async def _rules_page(
    visit: Visit,
    storage: str,
    name: str,
    *,
    text: str | None = None,
    sent: Form | None = None,
    error: str = "",
    tried: Any = None,
) -> Response:
    repository = await find_repository(visit, storage, name)
    path = f"{storage}/{name}"
    rules = await _rules_of(visit, path)
    counts = await visit.api("GET", "/policy/counts")
    return visit.page(
        "administration/rules.html",
        repository=repository,
        tab="settings",
        stored=rule_rows(SCHEMA, rules),
        form=rule_form(visit, SCHEMA, rules, EXAMPLES, sent),
        text=_shown(rules) if text is None else text,
        text_sent=text is not None,
        counts=[each for each in counts if each.repository == path],
        tried=tried,
        error=error,
    )


async def _page(
    visit: Visit,
    *,
    text: str | None = None,
    sent: Form | None = None,
    error: str = "",
    warning: str = "",
    block: dict[str, Any] | None = None,
    tried: Any = None,
) -> Response:
    try:
        found = await visit.api("GET", "/policy/rules")
    except Forbidden:  # not for those who manage single repositories
        found = None
    rules = [] if found is None else _as_written(found.rules)
    waiting = await visit.api("GET", "/policy/quarantine", query={"limit": LISTED})
    return visit.page(
        "administration/policy.html",
        found=found,
        stored=rule_rows(SCHEMA, rules),
        form=rule_form(visit, SCHEMA, rules, EXAMPLES, sent),
        text=_shown(rules) if text is None else text,
        text_sent=text is not None,
        blocks=await visit.api("GET", "/policy/blocks"),
        waiting=waiting,
        block=block or {},
        tried=tried,
        error=error,
        warning=warning,
    )


def _shown(rules: list[Rule]) -> str:
    return json.dumps(rules, indent=2, ensure_ascii=False)
