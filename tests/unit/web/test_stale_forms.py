"""A form changes only what its page has shown: what another person has changed meanwhile is not taken back."""

from __future__ import annotations

from typing import Any, Final

import pytest
from attrs import Factory, frozen

from pkgrepo.repositories.policy.conditions import SERVER
from pkgrepo.storage.catalog.server.policy import add_counts
from pkgrepo.storage.catalog.usage_counts import DAY_MS
from pkgrepo.web.rendering.refill import UNCHANGED
from tests.support.browser import Browser

REPOSITORY: Final = "/repository/main%2Fpy"
SETTINGS: Final = "/ui/repositories/main/py/settings"
RULE: Final = {"name": "theirs", "match": {"versions": "<1"}, "action": "block"}
KEPT: Final = {"name": "theirs", "match": {"versions": "0.*"}, "keep": {"last": 3}}
MEANWHILE: Final = "changed since the page was opened"


@frozen
class Form:
    """
    A form: the path of its page, its address unless that is the same, and ``entered``; and the request of another
    person. ``{ada}``, ``{team}`` and ``{hook}`` are ids.
    """

    operation: str  # the one that the form comes to
    page: str
    theirs: tuple[str, str, dict[str, Any]]
    at: str = ""
    entered: dict[str, str] = Factory(dict)

    @property
    def address(self) -> str:
        """The address that it is sent to."""
        return self.at or self.page


ADA, TEAM, HOOK = "/ui/admin/users/{ada}", "/ui/admin/groups/{team}", "/ui/admin/webhooks/{hook}"
OTHER_NAME = ("PATCH", "/users/{ada}", {"name": "Theirs"})
GRANTED = {"repositories": [{"repository": "main/py", "actions": ["read"]}]}
MORE = {"new": "main/p*", "new actions": "read"}
RENAMED = ("PATCH", "/groups/{team}", {"description": "theirs"})
PRIVATE = ("PATCH", REPOSITORY, {"visibility": "private"})
PROJECT = ("PATCH", "/project/core", {"description": "theirs"})
HOOKED = ("PATCH", "/system/webhooks/{hook}", {"name": "theirs"})
RULED = ("PATCH", f"{REPOSITORY}/config/policy", {"rules": [RULE]})
RETAINED = ("PUT", f"{REPOSITORY}/config/retention", {"rules": [KEPT]})
FORMS = [
    Form("PATCH /users/<id>", ADA, OTHER_NAME, entered={"email": "a@x.example"}),
    Form("PUT /users/<id>/permissions", ADA, ("PUT", "/users/{ada}/permissions", GRANTED), f"{ADA}/grants", MORE),
    Form("DELETE /users/<id>", ADA, OTHER_NAME, f"{ADA}/delete"),
    Form("PATCH /groups/<name>", TEAM, RENAMED, entered={"name": "crew"}),
    Form(
        "PUT /groups/<name>/permissions", TEAM, ("PUT", "/groups/{team}/permissions", GRANTED), f"{TEAM}/grants", MORE
    ),
    Form("DELETE /groups/<name>", TEAM, RENAMED, f"{TEAM}/delete"),
    Form("PATCH /repository/<repository>", SETTINGS, PRIVATE, entered={"description": "ours"}),
    Form("PUT /repository/<repository>/config", SETTINGS, RULED, entered={"description": "ours"}),
    Form("PUT /repository/<repository>/config", SETTINGS, RULED, f"{SETTINGS}/json"),
    Form("DELETE /repository/<repository>", SETTINGS, PRIVATE, f"{SETTINGS}/delete", {"confirm": "main/py"}),
    Form("PATCH /repository/<repository>/config/<key>", f"{SETTINGS}/rules", RULED, entered={"rules": "[]"}),
    Form("PUT /repository/<repository>/config/<key>", f"{SETTINGS}/retention", RETAINED, entered={"rules": ""}),
    Form("PUT /policy/rules", "/ui/admin/policy", ("PUT", "/policy/rules", {"rules": [RULE]})),
    Form(
        "PUT /system/retention", "/ui/admin/retention", ("PUT", "/system/retention", {"retention": {"rules": [KEPT]}})
    ),
    Form("PATCH /project/<key>", "/ui/projects/core", PROJECT, entered={"name": "Ours"}),
    Form("DELETE /project/<key>", "/ui/projects/core", PROJECT, "/ui/projects/core/delete", {"confirm": "core"}),
    Form("PATCH /system/webhooks/<id>", HOOK, HOOKED, entered={"format": "plain"}),
    Form("DELETE /system/webhooks/<id>", HOOK, HOOKED, f"{HOOK}/delete"),
    Form("PATCH /user/me", "/ui/account", ("PATCH", "/user/me", {"email": "theirs@x.example"}), entered={"name": "X"}),
]
# What no form does to the whole of what a page shows.
NO_FORMS = {
    "PATCH /storage/<id>",
    "DELETE /storage/<id>",
    "PUT /repository/<repository>/members",
    "PUT /system/hosts",
    "PATCH /user/token/<id>",
}


async def filled(browser: Browser) -> dict[str, str]:
    stack = browser.stack
    await stack.add_repository("py")
    await stack.ok("POST", "/project", {"key": "core"})
    hook = {"name": "hook", "url": "https://hook.example/", "events": ["stage.*"], "format": "plain"}
    return {
        "ada": (await stack.ok("POST", "/users", {"username": "ada"}))["id"],
        "team": (await stack.ok("POST", "/groups", {"name": "team"}))["id"],
        "hook": (await stack.ok("POST", "/system/webhooks", hook))["id"],
    }


def named(text: str, ids: dict[str, str]) -> str:
    for name, id_ in ids.items():
        text = text.replace(f"{{{name}}}", id_)
    return text


@pytest.mark.parametrize("form", FORMS, ids=lambda each: f"{each.operation} {each.address}")
async def test_what_another_person_changed_is_not_taken_back_unseen(browser: Browser, form: Form) -> None:
    ids = await filled(browser)
    await browser.log_in()
    path, address = named(form.page, ids), named(form.address, ids)
    page = await browser.get(path)
    method, operation, body = form.theirs
    await browser.stack.ok(method, named(operation, ids), body)
    kept = await state(browser, ids)
    answer = await browser.send(page, address, **form.entered)
    assert (answer.status in (409, 422), MEANWHILE in answer.text) == (True, True), answer.text
    assert await state(browser, ids) == kept
    page = answer if address in answer.forms else await browser.get(path)
    answer = await browser.send(page, address, **form.entered)
    assert (answer.status, MEANWHILE in answer.text) == (200, False), answer.text
    assert await state(browser, ids) != kept


async def state(browser: Browser, ids: dict[str, str]) -> list[Any]:
    places = [
        f"/groups/{ids['team']}",
        "/users",
        f"/users/{ids['ada']}/permissions",
        "/groups",
        "/repository",
        f"{REPOSITORY}/config",
        "/project",
    ]
    places += ["/policy/rules", "/system/retention", "/system/webhooks", "/user/me"]
    replies = [await browser.stack.api("GET", each) for each in places]
    return [each.json if each.status == 200 else each.status for each in replies]


async def test_every_operation_that_looks_for_changes_is_known(browser: Browser) -> None:
    described = (await browser.stack.ok("GET", "/openapi.json"))["paths"]
    found = {
        f"{method.upper()} {path.replace('{', '<').replace('}', '>')}"
        for path, methods in described.items()
        for method, said in methods.items()
        if any(each.get("name") == "If-Match" for each in said.get("parameters", ())) and "deprecated" not in said
    }
    of_others = {each for each in found if each.endswith("/webhooks/<id>") and "/system/" not in each}
    assert found - of_others == {each.operation for each in FORMS} | NO_FORMS


async def test_a_rule_is_changed_beside_others(browser: Browser) -> None:
    """The form of one rule takes no other one back."""
    ids = await filled(browser)
    assert ids
    await browser.log_in()
    page = await browser.get(f"{SETTINGS}/rules?example=critical")
    await browser.stack.ok(*RULED)
    await browser.send(page, f"{SETTINGS}/rules/one", **{"/name": "ours"})
    rules = (await browser.stack.ok("GET", f"{REPOSITORY}/config/policy"))["rules"]
    assert [each["name"] for each in rules] == ["theirs", "ours"]


async def test_what_was_tried_is_saved_only_over_what_was_shown(browser: Browser) -> None:
    await filled(browser)
    await browser.log_in()
    page = await browser.get(f"{SETTINGS}/rules")
    await browser.stack.ok(*RULED)
    page = await browser.send(page, f"{SETTINGS}/rules", rules="[]", **{"try": "1"})
    answer = await browser.send(page, f"{SETTINGS}/rules", rules="[]")
    assert MEANWHILE in answer.text
    assert answer.forms[f"{SETTINGS}/rules"]["rules"] == "[]"


async def test_what_the_server_counts_is_no_change(browser: Browser) -> None:
    ids = await filled(browser)
    await browser.log_in()
    team, policy = named(TEAM, ids), "/ui/admin/policy"
    await browser.stack.ok("PUT", "/policy/rules", {"rules": [RULE]})
    pages = [await browser.get(team), await browser.get(policy)]
    await browser.stack.ok("POST", f"/groups/{ids['team']}/members", {"user": "ada"})  # as a login at a provider does
    core = browser.stack.assembly.core
    [repository] = [each for each in core.registry.all() if each.path == "main/py"]
    matched = {(SERVER, "theirs", repository.id, core.clock.now_ms() // DAY_MS): 1}
    await core.catalog.write(add_counts, matched)
    assert (await browser.stack.ok("GET", "/policy/rules"))["counts"][0]["count"] == 1
    assert "changed since" not in (await browser.send(pages[0], f"{team}/grants", **MORE)).text
    assert "changed since" not in (await browser.send(pages[1], policy)).text


async def test_a_page_that_asks_first_brings_what_the_form_knew(browser: Browser) -> None:
    ids = await filled(browser)
    await browser.log_in()
    page = await browser.get(named(ADA, ids))
    await browser.stack.ok("PATCH", f"/users/{ids['ada']}", {"name": "Theirs"})
    address = f"{named(ADA, ids)}/delete"
    asked = await browser.send(page, address, sure="")
    assert "Are you sure?" in asked.text
    assert asked.html.count(f'name="{UNCHANGED}"') == 1
    answer = await browser.send(asked, address)
    assert MEANWHILE in answer.text
    assert (await browser.stack.ok("GET", f"/users/{ids['ada']}"))["name"] == "Theirs"


async def test_a_precondition_of_nobody_is_refused(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.log_in()
    page = await browser.get(SETTINGS)
    for odd in ("x", "=", "/repository/main%2Fpy=*", '/repository/main%2Fpy="\r\nX: y'):
        answer = await browser.send(page, SETTINGS, description="ours", **{UNCHANGED: odd})
        assert answer.status in (200, 422)
        assert (MEANWHILE in answer.text) == ("main" in odd), odd
