"""The pages of the console for rules, blocks and versions in quarantine."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.support.browser import Browser
from tests.support.npm_packages import make_manifest, make_publish, make_tarball

POLICY = "/ui/admin/policy"
RULES = "/ui/repositories/main/py/settings/rules"
VERSION = "/ui/repositories/main/py/packages/demo/versions/1.0"
FILE = "/repositories/main/py/demo/1.0/demo-1.0-py3-none-any.whl"


async def filled(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.publish("main/py", "demo", "1.0")
    await browser.log_in()


async def status(browser: Browser) -> int:
    return int((await browser.stack.call("GET", FILE)).status)


async def test_a_version_is_blocked_by_a_button_and_the_block_is_removed(browser: Browser) -> None:
    await filled(browser)
    page = await browser.send(await browser.get(VERSION), f"{VERSION}/block", reason="steals keys")
    page = await browser.get(POLICY)
    assert ("steals keys" in page.text, await status(browser)) == (True, 403)
    assert "is blocked by a block of main/py" in (await browser.get(VERSION)).text
    [block] = await browser.stack.ok("GET", "/policy/blocks")
    assert (block["package"], block["versions"], block["by"]) == ("demo", "1.0", "admin")
    await browser.send(page, f"{POLICY}/blocks/{block['id']}/remove")
    page = await browser.get(POLICY)
    assert ("Nothing is blocked" in page.text, await status(browser)) == (True, 200)
    page = await browser.send(page, f"{POLICY}/blocks", repository="main/*", package="demo", versions=">= x y")
    assert (page.status, "is no range" in page.text) == (422, True)
    await browser.send(page, f"{POLICY}/blocks", repository="main/*", package="demo", versions="<2")
    assert (await browser.stack.call("GET", FILE)).body.endswith(b"a system manager can lift that\n")


async def test_a_repository_is_frozen_by_a_form_and_thawed_by_a_button(browser: Browser) -> None:
    await filled(browser)
    await browser.stack.add_repository("all", config={"type": "Virtual", "members": ["main/py"]})
    page = await browser.get(POLICY)
    assert "Nothing is frozen" in page.text
    given = {"repositories": "main/all", "at": "soon", "reason": "a worm is out"}
    page = await browser.send(page, f"{POLICY}/freezes", **given)
    assert (page.status, page.forms[f"{POLICY}/freezes"]["reason"] == "a worm is out") == (422, True)
    await browser.send(page, f"{POLICY}/freezes", **{**given, "at": "2020-01-01T00:00:00Z"})
    path = FILE.replace("/py/", "/all/")
    assert "a worm is out" in (await browser.stack.call("GET", path)).body.decode()
    assert await status(browser) == 200
    [frozen] = await browser.stack.ok("GET", "/policy/freeze")
    page = await browser.get(POLICY)
    await browser.send(page, f"{POLICY}/freezes/{frozen['id']}/except", names="demo other")
    assert (await browser.stack.call("GET", path)).status == 200
    await browser.send(await browser.get(POLICY), f"{POLICY}/freezes/{frozen['id']}/thaw")
    assert "Nothing is frozen" in (await browser.get(POLICY)).text


async def test_rules_are_saved_and_what_they_hold_is_approved(browser: Browser) -> None:
    await filled(browser)
    page = await browser.get(RULES)
    assert "no rules yet" in page.text
    page = await browser.send(page, RULES, rules="{")
    assert (page.status, "not JSON" in page.text) == (422, True)
    rule: dict[str, Any] = {"name": "look first", "action": "quarantine", "reason": "new here"}
    await browser.send(page, RULES, rules=json.dumps([rule]))
    assert await status(browser) == 403
    await browser.stack.assembly._proxies.rule_matches.flush()
    page = await browser.get(POLICY)
    assert ("look first" in page.text, "new here" in page.text) == (True, True)
    [held] = (await browser.stack.ok("GET", "/policy/quarantine"))["items"]
    await browser.send(page, f"{POLICY}/quarantine/{held['id']}", reason="read it", approve="1")
    assert ("Nothing waits" in (await browser.get(POLICY)).text, await status(browser)) == (True, 200)
    page = await browser.get(RULES)
    assert "look first new here everything quarantine 1" in page.text
    await browser.send(page, RULES, rules="")
    assert "no rules yet" in (await browser.get(RULES)).text


async def test_rules_of_the_server_are_for_system_managers(browser: Browser) -> None:
    await filled(browser)
    page = await browser.get(POLICY)
    assert "no such rules yet" in page.text
    page = await browser.send(page, POLICY, rules='[{"name": "all"}]')
    assert await status(browser) == 403
    page = await browser.send(await browser.get(POLICY), POLICY, rules='[{"name": ""}]')
    assert page.status == 422
    await browser.send(page, POLICY, rules="")
    assert await status(browser) == 200


async def test_a_rule_is_made_of_fields_tried_changed_and_removed(browser: Browser) -> None:
    await filled(browser)
    assert await status(browser) == 200
    for place in (RULES, POLICY):
        page = await browser.get(f"{place}?example=critical")
        assert page.forms[f"{place}/one"]["/match/advisories"] == "critical"
        fields = {"/name": "old ones", "/match/versions": "<2", "/match/advisories": "", "/reason": "too old"}
        page = await browser.send(page, f"{place}/one", **fields, **{"try": "1"})
        assert re.search(r"[1-9] of [1-9] requests? would have been refused", page.text)
        assert page.forms[f"{place}/one"]["/match/versions"] == "<2"  # what was tried is still there to be saved
        assert await status(browser) == 200
        page = await browser.send(page, f"{place}/one", **fields | {"/match/age_days": "soon"})
        assert (page.status, "is no whole number" in page.text) == (422, True)
        await browser.send(page, f"{place}/one", **fields | {"/match/age_days": ""})
        assert await status(browser) == 403
        page = await browser.get(f"{place}?rule=old+ones")
        assert "old ones too old versions <2 block" in page.text
        await browser.send(page, f"{place}/one", **{"/name": "older ones", "/match/versions": "<1"})
        assert await status(browser) == 200
        page = await browser.send(page, f"{place}/one", **{"/name": "all"})  # a page that is older than that change
        assert (page.status, "no rule 'old ones' any more" in page.text) == (422, True)
        page = await browser.get(place)
        assert "older ones too old versions <1 block" in page.text
        await browser.send(page, f"{place}/remove", chosen="older ones")
        assert "older ones" not in (await browser.get(place)).text


async def test_rules_are_tried_before_they_are_saved(browser: Browser) -> None:
    await filled(browser)
    assert await status(browser) == 200
    rules = json.dumps([{"name": "too young", "match": {"age_days": 7}}])
    for path in (RULES, POLICY):
        page = await browser.send(await browser.get(path), path, rules=rules, **{"try": "1"})
        assert page.status == 200
        assert "1 of 1 request would have been refused" in page.text
        assert "too young" in page.text
        page = await browser.send(page, path, rules='[{"name": ""}]', **{"try": "1"})
        assert page.status == 422
    assert await status(browser) == 200


async def test_what_was_fetched_is_blocked_beside_who_has_it(browser: Browser) -> None:
    await filled(browser)
    await status(browser)
    for question in ("repository=main/py&package=demo&version=1.0", "what=pkg:pypi/demo@1.0"):
        page = await browser.get(f"/ui/admin/recall?{question}")
        form = page.forms[f"{POLICY}/blocks"]
        await browser.send(page, f"{POLICY}/blocks", **{**form, "reason": "malware"})
        assert await status(browser) == 403
        [block] = await browser.stack.ok("GET", "/policy/blocks")
        assert (block["package"], block["versions"]) == ("demo", "1.0")
        await browser.stack.ok("DELETE", f"/policy/blocks/{block['id']}")
        assert await status(browser) == 200


async def test_published_incidents_are_played_by_a_button(browser: Browser) -> None:
    await filled(browser)
    rule = {"name": "young ones", "match": {"age_days": 3, "source": "cached"}}
    await browser.stack.ok("PUT", "/policy/rules", {"rules": [rule]})
    page = await browser.send(await browser.get(POLICY), f"{POLICY}/drill")
    assert (page.status, "event-stream" in page.text, "young ones" in page.text) == (200, True, True)
    assert "75 days" in page.text  # for which flatmap-stream would have been served
    assert f"{RULES}/drill" not in (await browser.get(RULES)).forms
    routes = {"routes": [{"url": "https://upstream.invalid/simple/"}]}
    await browser.stack.add_repository("mirror", config={"type": "Proxy", "proxy": routes})
    rules = RULES.replace("/py/", "/mirror/")
    page = await browser.send(await browser.get(rules), f"{rules}/drill")
    assert (page.status, "litellm" in page.text, "event-stream" in page.text) == (200, True, False)


async def test_what_is_held_for_a_difference_is_shown_with_it_and_approved(browser: Browser) -> None:
    stack = browser.stack
    await browser.log_in()
    await stack.add_repository("js", format="npm", config={"type": "Hosted"})
    for version, more in (
        ("1.0.0", {}),
        ("1.0.1", {"scripts": {"install": "node evil.js"}, "dependencies": {"x": "1"}}),
    ):
        tarball = make_tarball("demo", version, manifest=make_manifest("demo", version, **more))
        body = make_publish("demo", version, tarball=tarball, **more)
        assert (await stack.call("PUT", "/repositories/main/js/demo", raw=body, who="admin")).status == 201
    rule = {"name": "differs", "match": {"differs": ["install_script", "dependency"]}, "action": "quarantine"}
    await stack.ok("PUT", "/repository/main%2Fjs/config/policy", {"rules": [rule]})
    path = "/repositories/main/js/demo/-/demo-1.0.1.tgz"
    assert (await stack.call("GET", path)).status == 403
    await stack.assembly._proxies.rule_matches.flush()
    [held] = (await stack.ok("GET", "/policy/quarantine"))["items"]
    shown = await stack.ok("GET", f"/policy/quarantine/{held['id']}")
    said = "first install_script, new dependency x since 1.0.0"
    assert (shown["because"], shown["before"], held["reason"]) == (said, "1.0.0", said)
    place = f"{POLICY}/quarantine/{held['id']}"
    assert place in {each.partition("?")[0] for each in (await browser.get(POLICY)).links}
    page = await browser.get(place)
    assert "First install_script, new dependency x since 1.0.0" in page.text
    assert "node evil.js" in page.text
    difference = "/ui/repositories/main/js/packages/demo/difference?before=1.0.0&after=1.0.1"
    assert difference in page.links
    await browser.send(page, place, reason="read it", approve="1")
    assert (await stack.call("GET", path)).status == 200
    page = await browser.get(place)
    assert "It was approved by admin" in page.text
    shown = await stack.ok("GET", f"/policy/quarantine/{held['id']}")
    assert (shown["because"], shown["before"], shown["reason"]) == ("", "", said)
