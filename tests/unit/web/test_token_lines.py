"""A new token is shown with what to copy for each client."""

from __future__ import annotations

from tests.support.browser import Browser


async def test_a_new_token_is_shown_with_lines_for_each_client(browser: Browser) -> None:
    for format_ in ("python", "npm", "docker", "maven", "ruby", "conda"):
        await browser.stack.add_repository(f"a{format_}", format=format_)
    await browser.log_in()
    page = await browser.get("/ui/account/tokens")
    page = await browser.send(page, "/ui/account/tokens", name="all")
    token = page.text.partition("pkgr_")[2][:48]
    for line in (
        f"printf %s pkgr_{token} | docker login registry.example --username admin --password-stdin",
        f"//registry.example/repositories/main/anpm/:_authToken=pkgr_{token}",
        f"index-url = http://__token__:pkgr_{token}@registry.example/repositories/main/apython/simple/",
        f"<username>admin</username> <password>pkgr_{token}</password>",
        f"bundle config set --local http://registry.example/repositories/main/aruby/ token:pkgr_{token}",
        "pkgrepo login http://registry.example --token-file token.txt",
    ):
        assert line in page.text, line
    assert "TOKEN" not in page.html.partition('role="status"')[2].partition("</table>")[0].replace("_TOKEN", "")


async def test_only_clients_of_repositories_that_it_opens_are_shown(browser: Browser) -> None:
    for format_ in ("python", "npm"):
        await browser.stack.add_repository(f"a{format_}", format=format_)
    await browser.log_in()
    page = await browser.get("/ui/account/tokens")
    page = await browser.send(page, "/ui/account/tokens", name="one", repositories="main/an*")
    assert "_authToken=pkgr_" in page.text
    assert "__token__" not in page.text
