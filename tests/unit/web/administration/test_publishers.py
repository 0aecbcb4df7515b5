"""The pages of the console for the pipelines that publish to a repository or a package."""

from __future__ import annotations

from typing import Any

from tests.support.browser import Browser

PAGE = "/ui/repositories/main/js/settings/publishers"
OF_PACKAGE = "/ui/repositories/main/js/packages/%40acme%2Fnew/publishers"
ISSUERS = {
    "github": {"issuer": "https://token.actions.githubusercontent.com", "audience": "a"},
    "forge": {"issuer": "https://forge.corp.example/api/actions", "audience": "a"},
}


async def logged_in(make_stack: Any, **settings: Any) -> Browser:
    browser = Browser(await make_stack(**settings))
    await browser.stack.add_repository("js", format="npm")
    await browser.log_in()
    return browser


async def test_a_publisher_is_added_by_its_source_shown_and_removed(make_stack: Any) -> None:
    browser = await logged_in(make_stack, auth__issuers=ISSUERS)
    page = await browser.get(PAGE)
    assert "No pipeline publishes here yet" in page.text
    given = {"issuer": "github", "source": "acme/widget", "file": "release.yml", "environment": "release"}
    page = await browser.send(page, PAGE, **given, packages="acme-*\n@acme/*", claims="repository_owner_id = 12")
    for shown in (
        "repository = acme/widget",
        "workflow_ref = acme/widget/.github/workflows/release.yml@**",
        "repository_owner_id = 12",
        "environment = release",
        "acme-*, @acme/*",
    ):
        assert shown in page.text
    [stored] = await browser.stack.ok("GET", "/repository/main%2Fjs/publishers")
    assert stored["actions"] == ["write"]
    assert (await browser.send(page, PAGE, **given, claims="nonsense")).status == 422
    refused = await browser.send(page, PAGE, issuer="github", source="acme*/x")
    assert (refused.status, "everybody has pipelines at" in refused.text) == (422, True)
    assert 'value="acme*/x"' in refused.html, "what was typed is there still"
    page = await browser.send(page, f"{PAGE}/remove", id=stored["id"])
    assert "No pipeline publishes here yet" in page.text


async def test_publishers_of_a_package_that_does_not_exist_yet(make_stack: Any) -> None:
    browser = await logged_in(make_stack, auth__issuers=ISSUERS)
    await browser.stack.ok("POST", "/repository/main%2Fjs/publishers", {"issuer": "forge", "source": "acme*/js"})
    page = await browser.send(
        await browser.get(OF_PACKAGE), OF_PACKAGE, issuer="forge", source="acme/new", file="p.yml"
    )
    assert "workflow_ref = acme/new/*/workflows/p.yml@**" in page.text
    assert "No claim says without an asterisk whose pipelines publish" in page.text
    assert "of the repository" in page.text
    [of_repository, own] = await browser.stack.ok("GET", "/package/main%2Fjs/@acme%2Fnew/publishers")
    assert (of_repository["package"], own["package"]) == (None, "@acme/new")
    page = await browser.send(page, f"{OF_PACKAGE}/remove", id=of_repository["id"])
    assert (page.status, "is not for '@acme/new' alone" in page.text) == (422, True)
    page = await browser.send(page, f"{OF_PACKAGE}/remove", id=own["id"])
    assert "p.yml" not in page.text


async def test_publishers_of_a_project(make_stack: Any) -> None:
    browser = await logged_in(make_stack, auth__issuers=ISSUERS)
    await browser.stack.ok("POST", "/project", {"key": "core"})
    await browser.stack.add_user("bob")
    await browser.stack.ok("POST", "/project/core/members", {"user": "bob", "role": "owner"})
    page = await browser.get("/ui/projects/core")
    of_project = "/ui/projects/core/publishers"
    assert of_project in page.links
    page = await browser.send(await browser.get(of_project), of_project, issuer="forge", source="acme/core")
    assert "repository = acme/core" in page.text
    [stored] = await browser.stack.ok("GET", "/project/core/publishers")
    other = Browser(browser.stack)
    await other.log_in("bob", browser.stack.password("bob"))
    seen = await other.get(of_project)
    assert ("repository = acme/core" in seen.text, "System managers add and remove them" in seen.text) == (True, True)
    assert not [each for each in seen.forms if each.startswith(of_project)]
    page = await browser.send(page, f"{of_project}/remove", id=stored["id"])
    assert "No pipeline publishes here yet" in page.text


async def test_the_form_of_settings_keeps_publishers(make_stack: Any) -> None:
    browser = await logged_in(make_stack, auth__issuers=ISSUERS)
    given = [{"issuer": "forge", "claims": {"repository": f"acme/{number}"}} for number in range(40)]
    await browser.stack.ok("PUT", "/repository/main%2Fjs/config/publishers", given)
    settings = "/ui/repositories/main/js/settings"
    await browser.send(await browser.get(settings), settings, description="changed")
    assert len(await browser.stack.ok("GET", "/repository/main%2Fjs/publishers")) == 40


async def test_without_issuers_the_page_says_how_to_add_one(make_stack: Any) -> None:
    browser = await logged_in(make_stack)
    page = await browser.get(PAGE)
    assert "The settings name no issuer" in page.text
