"""The pages of what is served: rules of a repository and of the server, blocks, and versions in quarantine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

import msgspec

from pkgrepo.display import without_blanks
from pkgrepo.errors import Forbidden, NotFound
from pkgrepo.http.responses import Response
from pkgrepo.repositories.policy.schema import PolicyRule
from pkgrepo.web.tables import PageTable
from pkgrepo.web.visits import Form, Visit

from .rule_forms import RuleEditor, Whole

POLICY: Final = "/admin/policy"
RULES: Final = "/repositories/<storage>/<name>/settings/rules"
VERSION: Final = "/repositories/<storage>/<name>/packages/<package>/versions/<version>"
CONFIG: Final = "/repository/<repository>/config/<key>"
KEY: Final = {"key": "policy"}
HELD: Final = f"{POLICY}/quarantine/<quarantined>"
LISTED: Final = 100  # versions in quarantine on the page
EDITOR: Final = RuleEditor(
    msgspec.json.schema(PolicyRule),
    {
        "young": {"name": "young", "match": {"age_days": 7, "source": "cached"}, "exempt": ["@acme/*"]},
        "critical": {"name": "critical", "match": {"advisories": "critical"}, "reason": "ask security@acme.example"},
        "licence": {"name": "licence", "match": {"licences": ["AGPL-*"]}, "action": "quarantine"},
        "contents": {
            "name": "contents",
            "match": {"contents": ["install_script", "pth"], "source": "cached"},
            "action": "quarantine",
        },
        "differs": {
            "name": "differs",
            "match": {"differs": ["install_script", "native_build", "pth"], "age_days": 30, "source": "cached"},
            "action": "quarantine",
        },
        "trust fell": {"name": "trust fell", "match": {"trust": "fell", "source": "cached"}, "action": "quarantine"},
        "install scripts": {"name": "install scripts", "match": {"install_scripts": True}, "action": "warn"},
    },
    list,
)

pages = PageTable()


@pages.get(POLICY)
async def show_policy(visit: Visit, *, tried: Any = None, played: Any = None, warning: str = "") -> Response:
    """Blocks and versions in quarantine that the caller may decide about; rules for all repositories for managers."""
    try:
        found = await visit.api("GET", "/policy/rules")
    except Forbidden:  # not for those who manage single repositories
        found = None
    return visit.page(
        "administration/policy.html",
        found=found,
        **EDITOR.values(visit, {} if found is None else _as_written(found)),
        waiting=await visit.api("GET", "/policy/quarantine", query={"limit": LISTED}),
        blocks=await visit.api("GET", "/policy/blocks"),
        freezes=await visit.api("GET", "/policy/freeze"),
        block=_block(visit.sent) if "digests" in visit.sent else {},
        frozen=visit.sent.texts("repositories", "at", "except", "reason") if "repositories" in visit.sent else {},
        tried=tried,
        played=played,
        warning=warning,
    )


@pages.get(RULES)
async def show_rules(visit: Visit, *, tried: Any = None, played: Any = None) -> Response:
    """The rules of a repository, and how often each has matched."""
    repository = await visit.repository()
    whole = await _read(visit)
    counts = await visit.api("GET", "/policy/counts")
    return visit.page(
        "administration/rules.html",
        repository=repository,
        tab="settings",
        **EDITOR.values(visit, whole),
        counts=[each for each in counts if each.repository == visit.at["repository"]],
        tried=tried,
        played=played,
    )


async def _read(visit: Visit) -> Whole:
    """The rules of a repository, as its configuration has them."""
    return {"rules": (await visit.api("GET", CONFIG, KEY) or {}).get("rules") or []}


async def _save(visit: Visit, form: Form, whole: Whole) -> Response | None:
    """Save rules of the repository, or try them; other parts of its policy stay."""
    if not form.flag("try"):
        await visit.api("PATCH", CONFIG, KEY, fields=whole)
        return None
    return await _try(visit, form, {**whole, "repository": visit.at["repository"]}, show_rules)


async def _read_of_server(visit: Visit) -> Whole:
    return _as_written(await visit.api("GET", "/policy/rules"))


async def _save_for_server(visit: Visit, form: Form, whole: Whole) -> Response | None:
    """The same for all repositories."""
    if not form.flag("try"):
        await visit.api("PUT", "/policy/rules", fields=whole)
        return None
    return await _try(visit, form, whole, show_policy)


EDITOR.mount(pages, show_rules, _read, _save)
EDITOR.mount(pages, show_policy, _read_of_server, _save_for_server)


def _as_written(found: Any) -> Whole:
    return {"rules": without_blanks(msgspec.to_builtins(found.rules))}


async def _try(visit: Visit, form: Form, whole: Whole, show: Callable[..., Awaitable[Response]]) -> Response:
    """Show what the rules of a form would do; the page of a job if that takes longer than a page."""
    found: Any = await visit.api("POST", "/policy/rehearse", fields=whole)
    visit.sent = form
    return visit.show_job(found.headers) if isinstance(found, Response) else await show(visit, tried=found)


@pages.post(f"{POLICY}/drill", page=show_policy)
async def drill_server(visit: Visit, _form: Form) -> Response:
    """Play published incidents with the rules for all repositories."""
    return await _drill(visit, {}, show_policy)


@pages.post(f"{RULES}/drill", page=show_rules)
async def drill_repository(visit: Visit, _form: Form) -> Response:
    """Play them with all rules that hold for a repository."""
    return await _drill(visit, {"repository": visit.at["repository"]}, show_rules)


async def _drill(visit: Visit, fields: dict[str, Any], show: Callable[..., Awaitable[Response]]) -> Response:
    found: Any = await visit.api("POST", "/policy/drill", fields=fields)
    return visit.show_job(found.headers) if isinstance(found, Response) else await show(visit, played=found)


@pages.post(f"{POLICY}/blocks", page=show_policy)
async def add_block(visit: Visit, form: Form) -> Response | None:
    """Add a block."""
    made = await visit.api("POST", "/policy/blocks", fields=_block(form))
    return await show_policy(visit, warning=made.warning) if made.warning else None


def _block(form: Form) -> dict[str, Any]:
    return {**form.texts("repository", "package", "versions", "reason"), "digests": form.text("digests").split()}


@pages.get(HELD)
async def show_quarantined(visit: Visit) -> Response:
    """A version in quarantine, with what is different from the version before it, if that is why."""
    found = await visit.api("GET", "/policy/quarantine/<quarantined>")
    difference = None
    if found.before:
        place = {"repository": found.repository, "package": found.package}
        with suppress(NotFound, Forbidden):  # one of both is not kept here, or the caller may not read it
            asked = {"before": found.before, "after": found.version}
            difference = await visit.api("GET", "/package/<repository>/<package>/difference", place, query=asked)
    return visit.page("administration/quarantined.html", each=found, found=difference, most=LISTED)


@pages.post(HELD, then=POLICY)
async def decide(visit: Visit, form: Form) -> None:
    """Approve or deny a version in quarantine."""
    verb = "approve" if form.flag("approve") else "deny"
    await visit.api("POST", f"/policy/quarantine/<quarantined>/{verb}", fields=form.texts("reason"))


@pages.post(f"{VERSION}/block", then=POLICY)
async def block_version(visit: Visit, form: Form) -> None:
    """Block the version that the page is about, by its digest if it is that of an image without a tag."""
    version = visit.at["version"]
    named: dict[str, Any] = {"digests": [version]} if ":" in version else {"versions": version}
    about = {each: visit.at[each] for each in ("repository", "package")}
    await visit.api("POST", "/policy/blocks", fields={**about, **form.texts("reason"), **named})


pages.operation(f"{POLICY}/blocks/<block>/remove", "DELETE", "/policy/blocks/<block>", then=POLICY)


def _freeze(form: Form) -> dict[str, Any]:
    """An empty time is now."""
    given: dict[str, Any] = {each: form.text(each).split() for each in ("repositories", "except")}
    at = form.text("at").strip()
    return {**given, **form.texts("reason"), **({"at": at} if at else {})}


FREEZE: Final = "/policy/freeze/<freeze>"
pages.operation(f"{POLICY}/freezes", "POST", "/policy/freeze", _freeze, page=show_policy)
pages.operation(f"{POLICY}/freezes/<freeze>/thaw", "DELETE", FREEZE, then=POLICY)
pages.operation(
    f"{POLICY}/freezes/<freeze>/except",
    "POST",
    f"{FREEZE}/except",
    lambda form: {"names": form.text("names").split()},
    then=POLICY,
)
