"""Account and administration: what the forms change."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pkgrepo.errors import Invalid
from pkgrepo.http.responses import Refusal
from pkgrepo.model import Action
from pkgrepo.storage.catalog.people.grants import MOST_PATTERNS
from pkgrepo.storage.catalog.usage_counts import DAY_MS, CacheCounts, add_cache_counts
from pkgrepo.untrusted.patterns import has_words
from pkgrepo.web.visits import FORM_LIMIT, MOST_FIELDS, Form, read_form
from tests.support.browser import Browser
from tests.support.memory_server import OTHER_PASSWORD, PASSWORD

NEW = "/ui/admin/repositories/new"


async def test_a_token_is_made_with_a_reach_shown_once_and_revoked(browser: Browser) -> None:
    await browser.stack.add_repository("py", visibility="private")
    await browser.log_in()
    page = await browser.get("/ui/account/tokens?repository=main/py")
    assert "may read and publish packages in main/py for 90 days" in page.text
    page = await browser.send(page, "/ui/account/tokens", explain="1", reach="all", scopes="audit", days="1")
    assert "administer packages in main/py and read the audit log for 1 day" in page.text
    assert (await browser.stack.ok("GET", "/user/token"))["items"] == []
    page = await browser.get("/ui/account/tokens")
    page = await browser.send(page, "/ui/account/tokens", name="ci", reach="write", repositories="main/py", days="30")
    [token] = set(re.findall(r"pkgr_p_\w{46}", page.text))
    await browser.stack.call("GET", "/repositories/main/py/simple/", who=token)
    page = await browser.get("/ui/account/tokens")
    assert token not in page.html
    assert "main/py: read, write" in page.text
    assert "may read and publish packages in main/py until" in page.text
    page = await browser.send(page, "/ui/account/tokens/revoke")
    assert "revoked" in page.text
    assert (await browser.stack.call("GET", "/repositories/main/py/simple/", who=token)).status == 401
    page = await browser.send(page, "/ui/account/tokens", name="", reach="read")
    assert (page.status, "name" in page.text) == (422, True)


async def test_profile_password_and_logins_are_changed(browser: Browser) -> None:
    await browser.stack.add_user("ada")
    other = Browser(browser.stack)
    await other.log_in("ada", OTHER_PASSWORD)
    await browser.log_in("ada", OTHER_PASSWORD)
    page = await browser.get("/ui/account")
    page = await browser.send(page, "/ui/account", name="Ada L.", email="ada@x.example")
    assert "Ada L." in page.html
    page = await browser.send(page, "/ui/account/sessions", id="")
    assert "Log in" in (await other.get("/ui/")).text
    form = {"old": OTHER_PASSWORD, "new": PASSWORD, "repeated": PASSWORD + "x"}
    page = await browser.send(page, "/ui/account/password", **form)
    assert "The two new passwords differ." in page.text
    page = await browser.send(page, "/ui/account/password", **form | {"repeated": PASSWORD})
    page = await browser.send(page, "/ui/login", username="ada", password=PASSWORD)
    assert "Ada L." in page.html


async def test_managers_see_and_end_the_logins_of_others_but_not_of_admins(browser: Browser) -> None:
    stack = browser.stack
    ada, grace = [(await stack.add_user(name, user_manager=name == "grace"))["id"] for name in ("ada", "grace")]
    first, second = Browser(stack), Browser(stack)
    for each in (first, second):
        await each.log_in("ada", OTHER_PASSWORD)
    await browser.log_in("grace", OTHER_PASSWORD)
    listed = await stack.ok("GET", f"/users/{ada}/sessions", who="grace")
    assert [each["current"] for each in listed] == [False, False]
    page = await browser.get(f"/ui/admin/users/{ada}")
    assert "Logins" in page.text
    action = f"/ui/admin/users/{ada}/sessions"
    page = await browser.send(page, action, session=listed[1]["id"])
    assert ["Log in" in (await each.get("/ui/")).text for each in (first, second)] == [True, False]
    page = await browser.send(page, action, session="")
    assert "Log in" in (await second.get("/ui/")).text
    assert "Nobody is logged in as ada" in page.text
    own = await browser.get(f"/ui/admin/users/{grace}")
    assert "this one" in own.text
    assert (await stack.ok("DELETE", f"/users/{grace}/sessions"))["ended"] == 1
    admin = (await stack.ok("GET", "/users/admin"))["id"]
    for path in (f"/users/{admin}/sessions", f"/users/{admin}/sessions/1"):
        assert (await stack.api("DELETE", path, who="grace")).status == 403
    assert (await stack.api("GET", f"/users/{admin}/sessions", who="grace")).status == 403
    assert (await stack.api("GET", f"/users/{ada}/sessions", who="ada")).status == 403
    assert (await stack.api("DELETE", f"/users/{ada}/sessions/none")).status == 404
    assert (await stack.audited(action="session.end"))[0]["object"] in ("ada", "grace", "admin")


async def test_a_repository_is_made_changed_and_deleted(browser: Browser) -> None:
    await browser.log_in()
    page = await browser.get(NEW)
    assert "Which packages does it have?" in page.text
    page = await browser.get(f"{NEW}?format=python&type=Hosted")
    page = await browser.send(page, NEW, name="p y", visibility="public")
    assert (page.status, 'role="alert"' in page.html) == (422, True)
    page = await browser.send(page, NEW, name="py", visibility="public", **{"/policy/strict_filenames": "1"})
    assert "pip install" in page.text
    settings = "/ui/repositories/main/py/settings"
    page = await browser.get(settings)
    assert page.forms[settings]["/policy/strict_filenames"] == "1"
    change = {"visibility": "private", "description": "Ours", "active": "1", "/page": "# Hello"}
    page = await browser.send(page, settings, **change)
    assert (page.status, "Ours" in page.text, "private" in page.text) == (200, True, True)
    config = await browser.stack.ok("GET", "/repository/main%2Fpy/config")
    assert (config["page"], config["policy"]["strict_filenames"]) == ("# Hello", True)
    page = await browser.send(page, f"{settings}/delete", confirm="wrong")
    assert page.status == 422
    page = await browser.send(page, f"{settings}/delete", confirm="py")
    assert "There is no repository yet" in page.text


async def test_a_configuration_is_replaced_as_json(browser: Browser) -> None:
    await browser.stack.add_repository("py", config={"type": "Hosted", "x_note": {"a": 1}})
    await browser.log_in()
    settings = "/ui/repositories/main/py/settings"
    for text in ("{", "[]", "[" * 50_000, '{"type": "Proxy"}', '{"type": "Hosted", "none": 1}'):
        page = await browser.send(await browser.get(settings), f"{settings}/json", config=text)
        assert (page.status, 'role="alert"' in page.html) == (422, True)
    page = await browser.send(page, settings, visibility="public", active="1")
    assert (await browser.stack.ok("GET", "/repository/main%2Fpy/config"))["x_note"] == {"a": 1}
    page = await browser.send(page, f"{settings}/json", config='{"type": "Hosted", "page": "Hello"}')
    assert page.status == 200
    assert (await browser.stack.ok("GET", "/repository/main%2Fpy/config")) == {"type": "Hosted", "page": "Hello"}


async def test_proxies_and_virtual_repositories_are_made_from_their_fields(browser: Browser) -> None:
    await browser.stack.add_repository("own", format="npm")
    await browser.log_in()
    page = await browser.get(f"{NEW}?format=npm&type=Proxy")
    routes = {
        "/proxy/routes/0/url": "https://registry.invalid/",
        "/proxy/routes/0/priority": "5",
        "/proxy/routes/0/auth/token": "secret-of-route",
    }
    page = await browser.send(page, NEW, name="far", visibility="public", **{**routes, "/proxy/routes/0/priority": "x"})
    assert (page.status, "no whole number" in page.text) == (422, True)
    page = await browser.send(page, NEW, name="far", visibility="public", **routes, **{"/cache_ttl": "5m"})
    settings = "/ui/repositories/main/far/settings"
    page = await browser.get(settings)
    assert "secret-of-route" not in page.html
    second = {"/proxy/routes/1/url": "https://second.invalid/", "/cache/max_bytes": "1000"}
    page = await browser.send(page, settings, **second)
    config = await browser.stack.ok("GET", "/repository/main%2Ffar/config")
    assert [(each["url"], each["priority"], each.get("auth")) for each in config["proxy"]["routes"]] == [
        ("https://registry.invalid/", 5, {"token": "***"}),
        ("https://second.invalid/", 0, None),
    ]
    assert (config["cache_ttl"], config["cache"]) == ("5m", {"max_bytes": 1000})
    page = await browser.get(f"{NEW}?format=npm&type=Virtual")
    page = await browser.send(page, NEW, name="all", visibility="public", **{"/members": "main/own\nmain/far\n"})
    assert "Virtual" in page.text
    page = await browser.get(f"{NEW}?format=npm&type=Virtual")
    whole = {"name": "both", "storage": "main", "format": "npm", "config": {"type": "Virtual", "members": ["main/own"]}}
    page = await browser.send(page, f"{NEW}/json", json=json.dumps(whole))
    assert "main/ both" in page.text


async def test_a_user_gets_grants_and_the_audit_log_says_so(browser: Browser) -> None:
    await browser.stack.add_repository("py", visibility="private")
    await browser.log_in()
    page = await browser.get("/ui/admin/users")
    page = await browser.send(page, "/ui/admin/users", username="bob", password=OTHER_PASSWORD)
    [path] = [action for action in page.forms if re.fullmatch(r"/ui/admin/users/[\w-]{36}", action)]
    page = await browser.send(page, f"{path}/grants", **{"new": "main/py", "new actions": ["read", "write"]})
    assert "main/py" in page.text
    browser.stack.set_password("bob", OTHER_PASSWORD)
    assert (await browser.stack.call("GET", "/repositories/main/py/simple/", who="bob")).status == 200
    page = await browser.send(page, f"{path}/grants", **{"repository": "main/py", "drop main/py": "1"})
    assert (await browser.stack.call("GET", "/repositories/main/py/simple/", who="bob")).status != 200
    page = await browser.send(page, path, name="Bob", active="")
    assert (await browser.stack.call("GET", "/api/user/whoami", who="bob")).status == 401
    assert "user.create" in (await browser.get("/ui/admin/audit?actor=admin")).text
    page = await browser.send(page, f"{path}/delete")
    assert "bob" not in page.text


async def test_a_group_gets_members_grants_and_a_service_account(browser: Browser) -> None:
    await browser.stack.add_repository("py", visibility="private")
    await browser.stack.add_user("ada")
    await browser.log_in()
    page = await browser.get("/ui/admin/groups")
    page = await browser.send(page, "/ui/admin/groups", name="crew", description="The crew")
    [path] = [action for action in page.forms if re.fullmatch(r"/ui/admin/groups/[\w-]{36}", action)]
    page = await browser.send(page, f"{path}/members", user="nobody")
    assert (page.status, "There is no user 'nobody'" in page.text) == (422, True)
    page = await browser.send(page, f"{path}/members", user="ada")
    assert "1 member" in page.text
    page = await browser.send(page, f"{path}/grants", **{"new": "main/py", "new actions": ["read"]})
    assert (await browser.stack.call("GET", "/repositories/main/py/simple/", who="ada")).status == 200
    page = await browser.send(page, path, name="team", description="The team")
    assert "The team" in page.text
    users = await browser.get("/ui/admin/users")
    page = await browser.send(users, "/ui/admin/users", username="robot", service="1", owner="group team")
    [own] = [each for each in page.links if each.startswith("/ui/account/services/")]
    page = await browser.send(await browser.get(path), f"{path}/delete")
    assert (page.status, "owns the service accounts robot" in page.text) == (422, True)
    await browser.log_in("ada", OTHER_PASSWORD)
    assert own in (await browser.get("/ui/account/services")).links
    page = await browser.send(await browser.get(own), own, name="ci", reach="all")
    text = re.search(r"pkgr_s_\w+", page.html)
    assert text, page.text
    assert (await browser.stack.call("GET", "/api/user/whoami", who=text[0])).json["username"] == "robot"
    [token] = (await browser.stack.ok("GET", "/users/robot/token"))["items"]
    await browser.send(page, f"{own}/revoke", id=token["id"])
    assert (await browser.stack.call("GET", "/api/user/whoami", who=text[0])).status == 401


async def test_a_quota_is_set_and_shown_with_a_bar(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.log_in()
    page = await browser.get("/ui/admin/quotas?place=main/py")
    page = await browser.send(page, "/ui/admin/quotas", bytes="1KiB", packages="x")
    assert (page.status, "is no number" in page.text) == (422, True)
    page = await browser.send(page, "/ui/admin/quotas", place="main/py", bytes="1KiB", packages="3")
    assert "of 1.0 KiB" in page.text or "of 1 KiB" in page.text, page.text
    assert "main/py" in page.text
    page = await browser.send(page, "/ui/admin/quotas", place="main/py", versions="9")
    limits = (await browser.stack.ok("GET", "/repository/main%2Fpy/quota"))["limits"]
    assert limits == {"bytes": 1024, "packages": 3, "versions": 9, "file_size": None}
    page = await browser.send(page, "/ui/admin/quotas", place="main/py")
    assert (page.status, "Say what to limit" in page.text) == (422, True)
    page = await browser.send(page, "/ui/admin/quotas", place="main/none", bytes="1")
    assert page.status in (404, 422)
    await browser.stack.ok("PATCH", "/repository/main%2Fpy/quota", {"bytes": 0})
    shown = await browser.get("/ui/repositories/main/py")
    assert "uploads are refused" in shown.text


async def test_an_unfinished_upload_is_listed_and_cancelled(browser: Browser) -> None:
    await browser.stack.add_repository("images", format="docker")
    begun = await browser.stack.call("POST", "/v2/main/images/app/blobs/uploads/")
    assert begun.status == 202
    await browser.log_in()
    page = await browser.get("/ui/repositories/main/images/uploads")
    [upload] = re.findall(r"<code class=.quiet.>([^<]+)</code>", page.html)
    page = await browser.send(page, "/ui/repositories/main/images/uploads")
    assert "No upload is unfinished" in page.text
    assert (await browser.stack.api("DELETE", f"/repository/main%2Fimages/uploads/{upload}")).status == 404


async def test_administration_is_closed_to_others(browser: Browser) -> None:
    await browser.stack.add_user("ada")
    paths = ("/ui/admin", "/ui/admin/users", "/ui/admin/groups", "/ui/admin/audit", "/ui/admin/repositories/new")
    assert [(await browser.raw("GET", path)).status for path in paths] == [303] * 5
    await browser.log_in("ada", OTHER_PASSWORD)
    assert [(await browser.raw("GET", path)).status for path in paths] == [403] * 5


async def test_the_overview_shows_what_each_manager_may_see(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository(
        "mirror", config={"type": "Proxy", "proxy": {"routes": [{"url": "http://127.0.0.1:9/"}]}}
    )
    await stack.add_user("ada", user_manager=True)
    await stack.add_user("bob", system_manager=True)
    counts = {(1, int(time.time() * 1000) // DAY_MS): CacheCounts(hits=3, misses=1, upstream_ms=40)}
    await stack.assembly.core.catalog.write(add_cache_counts, counts)
    await stack.ok("POST", "/system/webhooks", {"name": "builds", "url": "https://x.example/", "events": ["package.*"]})
    await stack.assembly.core.catalog.write(lambda tx: tx.execute("UPDATE webhook SET failing_since = 1"))
    await browser.log_in("ada", OTHER_PASSWORD)
    page = await browser.get("/ui/admin")
    assert ("/ui/admin/users" in page.links, "Storages" in page.text) == (True, False)
    await browser.log_in("bob", OTHER_PASSWORD)
    page = await browser.get("/ui/admin")
    assert "/ui/admin/users" not in page.links
    assert "main/mirror 4 75.0 % 40 ms" in page.text
    assert "What needs attention builds Its receiver has failed since" in page.text


async def test_grants_for_patterns_say_what_they_match_now_and_which_decides(browser: Browser) -> None:
    for name in ("py", "npm-a", "npm-b"):
        await browser.stack.add_repository(name, visibility="private")
    ada = await browser.stack.add_user("ada")
    await browser.stack.ok("POST", "/groups", {"name": "crew"})
    await browser.stack.ok("POST", "/groups/crew/members", {"user": "ada"})
    await browser.log_in()
    page = await browser.get("/ui/admin/groups/crew")
    [action] = [each for each in page.forms if each.endswith("/grants")]
    page = await browser.send(page, action, **{"new": "MAIN/*", "new actions": ["read", "delete"]})
    assert "main/* now main/npm-a, main/npm-b, main/py" in page.text
    path = f"/ui/admin/users/{ada['id']}"
    page = await browser.send(await browser.get(path), f"{path}/grants", **{"new": "main/npm-*", "new actions": []})
    page = await browser.send(page, f"{path}/grants", **{"new": "main/npm-a", "new actions": ["read"]})
    assert "main/npm-* now main/npm-a, main/npm-b" in page.text
    assert (await browser.send(page, f"{path}/grants", new="../*")).status == 422
    matrix = (await browser.get("/ui/admin/grants?q=ada")).text
    cells = ["read: ada in main/npm-a", "nothing for main/npm-*: ada in main/npm-b"]
    for each in ["read", "nothing for main/npm-*", "read delete by group crew for main/*"]:
        assert each in matrix, cells
    assert "the user's grant for main/npm-*" in (await browser.get(f"{path}/rights")).text


async def test_the_form_of_all_grants_that_a_user_may_have_is_taken(browser: Browser) -> None:
    ada = await browser.stack.add_user("ada")
    every = {f"m{number}/*": list(Action) for number in range(MOST_PATTERNS)}
    grants = [{"repository": pattern, "actions": actions} for pattern, actions in every.items()]
    await browser.stack.ok("PUT", "/users/ada/permissions", {"repositories": grants})
    await browser.log_in()
    path = f"/ui/admin/users/{ada['id']}"
    page = await browser.get(path)
    form = {f"actions {pattern}": actions for pattern, actions in every.items()} | {"actions m7/*": ["read"]}
    page = await browser.send(page, f"{path}/grants", repository=list(every), **form)
    assert page.status == 200, page.text
    stored = (await browser.stack.ok("GET", "/users/ada/permissions"))["repositories"]
    assert {each["repository"]: each["actions"] for each in stored} == {**every, "m7/*": ["read"]}


async def test_a_cell_of_the_matrix_is_changed_and_removed(browser: Browser) -> None:
    await browser.stack.add_repository("py", visibility="private")
    ada = await browser.stack.add_user("ada")
    await browser.log_in()
    page = await browser.get("/ui/admin/grants?q=ada&repositories=py")
    [link] = [each for each in page.links if "user=" in each]
    cell = f"/ui/admin/grants{link}"
    page = await browser.send(await browser.get(cell), "/ui/admin/grants", actions=["read", "write"])
    assert "read write" in page.text
    assert (await browser.stack.call("GET", "/repositories/main/py/simple/", who="ada")).status == 200
    page = await browser.send(await browser.get(cell), "/ui/admin/grants", actions=["fly"])
    assert (page.status, "There is no action" in page.text) == (422, True)
    page = await browser.send(await browser.get(cell), "/ui/admin/grants", remove="1")
    assert "read write" not in page.text
    assert (await browser.stack.call("GET", "/repositories/main/py/simple/", who="ada")).status != 200
    assert (await browser.get(f"/ui/admin/grants?user={ada['id']}&repository=main/none")).status == 200


BODY = b"name=+demo+&secret=+x+&each=a&each=&each=b&lines=one%0D%0A%0D%0A+two+&box=on&word=%C3%A9"


class Sent:
    """A request with a body; ``limits`` are those with which it was read."""

    def __init__(self, kind: bytes | None, body: bytes = BODY) -> None:
        self.kind = kind
        self.data = body
        self.body = self
        self.limits: list[int] = []

    def header(self, name: bytes) -> bytes | None:
        return self.kind if name == b"content-type" else None

    async def read_all(self, limit: int) -> bytes:
        self.limits.append(limit)
        return self.data


async def read(kind: bytes | None, body: bytes = BODY) -> Form:
    request: Any = Sent(kind, body)
    form = await read_form(request)
    assert request.limits == [FORM_LIMIT]
    return form


@pytest.mark.parametrize(
    "kind",
    [
        b"application/x-www-form-urlencoded",
        b"application/x-www-form-urlencoded; charset=UTF-8",
        b" Application/X-WWW-Form-Urlencoded ;charset=utf-8",
    ],
)
async def test_the_fields_of_a_form_are_read(kind: bytes) -> None:
    form = await read(kind)
    assert (form.text("name"), form.secret("secret"), form.text("word")) == ("demo", " x ", "é")
    assert (form.all("each"), form.lines("lines")) == (["a", "b"], ["one", "two"])
    assert (form.flag("box"), form.flag("absent"), form.text("absent", "default")) == (True, False, "default")


# Those that another site's form can send without asking first (CORS safelist), and some others.
@pytest.mark.parametrize(
    "kind",
    [
        None,
        b"",
        b"text/plain",
        b"multipart/form-data; boundary=x",
        b"application/json",
        b"application/x-www-form-urlencoded2",
        b"text/plain; application/x-www-form-urlencoded",
        b"application/octet-stream",
    ],
)
async def test_a_body_of_another_type_is_refused_unread(kind: bytes | None) -> None:
    request: Any = Sent(kind)
    with pytest.raises(Refusal) as refused:
        await read_form(request)
    assert refused.value.status == 415
    assert request.limits == []


async def test_the_number_of_fields_is_bounded() -> None:
    kind = b"application/x-www-form-urlencoded"
    assert (await read(kind, b"&".join([b"a=1"] * MOST_FIELDS))).all("a") == ["1"] * MOST_FIELDS
    with pytest.raises(Invalid, match=f"more than {MOST_FIELDS} fields"):
        await read(kind, b"&".join([b"a=1"] * (MOST_FIELDS + 1)))


async def test_the_overview_names_what_waits_for_an_approval(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("py")
    await browser.log_in()
    assert "waits for an approval" not in (await browser.get("/ui/admin")).text
    stage = await stack.ok("POST", "/repository/main%2Fpy/stages", {"description": "the autumn release"})
    page = await browser.get("/ui/admin")
    assert "What waits for an approval main/py nothing yet by admin" in page.text
    assert "the autumn release" in page.text
    await stack.ok("POST", f"/stages/{stage['id']}/reject", {"reason": "no"})
    assert "waits for an approval" not in (await browser.get("/ui/admin")).text


async def test_the_figures_of_a_repository_are_counted_on_a_page_of_their_own(browser: Browser) -> None:
    stack, settings = browser.stack, "/ui/repositories/main/py/settings"
    await stack.add_repository("py")
    await stack.publish("main/py", "demo", "1.0")
    await browser.log_in()
    page = await browser.get(settings)
    assert "Packages, versions 1, 1" in page.text
    assert f"{settings}/figures" in page.links
    page = await browser.get(f"{settings}/figures")
    assert (page.status, "can be freed" in page.text, "demo" in page.text) == (200, True, True)
    await stack.add_user("ada")
    await stack.grant("ada", "main/py", "read", "edit")
    await browser.log_in("ada", OTHER_PASSWORD)
    assert f"{settings}/figures" not in (await browser.get(settings)).links
    assert (await browser.get(f"{settings}/figures")).status == 403


PARTS = ("", "/members", "/names", "/blocks", "/freezes", "/storages")  # addresses of forms that are on the page itself
SETTINGS = "/ui/repositories/main/py/settings"
# Each form with something wrong in it: its page and address, what is entered, which field is wrong, what is said.
REFUSED = (
    ("/ui/admin/users", "", {"username": "a b", "name": "Ada"}, "username", "A user name has 3 to 32"),
    ("/ui/admin/users", "", {"username": "adam", "email": "nope"}, "email", "Email: expected an address of e-mail"),
    ("/ui/admin/users", "", {"username": "adam", "password": "short"}, "password", "A password has at least"),
    ("/ui/admin/users", "", {"username": "admin", "password": PASSWORD}, "username", "already exists"),
    (
        "/ui/admin/groups",
        "",
        {"name": "a b", "description": "<b>The</b> crew"},
        "name",
        "Name: expected 1 to 64 letters",
    ),
    ("/ui/projects", "", {"key": "a b", "name": "Core", "description": "All of it"}, "key", "Key: expected up to 100"),
    ("/ui/projects/core", "", {"name": "N" * 300, "description": "D"}, "name", "Name: give 200 characters at most"),
    ("/ui/projects/core", "/members", {"name": "nobody", "role": "maintainer"}, "name", "There is no user 'nobody'"),
    ("/ui/projects/core", "/names", {"repository": "main/no", "pattern": "a"}, "repository", "There is no repository"),
    ("/ui/admin/webhooks", "", {"name": "b", "url": "nope", "events": "stage.*"}, "url", "The address cannot be used"),
    (
        "/ui/admin/webhooks",
        "",
        {"name": "b", "url": "https://a.example/", "events": "no"},
        "events",
        "There is no event",
    ),
    (
        SETTINGS,
        "/webhooks",
        {"name": "", "url": "https://a.example/", "events": "stage.*"},
        "name",
        "Name: give a text",
    ),
    ("/ui/admin/hosts", "", {"name": "a b/", "repository": "main/py"}, "name", "is no host name"),
    ("/ui/admin/hosts", "", {"name": "a.example", "repository": "main/no"}, "repository", "does not exist"),
    (
        "/ui/admin/quotas",
        "",
        {"place": "main/py", "bytes": "1x", "packages": "3", "shown": ""},
        "bytes",
        "is no number",
    ),
    ("/ui/admin/quotas", "", {"place": "main/no", "bytes": "1GiB", "shown": ""}, "place", "does not exist"),
    ("/ui/admin/policy", "/blocks", {"package": "demo", "reason": "bad"}, "repository", "Repository: give a text"),
    ("/ui/admin/policy", "/blocks", {"repository": "main/no", "package": "demo"}, "repository", "does not exist"),
    ("/ui/admin/policy", "/freezes", {"repositories": "main/py", "at": "x"}, "at", "At: give a date with a time"),
    ("/ui/admin/stages", "", {"repository": "main/no", "description": "D"}, "repository", "does not exist"),
    ("/ui/repositories/main/py/stages", "", {"description": "D" * 2000}, "description", "more than 1000 characters"),
    ("/ui/account", "", {"name": "N", "email": "nope"}, "email", "Email: expected an address"),
    ("/ui/account/tokens", "", {"name": "", "reach": "read", "days": "30"}, "name", "Name: give a text"),
    (
        "/ui/account/tokens",
        "",
        {"name": "x", "repositories": "main/no", "days": "9"},
        "repositories",
        "There is no repository",
    ),
    ("/ui/account/tokens", "", {"name": "x", "reach": "read", "days": "99999"}, "days", "A token ends within"),
    (SETTINGS, "/retention/times", {"/schedule": "x"}, "/schedule", "A schedule has five fields"),
    (SETTINGS, "/retention/one", {"/name": "", "/keep/last": "3"}, "/name", "Name: this is required"),
    (SETTINGS, "/rules/one", {"/name": "r", "/match/packages": "a", "/until": "x"}, "/until", "Until: give a date"),
    (SETTINGS, "/import", {"source": "nope", "username": "u"}, "repositories", "Name the repository"),
    ("/ui/admin", "/storages", {"name": "a b", "path": "x"}, "name", "Name: expected 1 to 64 letters"),
    (
        f"{NEW}?format=npm&type=Proxy",
        "",
        {"name": "far", "/proxy/routes/0/url": "nope"},
        "/proxy/routes/0/url",
        "not the URL",
    ),
    (
        f"{NEW}?format=npm&type=Proxy",
        "",
        {"name": "far", "/cache_ttl": "x", "/proxy/routes/0/url": "https://a.example/"},
        "/cache_ttl",
        "a time such as 5m",
    ),
    (
        f"{NEW}?format=npm&type=Proxy",
        "",
        {"name": "far", "/replicate/repository": "x", "/proxy/routes/0/url": "https://a.example/"},
        "/replicate/url",
        "address of the server",
    ),
    (f"{NEW}?format=python&type=Hosted", "", {"name": "py", "description": "d"}, "name", "already exists"),
    (f"{NEW}?format=python&type=Virtual", "", {"name": "v", "/members main/py": "x"}, "/members main/py", "no place"),
    (
        f"{NEW}?format=python&type=Virtual",
        "",
        {"name": "v", "/members main/py": "1", "/publish_to": "main/no"},
        "/publish_to",
        "There is no repository",
    ),
)


@pytest.mark.parametrize(("place", "action", "fields", "wrong", "sentence"), REFUSED)
async def test_a_form_that_is_refused_shows_what_was_entered_and_which_field_is_wrong(
    browser: Browser, place: str, action: str, fields: dict[str, str], wrong: str, sentence: str
) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.ok("POST", "/project", {"key": "core", "name": "Core"})
    await browser.log_in()
    page = await browser.get(place if action in PARTS else place + (action.rpartition("/")[0] or action))
    target = place.partition("?")[0] + action
    page = await browser.send(page, target, **fields)
    assert (page.status, sentence in page.text) == (422, True), page.text
    shown = {name: value for name, value in fields.items() if name != "password"}
    assert page.forms[target] | shown == page.forms[target]
    [marked] = re.findall(r"<(?:input|select|textarea)\b([^>]*\baria-invalid=[^>]*)>", page.html)
    assert f'name="{wrong}"' in marked
    assert page.html.count('id="wrong-field"') == 1
    assert "<b>The</b>" not in page.html
    assert not re.search(r"\^\[|\[A-Za-z|matching", page.text), "no sentence shows a regular expression"


async def test_what_cannot_be_taken_back_is_asked_first_also_without_scripts(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    block = {"repository": "main/py", "package": "demo", "reason": "bad"}
    made = await browser.stack.ok("POST", "/policy/blocks", block)
    await browser.log_in()
    action = f"/ui/admin/policy/blocks/{made['id']}/remove"
    page = await browser.send(await browser.get("/ui/admin/policy"), action, sure="")
    assert "Remove the block of demo?" in page.text
    assert "/ui/admin/policy" in page.links
    assert len(await browser.stack.ok("GET", "/policy/blocks")) == 1
    page = await browser.send(page, action, ask="<script>", sure="")
    assert "<script>alert" not in page.html
    await browser.send(page, action)
    assert await browser.stack.ok("GET", "/policy/blocks") == []


async def test_members_are_chosen_from_a_list_in_an_order(browser: Browser) -> None:
    stack = browser.stack
    for name in ("one", "two", "three"):
        await stack.add_repository(name)
    await stack.add_repository("other", format="npm")
    await stack.add_user("ada")
    await browser.log_in()
    page = await browser.get(f"{NEW}?format=python&type=Virtual")
    rows = [name for name in page.forms[NEW] if name.startswith("/members ")]
    assert rows == ["/members main/one", "/members main/three", "/members main/two"]
    chosen = {"/members main/three": "1", "/members main/one": "20", "/publish_to": "main/one"}
    page = await browser.send(page, NEW, name="all", **chosen)
    config = await stack.ok("GET", "/repository/main%2Fall/config")
    assert (config["members"], config["publish_to"]) == (["main/three", "main/one"], "main/one")
    settings = "/ui/repositories/main/all/settings"
    page = await browser.get(settings)
    assert {name: page.forms[settings][f"/members main/{name}"] for name in ("one", "two", "three")} == {
        "three": "1",
        "one": "2",
        "two": "",
    }
    assert "/members main/all" not in page.forms[settings]
    page = await browser.send(page, settings, **{"/members main/two": "1", "/members main/three": "3"})
    assert (await stack.ok("GET", "/repository/main%2Fall/config"))["members"] == ["main/two", "main/one", "main/three"]
    await stack.grant("ada", "main/all", "read", "edit")
    await stack.add_repository("secret", visibility="private")
    await browser.log_in("ada", OTHER_PASSWORD)
    assert "main/secret" not in (await browser.get(settings)).html


async def test_upstreams_are_tried_before_they_are_saved(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_user("ada")
    await stack.add_repository("far", config={"type": "Proxy", "proxy": {"routes": ["https://a.invalid/simple/"]}})
    await browser.log_in()
    page = await browser.get(f"{NEW}?format=python&type=Proxy")
    page = await browser.send(page, NEW, name="new", test="1", **{"/proxy/routes/0/url": "http://www.b.invalid/pypi"})
    assert page.status == 200
    assert "b.invalid" in page.text, page.text
    for remark in ("It begins with http://", "may be a web site", "end with /simple/ in most cases"):
        assert remark in page.text
    assert page.forms[NEW] | {"name": "new", "/proxy/routes/0/url": "http://www.b.invalid/pypi"} == page.forms[NEW]
    assert (await stack.call("GET", "/api/repository/main%2Fnew")).status == 404
    settings = "/ui/repositories/main/far/settings"
    page = await browser.get(settings)
    page = await browser.send(page, settings, test="1", **{"/proxy/routes/0/url": "https://c.invalid/simple/"})
    assert (page.status, 'id="tested" role="status"' in page.html) == (200, True)
    config = await stack.ok("GET", "/repository/main%2Ffar/config")
    assert config["proxy"]["routes"][0]["url"] == "https://a.invalid/simple/"
    for _ in range(30):
        page = await browser.send(page, settings, test="1")
    assert (page.status, "asked too often" in page.text) == (422, True)
    body = {"format": "python", "config": config}
    await stack.grant("ada", "main/far", "read", "edit")
    assert (await stack.api("POST", "/upstream/check", body, who="ada")).status == 403
    assert (
        await stack.api("POST", "/repository/main%2Ffar/upstream/check", {"config": config}, who="ada")
    ).status == 200
    await stack.grant("ada", "main/far", "read", "write")
    assert (
        await stack.api("POST", "/repository/main%2Ffar/upstream/check", {"config": config}, who="ada")
    ).status == 403


async def test_each_pattern_of_a_field_of_the_api_is_known_in_words(browser: Browser) -> None:
    """Those of configurations too, whose schemas are asked for by format."""
    stack = browser.stack
    formats = {each["name"] for each in await stack.ok("GET", "/repository/types")}
    document = await stack.ok("GET", "/openapi.json")
    schemas = [await stack.ok("GET", f"/repository/config/{name}/schema") for name in formats]
    unknown = {each for each in _patterns([document, schemas]) if not has_words(each)}
    assert not unknown


def _patterns(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(node.get("pattern"), str):
            yield node["pattern"]
        yield from (each for value in node.values() for each in _patterns(value))
    elif isinstance(node, list):
        yield from (each for value in node for each in _patterns(value))
