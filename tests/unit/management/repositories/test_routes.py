"""Repositories: added, listed, shown, changed, removed."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.memory_server import Stack


async def test_a_repository_is_made_shown_and_found(stack: Stack) -> None:
    reply = await stack.api(
        "POST",
        "/repository",
        {"name": "Py-1", "storage": "main", "format": "PyPI", "visibility": "Public", "config": {"type": "Hosted"}},
    )
    assert reply.status == 201
    made = reply.json
    assert reply.headers["location"] == f"/api/repository/{made['id']}"
    assert (made["format"], made["repository_type"]) == ("python", "python")
    assert (made["type"], made["repository_kind"]) == ("Hosted", "Hosted")
    assert made["visibility"] == "public"
    assert made["url"] == "http://registry.example/repositories/main/Py-1"
    assert made["registry_host"] == "registry.example"
    by_id = await stack.api("GET", f"/repository/{made['id']}")
    assert by_id.json == made
    assert (await stack.ok("GET", "/repository/main%2FPY-1"))["id"] == made["id"]
    found = await stack.ok("GET", "/repository/find-id/main/py-1")
    assert found == {"id": made["id"], "repository_id": made["id"]}
    names = await stack.ok("GET", f"/repository/{made['id']}/names")
    assert (names["path"], names["storage_name"]) == ("main/Py-1", "main")
    assert (await stack.audited(action="repository.create"))[0]["object"] == "main/Py-1"


async def test_the_older_form_of_creation_works(stack: Stack) -> None:
    made = await stack.ok(
        "POST",
        "/repository/new/pypi",
        {
            "name": "old",
            "storage_name": "main",
            "configs": {"python": {"type": "Hosted"}, "auth": {"enabled": True}, "page": "# Hello"},
        },
    )
    assert made["auth_enabled"] is True
    config = await stack.ok("GET", f"/repository/{made['id']}/config")
    assert config == {"type": "Hosted", "auth": {"enabled": True}, "page": "# Hello"}


async def test_names_differ_by_more_than_case(stack: Stack) -> None:
    await stack.add_repository("py")
    reply = await stack.api("POST", "/repository", {"name": "PY", "storage": "main", "format": "python"})
    assert reply.status == 409
    assert reply.json["type"].endswith("/problems/already_exists")
    assert (await stack.audited(outcome="failed"))[0]["action"] == "repository.create"


async def test_private_and_hidden_repositories_are_listed_for_few(stack: Stack) -> None:
    await stack.add_user("reader")
    made: dict[str, Any] = {}
    for visibility in ("public", "private", "hidden"):
        made[visibility] = await stack.add_repository(visibility, visibility=visibility)

    async def seen(who: str | None) -> list[str]:
        return [item["name"] for item in (await stack.ok("GET", "/repository", who=who))["items"]]

    async def status(name: str, who: str | None) -> int:
        return (await stack.api("GET", f"/repository/{made[name]['id']}", who=who)).status

    assert await seen("admin") == ["hidden", "private", "public"]
    assert await seen(None) == ["public"]
    assert await status("public", None) == 200
    assert await status("hidden", None) == 200
    assert await status("private", None) == 401
    assert await status("private", "reader") == 404
    assert (await stack.api("GET", "/repository/find-id/main/private", who=None)).status == 401
    await stack.grant("reader", "main/private", "read")
    assert await seen("reader") == ["private", "public"]
    assert await status("private", "reader") == 200


async def test_a_repository_that_the_caller_may_not_know_of_is_answered_like_a_missing_one(stack: Stack) -> None:
    made = await stack.add_repository("secret", visibility="private")
    for method, suffix in (("GET", ""), ("GET", "/config"), ("PATCH", ""), ("DELETE", "?confirm=secret")):
        for path in (made["id"], "00000000-0000-4000-8000-000000000000"):
            there = await stack.api(method, f"/repository/{path}{suffix}", {}, who=None)
            assert "secret" not in there.json["detail"]
            assert there.status == 401, (method, suffix, path)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("format=pypi", ["alpha", "beta"]),
        ("type=proxy", []),
        ("type=hosted", ["alpha", "beta"]),
        ("storage=other", []),
        ("visibility=PRIVATE", ["beta"]),
        ("q=ALP", ["alpha"]),
        ("q=second", ["beta"]),
    ],
)
async def test_lists_are_filtered(stack: Stack, query: str, names: list[str]) -> None:
    await stack.add_repository("alpha")
    await stack.add_repository("beta", visibility="private", description="The second")
    found = await stack.ok("GET", f"/repository?{query}")
    assert [item["name"] for item in found["items"]] == names


async def test_usage_is_shown_when_asked_for(stack: Stack) -> None:
    await stack.add_repository()
    await stack.publish("main/py", "demo", "1.0")
    plain = (await stack.ok("GET", "/repository"))["items"][0]
    assert (plain["usage_bytes"], plain["package_count"]) == (None, None)
    full = (await stack.ok("GET", "/repository?include_usage=true"))["items"][0]
    assert full["package_count"] == 1
    assert full["usage_bytes"] == full["storage_usage_bytes"] > 0


async def test_a_change_is_audited_with_before_and_after(stack: Stack) -> None:
    made = await stack.add_repository()
    changed = await stack.ok("PATCH", f"/repository/{made['id']}", {"visibility": "Hidden", "active": False})
    assert (changed["visibility"], changed["active"]) == ("hidden", False)
    (line,) = await stack.audited(action="repository.update")
    assert line["detail"] == {
        "before": {"visibility": "public", "active": True},
        "after": {"visibility": "hidden", "active": False},
    }


async def test_an_inactive_repository_is_refused_and_can_be_activated(stack: Stack) -> None:
    made = await stack.add_repository()
    path = f"/repository/{made['id']}"
    await stack.ok("PATCH", path, {"active": False})
    assert (await stack.api("GET", path)).status == 200
    rests = await stack.api("GET", f"{path}/packages")
    assert (rests.status, rests.headers["retry-after"]) == (503, "5")
    await stack.ok("PATCH", path, {"active": True})
    assert (await stack.api("GET", f"{path}/packages")).status == 200


async def test_deletion_must_be_confirmed(stack: Stack) -> None:
    made = await stack.add_repository()
    path = f"/repository/{made['id']}"
    refused = await stack.api("DELETE", path)
    assert (refused.status, refused.pointer) == (422, "confirm")
    dry = await stack.ok("DELETE", f"{path}?dry_run=true")
    assert dry["dry_run"] is True
    assert (await stack.api("GET", path)).status == 200
    gone = await stack.ok("DELETE", f"{path}?confirm=py")
    assert (gone["purged"], gone["dry_run"]) == (False, False)
    assert (await stack.api("GET", path)).status == 404
    assert (await stack.call("GET", "/repositories/main/py/simple/")).status == 404
    await stack.add_repository("py")


async def test_purging_removes_the_content(stack: Stack) -> None:
    made = await stack.add_repository()
    await stack.publish("main/py", "demo", "1.0")
    await stack.ok("DELETE", f"/repository/{made['id']}?confirm=main/py&purge=true")
    count = stack.assembly.core.catalog.peek(lambda r: r.one("SELECT COUNT(*) FROM package"))
    assert count == (0,)


async def test_snippets_name_the_clients_address_of_the_server(stack: Stack) -> None:
    made = await stack.add_repository()
    found = await stack.ok("GET", f"/repository/{made['id']}/setup", who=None)
    assert {each["client"] for each in found} >= {"pip", "uv", "twine", "poetry"}
    only = await stack.ok("GET", f"/repository/{made['id']}/setup?client=PIP", headers={"Host": "pkgs.example:8443"})
    assert {each["client"] for each in only} == {"pip"}
    assert all("pkgs.example:8443/repositories/main/py" in each["text"] for each in only)


async def test_every_reader_gets_the_page_of_a_repository_as_text_that_no_browser_runs(stack: Stack) -> None:
    text = "# Ours <script>alert(1)</script>"
    for name, visibility in (("open", "public"), ("closed", "private")):
        await stack.add_repository(name, visibility=visibility, config={"type": "Hosted", "page": text})
    await stack.add_repository("plain")
    reply = await stack.api("GET", "/repository/main%2Fopen/page", who=None)
    assert (reply.status, reply.body.decode()) == (200, text)
    assert reply.headers["content-type"] == "text/plain; charset=utf-8"
    assert "sandbox" in reply.headers["content-security-policy"]
    marked = await stack.api("GET", "/repository/main%2Fopen/page", who=None, headers={"Accept": "text/markdown"})
    assert marked.headers["content-type"] == "text/markdown; charset=utf-8"
    assert (await stack.api("GET", "/repository/main%2Fclosed/page", who=None)).status == 401
    assert (await stack.api("GET", "/repository/main%2Fplain/page")).status == 404
