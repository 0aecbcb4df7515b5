"""What all routes have in common: errors, request ids, ETags, pages, bodies, origins."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.memory_server import Stack

NEW = {"name": "py", "storage": "main", "format": "python", "config": {"type": "Hosted"}}


async def test_an_error_is_a_problem_with_the_request_id(stack: Stack) -> None:
    reply = await stack.api("GET", "/users/nobody-here", headers={"X-Request-Id": "my.request-1"})
    assert reply.status == 404
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.headers["x-request-id"] == "my.request-1"
    assert reply.headers["cache-control"] == "no-store"
    assert reply.json == {
        "type": "http://registry.example/problems/not_found",
        "title": "Not found",
        "status": 404,
        "detail": "user 'nobody-here' does not exist",
        "instance": "my.request-1",
    }


async def test_the_type_of_a_problem_is_a_page(stack: Stack) -> None:
    found = await stack.call("GET", "/problems/stale", who=None)
    assert (found.status, found.headers["content-type"]) == (200, "text/plain; charset=utf-8")
    assert b"If-Match" in found.body
    assert (await stack.call("GET", "/problems/nonsense", who=None)).status == 404


async def test_an_unknown_address_and_a_wrong_method_are_problems_too(stack: Stack) -> None:
    assert (await stack.api("GET", "/nothing")).json["type"].endswith("/problems/not_found")
    reply = await stack.api("PUT", "/info", {})
    assert (reply.status, reply.headers["allow"]) == (405, "GET, HEAD")
    assert reply.json["type"].endswith("/problems/method_not_allowed")
    for path in ("/api/info", "/ui/", "/"):  # nor does any page send back what it was asked, as TRACE would
        assert (await stack.call("TRACE", path)).status == 405


async def test_no_credentials_get_a_challenge(stack: Stack) -> None:
    reply = await stack.api("GET", "/users", who=None)
    assert reply.status == 401
    assert reply.headers["www-authenticate"].startswith("Basic realm=")


async def test_wrong_credentials_are_refused_also_on_public_routes(stack: Stack) -> None:
    reply = await stack.api("GET", "/info", headers={"Authorization": "Basic YWRtaW46d3Jvbmc="})
    assert reply.status == 401
    assert (await stack.audited(action="login"))[0]["outcome"] == "refused"


@pytest.mark.parametrize(
    ("body", "status", "pointer"),
    [
        (b"{", 400, None),
        (b"\xff\xfe", 400, None),
        (b'{"config": {"x_deep": ' + b"[" * 100_000, 400, None),
        (b"[]", 422, ""),
        (b'{"name": 1}', 422, "/name"),
        (b'{"name": "a b", "storage": "main", "format": "python"}', 422, "/name"),
        (b'{"storage": "main", "format": "python"}', 422, "/name"),
        (b'{"name": "x", "storage": "main", "format": "python", "colour": 1}', 422, "/colour"),
        (b'{"name": "x", "storage": "main", "format": "cobol"}', 422, "/format"),
        (b'{"name": "x", "format": "python"}', 422, "/storage"),
        (b'{"name": "x", "storage": "nowhere", "format": "python"}', 422, "/storage"),
        (b'{"name": "x", "storage": "main", "format": "python", "visibility": "secret"}', 422, "/visibility"),
        (
            b'{"name": "x", "storage": "main", "format": "python", "config": {"type": "Hosted", "a": 1}}',
            422,
            "/config/a",
        ),
        (
            b'{"name": "x", "storage": "main", "format": "python", "config": {"policy": {"a": 1}}}',
            422,
            "/config/policy/a",
        ),
        (b'{"name": "x", "storage": "main", "format": "python", "configs": {"auth": 7}}', 422, "/configs/auth"),
    ],
)
async def test_a_wrong_body_is_refused_with_its_pointer(
    stack: Stack, body: bytes, status: int, pointer: str | None
) -> None:
    reply = await stack.api("POST", "/repository", raw=body)
    assert reply.status == status, reply.body
    if pointer is None:
        assert "errors" not in reply.json
    else:
        assert reply.pointer == pointer
        assert set(reply.json["errors"][0]) == {"pointer", "code", "message"}


async def test_a_body_over_a_mebibyte_is_refused_before_it_is_read(stack: Stack) -> None:
    reply = await stack.api("POST", "/repository", raw=b"x", headers={"Content-Length": str(2**20 + 1)})
    assert reply.status == 413


@pytest.mark.parametrize("content_type", ["application/json", "application/x-www-form-urlencoded", "text/plain"])
async def test_json_is_read_whatever_its_declared_type(stack: Stack, content_type: str) -> None:
    reply = await stack.api("POST", "/repository", NEW, headers={"Content-Type": content_type})
    assert reply.status == 201


async def test_a_page_of_another_site_cannot_change_anything(stack: Stack) -> None:
    reply = await stack.api("POST", "/repository", NEW, headers={"Origin": "https://evil.example"})
    assert reply.status == 403
    assert reply.json["type"].endswith("/problems/cross_site")
    for origin in ("null", "http://registry.example.evil"):
        for who in ("admin", None):  # a browser may authenticate by other means than this field
            reply = await stack.api("POST", "/repository", NEW, who=who, headers={"Origin": origin})
            assert (reply.status, reply.json["type"].rpartition("/")[2]) == (403, "cross_site")
    reply = await stack.api("POST", "/repository", NEW, headers={"Origin": "http://registry.example"})
    assert reply.status == 201


async def test_an_etag_is_used_for_304_and_for_if_match(stack: Stack) -> None:
    made = await stack.add_repository()
    path = f"/repository/{made['id']}"
    first = await stack.api("GET", path)
    etag = first.headers["etag"]
    assert etag.startswith('"')
    unchanged = await stack.api("GET", path, headers={"If-None-Match": etag})
    assert (unchanged.status, unchanged.body) == (304, b"")
    changed = await stack.api("PATCH", path, {"description": "new"}, headers={"If-Match": etag})
    assert changed.status == 200
    late = await stack.api("PATCH", path, {"description": "newer"}, headers={"If-Match": etag})
    assert late.status == 412
    assert late.json["type"].endswith("/problems/stale")
    assert (await stack.api("DELETE", f"{path}?confirm=py", headers={"If-Match": etag})).status == 412
    newest = changed.headers["etag"]
    assert (await stack.api("GET", path)).headers["etag"] == newest
    assert (await stack.api("PATCH", path, {"description": "x"}, headers={"If-Match": f'"a", {newest}'})).status == 200
    assert (await stack.api("PATCH", path, {"description": "y"}, headers={"If-Match": "*"})).status == 200


async def test_uploads_do_not_change_the_etag_that_if_match_compares(stack: Stack) -> None:
    made = await stack.add_repository()
    path = f"/repository/{made['id']}"
    before = (await stack.api("GET", path)).headers["etag"]
    await stack.publish("main/py", "demo", "1.0")
    again = await stack.api("GET", path, headers={"If-None-Match": before})
    assert (again.status, again.json["package_count"]) == (200, 1)
    assert (await stack.api("PATCH", path, {"description": "x"}, headers={"If-Match": before})).status == 200


async def test_the_pages_of_a_list_contain_each_item_once(stack: Stack) -> None:
    names = [f"r{number}" for number in range(7)]
    for name in names:
        await stack.add_repository(name)
    seen: list[str] = []
    path = "/repository?limit=3&count=true&q=main%2Fr"
    for _ in range(5):
        reply = await stack.api("GET", path)
        seen += [item["name"] for item in reply.json["items"]]
        assert reply.json["total"] == 7
        if reply.json["next"] is None:
            assert "link" not in reply.headers
            break
        target, relation = reply.headers["link"].split("; ")
        assert relation == 'rel="next"'
        path = target.strip("<>").removeprefix("http://registry.example/api")
        assert "q=main%2Fr" in path
    assert seen == names


@pytest.mark.parametrize(
    ("query", "pointer"),
    [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=many", "limit"),
        ("limit=9999999999999999999999", "limit"),
        ("cursor=nonsense", "cursor"),
        ("cursor=MQ", "cursor"),
        ("count=perhaps", "count"),
    ],
)
async def test_a_wrong_page_is_refused_by_its_parameter(stack: Stack, query: str, pointer: str) -> None:
    reply = await stack.api("GET", f"/repository?{query}")
    assert (reply.status, reply.pointer) == (422, pointer)


async def test_unknown_query_parameters_are_ignored(stack: Stack) -> None:
    assert (await stack.api("GET", "/repository?colour=blue")).status == 200


async def test_head_answers_without_a_body(stack: Stack) -> None:
    reply = await stack.api("HEAD", "/info")
    assert (reply.status, reply.body) == (200, b"")
    assert int(reply.headers["content-length"]) > 0


async def test_too_many_failed_logins_are_refused_with_retry_after(stack: Stack) -> None:
    for _ in range(6):
        reply = await stack.api("GET", "/info", headers={"Authorization": "Basic YWRtaW46d3Jvbmc="})
    assert reply.status == 429
    assert int(reply.headers["retry-after"]) > 0
    assert reply.json["type"].endswith("/problems/too_many_attempts")


async def test_links_begin_with_the_public_address(make_stack: Any) -> None:
    stack: Stack = await make_stack(server__public_url="https://pkgs.example/base")
    for name in ("a", "b"):
        made = await stack.add_repository(name)
        assert made["url"] == f"https://pkgs.example/base/repositories/main/{name}"
    link = (await stack.api("GET", "/repository?limit=1")).headers["link"]
    assert link.startswith("<https://pkgs.example/base/api/repository?")
    ours = {"Origin": "https://pkgs.example"}
    allowed = await stack.api("PATCH", "/repository/main%2Fa", {"description": "x"}, headers=ours)
    assert allowed.status == 200


async def test_an_empty_change_is_refused(stack: Stack) -> None:
    await stack.add_repository()
    await stack.ok("POST", "/project", {"key": "core"})
    token = await stack.ok("POST", "/user/token", {"name": "x"})
    before = await stack.ok("GET", "/user/me")
    for path in (
        "/user/me",
        "/users/admin",
        "/repository/main%2Fpy",
        "/storage/main",
        "/project/core",
        f"/user/token/{token['id']}",
    ):
        for raw in (b"", b"{}", b" {} "):
            reply = await stack.api("PATCH", path, raw=raw)
            assert reply.status == 422, path
            assert "nothing to change" in reply.json["detail"]
        assert (await stack.api("PATCH", path, {"unheard_of": 1})).status == 422
    assert await stack.ok("GET", "/user/me") == before
