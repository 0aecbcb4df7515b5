"""The pages of the console for rules of retention and for the trash."""

from __future__ import annotations

import json

from pkgrepo.storage.catalog.server import repositories
from tests.support.browser import Browser
from tests.support.catalogs import publish
from tests.support.images import Registry, make_image

PAGE = "/ui/repositories/main/py/settings/retention"
TAGS_MOVE = {"type": "Hosted", "push_rules": {"allow_tag_overwrite": True}}
RULES = json.dumps({"rules": [{"name": "old ones", "keep": {"last": 1}}]})


async def filled(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    for version in ("1.0", "1.1", "1.2"):
        await browser.stack.publish("main/py", "demo", version)
    await browser.log_in()


async def test_rules_are_tried_saved_and_run(browser: Browser) -> None:
    await filled(browser)
    page = await browser.get(PAGE)
    assert "no rules yet" in page.text
    page = await browser.send(page, PAGE, rules=RULES, **{"try": "1"})
    assert ("would remove 2 of 3" in page.text, "old ones" in page.text) == (True, True)
    assert "no rules yet" in (await browser.get(PAGE)).text
    page = await browser.send(await browser.get(PAGE), PAGE, rules="{")
    assert (page.status, "not JSON" in page.text) == (422, True)
    await browser.send(page, PAGE, rules=RULES)
    page = await browser.get(PAGE)
    assert ("A run now would remove 2 of 3" in page.text, "waits for confirmation" in page.text) == (True, True)
    page = await browser.send(page, f"{PAGE}/run", confirm="1")
    [uid] = {link.rsplit("/", 1)[1] for link in (await browser.get("/ui/admin/jobs")).links if "/admin/jobs/" in link}
    await browser.stack.assembly.core.jobs.wait(uid)
    assert "old ones" in (await browser.get(f"/ui/admin/jobs/{uid}")).text
    assert "Nothing would go" in (await browser.get(PAGE)).text


async def test_a_rule_is_made_of_fields_and_tried_and_removed(browser: Browser) -> None:
    await filled(browser)
    page = await browser.get(f"{PAGE}?example=old+versions")
    assert page.forms[f"{PAGE}/one"]["/keep/last"] == "5"
    fields = {
        "/name": "all but two",
        "/keep/last": "2",
        "/keep/newer_than_days": "",
        "/keep/downloaded_within_days": "",
    }
    page = await browser.send(page, f"{PAGE}/one", **fields, **{"try": "1"})
    assert "would remove 1 of 3" in page.text
    await browser.send(page, f"{PAGE}/one", **fields)
    page = await browser.get(PAGE)
    assert "all but two keeps last 2 trash" in page.text
    await browser.send(page, f"{PAGE}/times", **{"/schedule": "0 4 * * *"})
    await browser.send(page, f"{PAGE}/times", **{"/schedule": "at night"})
    stored = await browser.stack.ok("GET", "/repository/main%2Fpy/config/retention")
    assert (stored["schedule"], [each["name"] for each in stored["rules"]]) == ("0 4 * * *", ["all but two"])
    settings = "/ui/repositories/main/py/settings"  # a form without these leaves them as they are
    await browser.send(await browser.get(settings), settings)
    assert await browser.stack.ok("GET", "/repository/main%2Fpy/config/retention") == stored
    await browser.send(await browser.get(PAGE), f"{PAGE}/remove", chosen="all but two")
    assert "no rules yet" in (await browser.get(PAGE)).text
    server = "/ui/admin/retention"
    await browser.send(await browser.get(server), f"{server}/one", **fields)
    assert "all but two keeps last 2 trash" in (await browser.get(server)).text
    await browser.send(await browser.get(f"{server}?rule=all+but+two"), f"{server}/one", **{"/keep/last": "1"})
    assert "keeps last 1" in (await browser.get(server)).text
    await browser.send(await browser.get(server), f"{server}/remove", chosen="all but two")
    assert "no such rules yet" in (await browser.get(server)).text


async def test_rules_of_the_server_are_saved_and_a_version_is_pinned(browser: Browser) -> None:
    await filled(browser)
    page = await browser.get("/ui/admin/retention")
    assert "no such rules yet" in page.text
    ranged = json.dumps({"rules": [{"name": "old", "match": {"versions": ">1"}}]})
    page = await browser.send(page, "/ui/admin/retention", rules=ranged)
    assert (page.status, "A range means something else" in page.text) == (422, True)
    await browser.send(page, "/ui/admin/retention", rules=RULES)
    version = "/ui/repositories/main/py/packages/demo/versions/1.0"
    page = await browser.send(await browser.get(version), f"{version}/pin", reason="stays")
    page = await browser.get(version)
    assert ("Unpin this version" in page.text, "stays" in page.text) == (True, True)
    found = await browser.stack.ok("POST", "/repository/main%2Fpy/retention?dry_run=true", {})
    assert [each["version"] for each in found["victims"]] == ["1.1"]
    await browser.send(page, f"{version}/pin", undo="1")
    assert "Pin this version" in (await browser.get(version)).text
    await browser.send(await browser.get("/ui/admin/retention"), "/ui/admin/retention", rules="")
    assert "no such rules yet" in (await browser.get("/ui/admin/retention")).text


async def test_the_trash_is_shown_restored_and_purged(browser: Browser) -> None:
    await filled(browser)
    assert "nothing that you may restore" in (await browser.get("/ui/admin/trash")).text
    gone = [await browser.stack.ok("DELETE", f"/package/main%2Fpy/demo/versions/{each}") for each in ("1.0", "1.1")]
    page = await browser.get("/ui/admin/trash")
    assert ("1.0" in page.text, "main/py" in page.text) == (True, True)
    await browser.send(page, f"/ui/admin/trash/{gone[0]['trash']}/restore")
    await browser.send(page, f"/ui/admin/trash/{gone[1]['trash']}/purge")
    assert "nothing that you may restore" in (await browser.get("/ui/admin/trash")).text
    assert (await browser.send(page, f"/ui/admin/trash/{gone[1]['trash']}/restore")).status == 422
    versions = (await browser.stack.ok("GET", "/package/main%2Fpy/demo/versions"))["items"]
    assert {each["version"] for each in versions} == {"1.0", "1.2"}


async def test_a_tag_of_an_image_points_to_an_earlier_manifest_again(browser: Browser) -> None:
    await browser.stack.add_repository("images", format="docker", config=TAGS_MOVE)
    registry = Registry(browser.stack, "main/images/app")
    first, second = make_image("one"), make_image("two")
    for image in (first, second):
        await registry.push(image, "v1")
    await browser.log_in()
    assert "History of the tag" in (await browser.get("/ui/repositories/main/images/packages/app/versions/v1")).text
    place = "/ui/repositories/main/images/packages/app/tags/v1"
    page = await browser.get(place)
    assert (first.digest in page.text, second.digest in page.text) == (True, True)
    await browser.send(page, place, digest=first.digest)
    assert (await registry.below("GET", "manifests/v1")).headers["docker-content-digest"] == first.digest


async def test_a_proxy_has_rules_for_its_cache_and_its_versions_are_pinned(browser: Browser) -> None:
    stack = browser.stack
    route = {"url": "http://127.0.0.1:9/", "name": "up"}
    config = {"type": "Proxy", "proxy": {"routes": [route]}, "cache": {"unused_days": 5}}
    await stack.add_repository("mirror", config=config)
    await browser.log_in()
    catalog, path = stack.assembly.core.catalog, "/ui/repositories/main/mirror"
    repository = await catalog.look(repositories.find_by_path, "main", "mirror")
    await catalog.write(publish, repository, "packages/demo/1.0/demo-1.0.tar.gz", version="1", now_ms=1_700_000_000_000)
    assert f"{path}/settings/retention" in (await browser.get(f"{path}/settings")).links
    page = await browser.get(f"{path}/settings/retention")
    assert "What goes is evicted, and fetched again" in page.text
    assert "unused_days: not used since 2023-11-14" in page.text
    rules = json.dumps({"rules": [{"name": "all", "match": {"packages": ["d*"]}}]})
    page = await browser.send(page, f"{path}/settings/retention", **{"rules": rules, "try": "1"})
    assert ("These rules, which are not saved, would remove 1 of 1" in page.text, "evicted" in page.text) == (
        True,
        True,
    )
    version = await browser.get(f"{path}/packages/demo/versions/1")
    await browser.send(version, f"{path}/packages/demo/versions/1/pin", reason="ours")
    page = await browser.send(page, f"{path}/settings/retention", **{"rules": rules, "try": "1"})
    assert ("Nothing would go" in page.text, "not used since" in page.text) == (True, False)
