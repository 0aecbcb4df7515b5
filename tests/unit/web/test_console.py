"""The first pages of the console: repositories, search, login."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlencode

import pytest

from tests.support.browser import Browser
from tests.support.memory_server import OTHER_PASSWORD

HOSTILE = "\"><script>alert(1)</script>\u202e'"


async def test_a_person_sees_public_repositories_and_after_a_login_private_ones(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.add_repository("secret", visibility="private")
    page = await browser.get("/ui/")
    assert "main/ py" in page.text
    assert "secret" not in page.text
    page = await browser.log_in()
    assert "main/ secret" in page.text
    assert "/ui/repositories/main/secret" in page.links


async def test_a_private_repository_and_one_that_does_not_exist_look_alike(browser: Browser) -> None:
    await browser.stack.add_repository("secret", visibility="private")
    pages = [await browser.raw("GET", f"/ui/repositories/main/{name}") for name in ("secret", "absent")]
    assert [each.status for each in pages] == [303, 303]
    await browser.stack.add_user("ada")
    await browser.log_in("ada", OTHER_PASSWORD)
    texts = [(await browser.get(f"/ui/repositories/main/{name}")).text for name in ("secret", "absent")]
    assert "does not exist" in texts[0]
    hidden = [
        text.partition("request ")[0].replace(name, "X") for text, name in zip(texts, ("secret", "absent"), strict=True)
    ]
    assert hidden[0] == hidden[1]


async def test_a_login_leads_back_to_the_page_that_needed_it(browser: Browser) -> None:
    await browser.stack.add_repository("secret", visibility="private")
    page = await browser.get("/ui/repositories/main/secret?q=a%26b")
    page = await browser.send(page, "/ui/login", username="admin", password="wrong")
    assert (page.status, "The user name or the password is wrong." in page.text) == (401, True)
    reply = await browser.raw(
        "POST",
        "/ui/login",
        page.forms["/ui/login"] | {"username": "admin", "password": browser.stack.password("admin")},
    )
    assert reply.headers["location"] == "http://registry.example/ui/repositories/main/secret?q=a%26b"


@pytest.mark.parametrize(
    "target",
    [
        *("//evil.example", "/ui//evil.example", "https://evil.example", "/ui/\\evil", "/ui/../x\r\nA: b", "/uix"),
        *("/ui/../api", "/ui/%2e%2e/api", "/ui/.%2E/api", "/ui/x/./y", "/ui/\u00e9", "/ui/%5c..%5c..\\x"),
        *("/repositories/main/npm/x", "/repositories/main/../-/v1/login?session=x", "/repositories/a/b/-/v1/login"),
        *("/repositories//b/-/v1/login?session=x", "/repositories/a/b/-/v1/login?session=x&y=//evil.example"),
    ],
)
async def test_a_login_leads_to_no_other_site(browser: Browser, target: str) -> None:
    form = {"next": target, "username": "admin", "password": browser.stack.password("admin")}
    reply = await browser.raw("POST", "/ui/login", form)
    assert reply.headers["location"] == "http://registry.example/ui/"


async def test_a_login_for_npm_goes_back_to_the_page_of_npm(browser: Browser) -> None:
    await browser.stack.add_repository("node", format="npm")
    begun = await browser.stack.call("POST", "/repositories/main/node/-/v1/login", {}, who=None)
    page = await browser.get(begun.json["loginUrl"].removeprefix("http://registry.example"))
    [link] = [each for each in page.links if "/ui/login" in each]
    page = await browser.send(
        await browser.get(link), "/ui/login", username="admin", password=browser.stack.password("admin")
    )
    assert "Go on as admin" in page.text


async def test_a_form_needs_the_value_of_its_session_and_the_origin_of_the_server(browser: Browser) -> None:
    page = await browser.log_in()
    for form, origin in (({}, ""), ({"csrf": "0" * 64}, ""), (page.forms["/ui/logout"], "https://evil.example")):
        reply = await browser.raw("POST", "/ui/logout", form, **({"Origin": origin} if origin else {}))
        assert reply.status == 403
    assert "admin" in (await browser.get("/ui/")).text
    page = await browser.send(page, "/ui/logout")
    assert "Log in" in page.text


async def test_a_login_at_an_https_address_leads_to_https_behind_any_proxy(make_stack: Any) -> None:
    # which ends TLS, passes Host on, and is not in server.trusted_proxies
    stack = await make_stack(server__public_url="https://pkgs.example")
    form = urlencode({"username": "admin", "password": stack.password("admin")}).encode()
    fields = {"Host": "pkgs.example", "Content-Type": "application/x-www-form-urlencoded"}
    cookie = ""
    for _ in range(2):
        reply = await stack.call("POST", "/ui/login", raw=form, who=None, headers={**fields, "Cookie": cookie})
        assert (reply.status, reply.headers["location"]) == (303, "https://pkgs.example/ui/")
        assert reply.headers["set-cookie"].startswith("__Host-pkgrepo=")
        assert reply.headers["set-cookie"].endswith("; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure")
        before, cookie = cookie, reply.headers["set-cookie"].partition(";")[0]
    chosen = await stack.call("POST", "/ui/language", raw=b"language=de", who=None, headers=fields)
    assert chosen.headers["set-cookie"].startswith("__Host-pkgrepo_language=de; Path=/; ")
    german = {"Host": "pkgs.example", "Cookie": chosen.headers["set-cookie"].partition(";")[0]}
    assert b'<html lang="de" ' in (await stack.call("GET", "/ui/login", who=None, headers=german)).body
    for each, status in ((before, 401), (cookie, 200)):  # the second login ended the session of the first
        asked = await stack.call("GET", "/api/user/me", who=None, headers={"Host": "pkgs.example", "Cookie": each})
        assert asked.status == status


@pytest.mark.parametrize(
    ("public_url", "days", "said"),
    [
        ("https://pkgs.example", 365, "max-age=31536000"),
        ("https://pkgs.example", 0, None),
        ("http://a.example", 9, None),
    ],
)
async def test_browsers_keep_to_https_where_that_is_the_address(
    make_stack: Any, public_url: str, days: int, said: str | None
) -> None:
    stack = await make_stack(server__public_url=public_url, server__hsts_days=days)
    for path in ("/ui/login", "/api/info", "/nothing"):
        assert (await stack.call("GET", path, who=None)).headers.get("strict-transport-security") == said


async def test_text_of_others_is_shown_as_text(browser: Browser) -> None:
    await browser.stack.add_repository("py", description=HOSTILE)
    for path in ("/ui/", f"/ui/search?q={quote(HOSTILE)}", f"/ui/repositories/main/py?q={quote(HOSTILE)}"):
        page = await browser.get(path)
        assert page.status == 200
        assert "<script>alert" not in page.html
        assert "script-src 'self'" in page.headers["content-security-policy"]
        assert "frame-ancestors 'none'; base-uri 'none'" in page.headers["content-security-policy"]
        assert (page.headers["referrer-policy"], page.headers["cache-control"]) == ("same-origin", "no-store")


async def test_packages_are_found_and_listed_with_the_set_up(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.publish("main/py", "demo", "1.0")
    page = await browser.get("/ui/search?q=dem")
    assert "<mark>dem</mark>o" in page.html
    page = await browser.get("/ui/repositories/main/py")
    assert "/ui/repositories/main/py/packages/demo" in page.links
    assert "pip install" in page.text
    page = await browser.get("/ui/repositories/main/py/tree/")
    assert page.status == 200


async def test_browsers_are_led_to_the_console_and_clients_never(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    for path, page in (("/", "/ui/"), ("/repositories/main/py/", "/ui/repositories/main/py")):
        reply = await browser.raw("GET", path)
        assert (reply.status, reply.headers["location"]) == (303, f"http://registry.example{page}")
        for fields in ({"Accept": "text/html"}, {"User-Agent": "pip/25.0", "Accept": "text/html,*/*;q=0.1"}):
            assert (await browser.stack.call("GET", path, who=None, headers=fields)).status != 303


async def test_errors_are_pages(browser: Browser) -> None:
    for path, status in (("/ui/nowhere", 404), ("/ui/static/x.css", 404), ("/ui/repositories/main/x%00y", 303)):
        assert (await browser.raw("GET", path)).status == status
    reply = await browser.raw("POST", "/ui/login", {"a": ["x"] * 2500})
    assert reply.status == 422
    assert b"Traceback" not in reply.body


async def test_the_first_start_makes_the_admin(make_stack) -> None:
    stack = await make_stack(with_admin=False, compat__open_install=True)
    browser = Browser(stack)
    page = await browser.get("/ui/")
    form = {"username": "admin", "password": OTHER_PASSWORD}
    page = await browser.send(page, "/ui/install", **form, repeated="another")
    assert (page.status, "The two passwords differ" in page.text) == (422, True)
    page = await browser.send(page, "/ui/install", **form, repeated=OTHER_PASSWORD)
    assert "There is no repository yet" in page.text


async def test_assets_are_kept_for_ever(browser: Browser) -> None:
    page = await browser.get("/ui/")
    [address] = {part.split('"')[0] for part in page.html.split('href="') if part.startswith("/ui/static/style-")}
    reply = await browser.raw("GET", address)
    assert "immutable" in reply.headers["cache-control"]
    assert b"--ink" in reply.body


async def test_the_first_page_shows_what_changed_last_to_those_who_may_see_it(browser: Browser) -> None:
    for name, visibility in (("py", "public"), ("secret", "private")):
        await browser.stack.add_repository(name, visibility=visibility)
        await browser.stack.publish(f"main/{name}", f"of-{name}", "1.0")
    page = await browser.get("/ui/")
    assert "Recent changes of-py" in page.text
    assert "of-secret" not in page.text
    page = await browser.log_in()
    assert "Recent changes of-secret" in page.text
    items = (await browser.stack.ok("GET", "/activity?limit=1"))["items"]
    assert [(each["name"], each["repository"]) for each in items] == [("of-secret", "main/secret")]


async def test_repositories_are_sorted_and_paged(browser: Browser, monkeypatch: Any) -> None:
    monkeypatch.setattr("pkgrepo.web.content.home.PER_PAGE", 2)
    for name in ("a", "b", "c"):
        await browser.stack.add_repository(name)
    for query, names in (
        ("", "ab"),
        ("page=2", "c"),
        ("sort=-name", "cb"),
        ("sort=-name&page=99", "a"),
        ("page=x", "ab"),
    ):
        page = await browser.get(f"/ui/?{query}")
        assert "".join(re.findall(r"main/<b>(.)</b>", page.html)) == names


async def test_the_page_of_a_repository_is_shown_above_its_packages_to_its_readers(browser: Browser) -> None:
    text = "# Ours\n\nAsk [us](https://us.example/).\n\n<script>alert(1)</script>"
    await browser.stack.add_repository("py", config={"type": "Hosted", "page": text})
    page = await browser.get("/ui/repositories/main/py")
    assert "<h1>Ours</h1>" in page.html
    assert "https://us.example/" in page.links
    assert "<script>alert" not in page.html
    for other in ("?q=demo", "/tree/"):
        assert "Ours" not in (await browser.get(f"/ui/repositories/main/py{other}")).text


async def test_a_page_that_is_not_available_now_says_when_to_try_again(browser: Browser) -> None:
    await browser.stack.add_repository("py")
    await browser.stack.publish("main/py", "demo", "1.0")
    await browser.stack.ok("PATCH", "/repository/main%2Fpy", {"active": False})
    reply = await browser.raw("GET", "/ui/repositories/main/py/packages/demo")
    assert (reply.status, reply.headers["retry-after"]) == (503, "5")


async def test_a_page_with_wrong_credentials_makes_no_browser_ask_for_others(browser: Browser) -> None:
    reply = await browser.raw("GET", "/ui/", Authorization="Basic eDp5")
    assert reply.status == 401
    assert "www-authenticate" not in reply.headers


async def test_a_search_has_chips_with_counts_that_choose(browser: Browser) -> None:
    stack = browser.stack
    await stack.add_repository("py")
    await stack.add_repository("apps")
    for place, name, terms in (("py", "demo-a", "MIT"), ("py", "demo-b", "MIT"), ("apps", "demo-c", "BSD & <b>")):
        fields = [("License-Expression", terms), ("Summary", f"The {name} <i>thing</i>"), ("Author", "Ada Byron")]
        await stack.publish(f"main/{place}", name, "1.0", fields=fields)
    await stack.publish("main/py", "demo-b", "1.1")
    await stack.ok("POST", "/package/main%2Fpy/demo-b/versions/1.1/yank", {"reason": "no"})
    page = await browser.get("/ui/search?q=demo")
    assert "3 packages for “demo”" in page.text
    for chip in ("main/py 2", "main/apps 1", "MIT 2", "BSD & <b> 1", "some yanked or deprecated 1"):
        assert chip in page.text, chip
    assert "-a &lt;i&gt;thing" in page.html
    page = await browser.get("/ui/search?q=demo&license=MIT")
    assert "2 packages" in page.text
    assert "demo-c" not in page.text
    assert "MIT ×" in page.text
    page = await browser.get("/ui/search?q=demo&withdrawn=true&repository=main/py")
    assert "1 package for" in page.text
    assert "/ui/repositories/main/py/packages/demo-b" in page.links
    assert "3 packages" in (await browser.get("/ui/search?q=byron")).text  # an author
    assert "No package that you may see fits" in (await browser.get("/ui/search?q=demo&source=cached")).text
    assert (await stack.api("GET", "/search/packages?q=demo&source=lost")).status == 422
    found = await stack.ok("GET", "/search/packages?q=demo&facets=true&limit=1&source=hosted")
    assert found["facets"]["licenses"] == [{"value": "MIT", "count": 2}, {"value": "BSD & <b>", "count": 1}]
    assert (found["truncated"], found["facets"]["hits"], found["facets"]["complete"]) == (True, 3, True)
    (hit,) = found["items"]
    assert (hit["license"], hit["summary"]) == ("MIT", "The demo-a <i>thing</i>")
    plain = await stack.ok("GET", "/search/packages?q=demo")
    assert plain["facets"] is None


async def test_an_address_without_a_page_is_shown_to_the_person_who_is_logged_in(browser: Browser) -> None:
    assert "You are not logged in" in (await browser.get("/ui/nowhere")).text
    await browser.log_in()
    page = await browser.get("/ui/nowhere")
    assert (page.status, "/ui/account" in page.links, "not logged in" in page.text) == (404, True, False)


async def test_figures_of_a_proxy_say_that_they_are_of_what_it_keeps(browser: Browser) -> None:
    """Clients may have been sent much that is not kept any more, and the downloads beside the figures count that."""
    config = {"type": "Proxy", "proxy": {"routes": [{"url": "http://127.0.0.1:9/simple/"}]}}
    await browser.stack.add_repository("mirror", config=config)
    await browser.stack.add_repository("own")
    await browser.log_in()
    place = "/ui/repositories/main"
    for name, found in (("mirror", True), ("own", False)):
        assert ("keeps 0 packages" in (await browser.get(f"{place}/{name}")).text) is found
        assert ("Kept packages, versions" in (await browser.get(f"{place}/{name}/settings")).text) is found
        figures = (await browser.get(f"{place}/{name}/settings/figures")).text
        assert ("kept packages with" in figures, "not kept any more" in figures) == (found, found)
    assert (await browser.get("/ui/")).text.count(" kept ") == 2  # packages and bytes of the proxy
