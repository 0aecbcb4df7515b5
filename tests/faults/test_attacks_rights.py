"""Attempts to gain more permissions than were granted, through the token service and the management API."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import pytest_twisted

from tests.support.images import Registry, make_image
from tests.support.inprocess_server import PASSWORD
from tests.support.memory_server import OTHER_PASSWORD, Stack, running_stacks
from tests.support.python_packages import make_wheel


@pytest_twisted.async_yield_fixture
async def make_stack(tmp_path: Path) -> Any:
    """See L{running_stacks}; each server has the public repository ``main/py``."""
    async with running_stacks(tmp_path) as make:

        async def with_repository(**overrides: Any) -> Stack:
            stack = await make(**overrides)
            await stack.add_repository()
            return stack

        yield with_repository


@pytest_twisted.async_yield_fixture
async def stack(make_stack: Any) -> Any:
    """A server with the default configuration."""
    yield await make_stack()


async def upload(stack: Stack, who: str, *, pad: int = 0, **fields: str) -> int:
    filename, data = make_wheel("demo", "1.0", pad=pad)
    path = f"/repositories/main/py/packages/demo/1.0/{filename}"
    return (await stack.call("PUT", path, raw=data, who=who, headers=fields)).status


async def test_a_bearer_token_replaces_no_file_when_its_access_token_may_not(stack: Stack) -> None:
    config = {"type": "Hosted", "policy": {"allow_overwrite": True}}
    await stack.ok("PUT", "/repository/main%2Fpy/config", config)
    token = await stack.token(repositories=[{"repository": "main/py", "actions": ["read", "write"]}])
    bearer = await stack.ok("GET", "/auth/token?scope=repository:main/py/demo:pull,push", who=token)
    assert await upload(stack, token) == 201
    assert await upload(stack, token, pad=100) == 400
    assert await upload(stack, bearer["token"], pad=100) == 400


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://registry.example.evil.example"])
async def test_a_page_of_another_site_cannot_publish_or_yank(stack: Stack, origin: str) -> None:
    assert await upload(stack, "admin", Origin=origin) == 403
    assert await upload(stack, "admin", Origin="http://registry.example") == 201
    path = "/repositories/main/py/pypi/demo/1.0/yank"
    assert (await stack.call("POST", path, headers={"Origin": origin})).status == 403
    assert (await stack.call("POST", path)).status == 200
    assert (await stack.call("GET", "/repositories/main/py/simple/demo/", headers={"Origin": origin})).status == 200


DIGEST = "sha256:" + 64 * "0"
# Method, path below a repository (NAME stands for its name), and the body.
PROBES = [
    *(
        (method, f"/repositories/main/{name}{rest}", b"")
        for name in ("NAME", "UPPER")
        for method, rest in (
            ("GET", ""),
            ("GET", "/"),
            ("HEAD", "/"),
            ("OPTIONS", "/"),
            ("BREW", "/"),
            ("GET", "/simple/"),
            ("GET", "/simple"),
            ("GET", "/simple/Demo"),
            ("GET", "/simple/demo/"),
            ("OPTIONS", "/simple/demo/"),
            ("GET", "/packages/demo/1.0/demo-1.0-py3-none-any.whl"),
            ("GET", "/demo/1.0/demo-1.0.tar.gz"),
            ("GET", "/pypi/demo/json"),
            ("POST", "/pypi/demo/1.0/yank"),
            ("POST", "/legacy/"),
            ("PUT", "/demo/1.0/demo-1.0-py3-none-any.whl"),
            ("DELETE", "/packages/demo/1.0/demo-1.0-py3-none-any.whl"),
            ("GET", "/nothing/at/all/of/this/kind"),
            ("GET", "/%0A"),
            ("GET", "/demo"),
            ("GET", "/@acme%2Fdemo"),
            ("GET", "/demo/-/demo-1.0.0.tgz"),
            ("PUT", "/demo"),
            ("DELETE", "/demo/-rev/1-x"),
            ("GET", "/-/ping"),
            ("GET", "/-/whoami"),
            ("GET", "/-/npm/v1/keys"),
            ("GET", "/-/v1/search?text=demo"),
            ("GET", "/-/user/org.couchdb.user:bob"),
            ("DELETE", "/-/user/token/x"),
            ("GET", "/-/v1/done?session=x"),
            ("GET", "/-/v1/login?session=x"),
            ("GET", "/v2"),
            ("GET", "/v2/"),
            ("OPTIONS", "/v2/"),
            ("GET", "/v2/app/tags/list"),
            ("POST", "/v2/app/blobs/uploads/"),
            ("PUT", "/v2/app/manifests/v1"),
            ("DELETE", f"/v2/app/manifests/{DIGEST}"),
            ("GET", "/v2/_catalog"),
        )
    ),
    (
        "PUT",
        "/repositories/main/NAME/-/user/org.couchdb.user:bob",
        b'{"name": "bob", "password": "%s"}' % OTHER_PASSWORD.encode(),
    ),
    ("PUT", "/repositories/main/NAME/-/user/org.couchdb.user:bob", b'{"name": "bob", "password": "wrong one"}'),
    ("GET", "/repositories/main%2FNAME/simple/", b""),
    *(
        (method, f"/v2/main/NAME/app/{rest}", b"")
        for method, rest in (
            ("GET", "tags/list"),
            ("HEAD", "manifests/v1"),
            ("GET", f"blobs/{DIGEST}"),
            ("POST", "blobs/uploads/"),
            ("POST", f"blobs/uploads/?mount={DIGEST}&from=main/py/x"),
            ("PUT", "manifests/v1"),
            ("DELETE", "manifests/v1"),
            ("OPTIONS", "manifests/v1"),
            ("GET", f"referrers/{DIGEST}"),
        )
    ),
    ("GET", "/v2/main/NAME/tags/list", b""),
    *(
        (method, f"/api/{path}", b"{}" if method in ("POST", "PUT", "PATCH") else b"")
        for method, path in (
            ("GET", "repository/main%2FNAME"),
            ("GET", "repository/UID"),
            ("PATCH", "repository/main%2FNAME"),
            ("DELETE", "repository/main%2FNAME?confirm=NAME"),
            ("OPTIONS", "repository/main%2FNAME"),
            ("GET", "repository/main%2FNAME/names"),
            ("GET", "repository/main%2FNAME/config"),
            ("PUT", "repository/main%2FNAME/config/policy"),
            ("GET", "repository/main%2FNAME/packages"),
            ("DELETE", "repository/main%2FNAME/packages"),
            ("GET", "repository/main%2FNAME/tree/x"),
            ("GET", "repository/main%2FNAME/setup"),
            ("GET", "repository/main%2FNAME/stats"),
            ("POST", "repository/main%2FNAME/gc"),
            ("GET", "repository/find-id/main/NAME"),
            ("GET", "package/main%2FNAME/demo"),
            ("POST", "package/main%2FNAME/demo/versions/1.0/yank"),
            ("GET", "project/by-key/main%2FNAME/demo"),
            ("GET", "repository?q=NAME"),
            ("GET", "search/packages?repository=main/NAME"),
            ("GET", "auth/token?scope=repository:main/NAME/app:pull"),
        )
    ),
    ("POST", "/api/user/token", b'{"name": "x", "repositories": [{"repository": "main/NAME"}]}'),
    ("POST", "/api/user/token", b'{"name": "x", "repositories": [{"repository_id": "UID"}]}'),
    ("PUT", "/api/users/bob/permissions", b'{"repositories": [{"repository": "main/NAME", "actions": ["read"]}]}'),
]
VARYING = re.compile(  # ids, tokens, times
    rb"[0-9a-f]{8}-[0-9a-f]+|[0-9a-f]{32}|eyJ[^\"]*|\d{4}-\d\d-\d\dT[^\"]*|(?<=expires_in.:)\d+"
)


@pytest.mark.parametrize("default", ["", "main/open"])
@pytest.mark.parametrize("format", ["python", "npm", "docker"])
async def test_a_hidden_repository_and_a_missing_one_are_answered_alike(
    make_stack: Any, format: str, default: str
) -> None:
    stack = await make_stack(container__default_repository=default, limits__login_failures=1000)
    uid = (await stack.add_repository("secret", format=format, visibility="private"))["id"]
    await stack.add_repository("open", format="docker", visibility="private")
    await stack.add_user("bob")
    await stack.add_user("boss", user_manager=True)
    await stack.grant("bob", "main/open", "read", "write")
    token = await stack.token("bob", scopes=["api:read", "api:write", "read", "write", "delete", "edit", "admin"])
    callers = [None, "bob", "boss", token, await stack.bearer("bob"), await stack.bearer(None)]
    scopes = (f"repository:main/{name}/app:pull,push" for name in ("secret", "nobody"))
    callers.append(await stack.bearer("bob", "%20".join(scopes)))

    async def ask(name: str, uid: str, probe: tuple[str, str, bytes], who: str | None) -> Any:
        method, path, body = probe
        for old, new in (("NAME", name), ("UPPER", name.upper()), ("UID", uid)):
            path, body = path.replace(old, new), body.replace(old.encode(), new.encode())
        reply = await stack.call(method, path, raw=body, who=who)
        told = [f"{field}: {value}".encode() for field, value in sorted(reply.headers.items()) if field != "date"]
        text = b"\n".join([*told, reply.body])
        text = VARYING.sub(b"", text.replace(uid.encode(), b"UID"))
        return reply.status, text.replace(name.encode(), b"NAME").replace(name.upper().encode(), b"NAME")

    for who in callers:
        for probe in PROBES:
            hidden = await ask("secret", uid, probe, who)
            missing = await ask("nobody", "00000000-0000-4000-8000-000000000000", probe, who)
            assert hidden == missing, (who, probe)
            if who in (None, "bob") and probe[1].startswith("/repositories/main/NAME/simple"):
                assert hidden[0] == (401 if who is None else 404)
    await stack.grant("bob", "main/secret", "read")
    assert (await stack.call("GET", "/repositories/main/secret/", who="bob")).status != 401


async def test_a_folder_in_use_is_refused_as_a_storage(stack: Stack) -> None:
    (stack.folder / "home").mkdir()
    (stack.folder / "home" / "letter").touch()
    for path in (stack.folder / "home", stack.folder / "data", "/etc"):
        reply = await stack.api("POST", "/storage", {"name": "taken", "path": str(path)})
        assert reply.status in (409, 422), path
    assert [each.name for each in (stack.folder / "home").iterdir()] == ["letter"]


PULL = "repository:main/images/app:pull"


@pytest.mark.parametrize("limited", [False, True])
async def test_a_bearer_token_of_an_admin_does_what_its_scope_says(stack: Stack, limited: bool) -> None:
    for name in ("images", "secret"):
        await stack.add_repository(name, format="docker", visibility="private")
    for name in ("images/app", "images/other", "secret/app"):
        await Registry(stack, f"main/{name}").push(make_image(), "v1")
    who = await stack.token(scopes=["read"]) if limited else "admin"
    token = await stack.bearer(who, PULL)
    for method, path, status in (
        ("GET", "/v2/main/images/app/tags/list", 200),
        ("POST", "/v2/main/images/app/blobs/uploads/", 403 if limited else 401),
        ("DELETE", "/v2/main/images/app/manifests/v1", 403 if limited else 401),
        ("GET", "/v2/main/images/other/tags/list", 401),
        ("GET", "/v2/main/secret/app/tags/list", 401),
        ("GET", "/api/users", 403),
        ("POST", "/api/users", 403),
        ("GET", "/api/repository", 403),
        ("PUT", "/api/repository/main%2Fimages/config", 403),
        ("POST", "/api/user/token", 403),
        ("GET", "/metrics", 403),
        ("GET", "/repositories/main/py/simple/", 200),  # which anonymous callers read, too
    ):
        reply = await stack.call(method, path, who=token)
        assert reply.status == status, (method, path)
        if status == 401:
            assert 'error="insufficient_scope"' in reply.headers["www-authenticate"], path
    wider = await stack.bearer(token, "registry:catalog:*")
    assert (await stack.call("GET", "/v2/_catalog", who=wider)).json["repositories"] == []
    assert (await stack.api("GET", "/users", who=await stack.bearer(token))).status == 403


@pytest.mark.parametrize("scope", ["", PULL, "nonsense"])
async def test_admins_collect_garbage_and_read_statistics_with_a_bearer_token(stack: Stack, scope: str) -> None:
    await stack.add_repository("images", format="docker", visibility="private")
    await stack.add_repository("files", visibility="private")
    for user, *actions in (("keeper", "read", "admin"), ("reader", "read")):
        await stack.add_user(user)
        grants = [{"repository": f"main/{name}", "actions": actions} for name in ("images", "files")]
        await stack.ok("PUT", f"/users/{user}/permissions", {"repositories": grants})
    narrow = await stack.token("keeper", repositories=[{"repository": "main/images", "actions": ["read"]}])
    for who, images, files in (
        ("admin", 200, 403 if scope else 200),
        ("keeper", 200, 403 if scope else 200),
        ("reader", 403, 403),
        (narrow, 403, 404),
    ):
        token = await stack.bearer(who, scope)
        for name, status in (("images", images), ("files", files), ("none", 404)):
            stats = await stack.api("GET", f"/repository/main%2F{name}/stats", who=token)
            gc = await stack.api("POST", f"/repository/main%2F{name}/gc?wait=30", {}, who=token)
            assert (stats.status, gc.status) == (status, status), (who, name, stats.body, gc.body)
    token = await stack.bearer("keeper", scope)
    late = await stack.api("POST", "/repository/main%2Fimages/gc?wait=0", {}, who=token)
    assert (await stack.call("GET", late.headers["location"], who=token)).status == 200


async def test_a_bearer_token_without_a_scope_opens_no_image_and_no_cached_response(stack: Stack) -> None:
    await stack.add_repository("images", format="docker", visibility="private")
    await Registry(stack).push(make_image(), "v1")
    token = await stack.bearer()
    for path in ("main/images/app/tags/list", "main/images/app/manifests/v1", "_catalog"):
        for who, status in (("admin", 200), ("admin", 200), (token, 401)):
            reply = await stack.call("GET", f"/v2/{path}", who=who)
            assert reply.status == status, (path, who)
        assert 'error="insufficient_scope"' in reply.headers["www-authenticate"]
    assert (await stack.call("GET", "/v2/", who=token)).status == 200
    await upload(stack, "admin")
    assert (await stack.call("GET", "/repositories/main/py/simple/demo/", who=token)).status == 200


async def test_a_user_manager_cannot_grant_a_permission_that_they_lack(stack: Stack) -> None:
    await stack.add_repository("secret", visibility="private")
    await stack.add_user("boss", user_manager=True)
    await stack.add_user("ada")
    users = await stack.token(scopes=["users"])
    for who in ("boss", users):
        for name in ("boss", "ada"):
            for body in (
                {"repositories": [{"repository": "main/secret", "actions": ["read", "admin"]}]},
                {"repositories": [{"repository": "main/py", "actions": ["write"]}]},
                {"default_repository_actions": ["read"]},
            ):
                path = f"/users/{name}/permissions"
                assert (await stack.api("PUT", path, body, who=who)).status in (403, 422), (name, body)
            body = {"default_repository_actions": ["read"]}
            assert (await stack.api("PATCH", f"/users/{name}", body, who=who)).status == 403
        body = {"username": "puppet", "password": OTHER_PASSWORD, "default_repository_actions": ["read"]}
        assert (await stack.api("POST", "/users", body, who=who)).status == 403
    await stack.grant("boss", "main/secret", "read")
    await stack.grant("ada", "main/secret", "read", "edit")
    kept = {"repositories": [{"repository": "main/secret", "actions": ["read", "edit"]}]}
    for body in (kept, {"repositories": [{"repository": "main/secret", "actions": ["read"]}]}):
        await stack.ok("PUT", "/users/ada/permissions", body, who="boss")
    assert (await stack.api("PUT", "/users/ada/permissions", kept, who="boss")).status == 403


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://registry.example:81", "http://registry.example"]
)
async def test_a_page_of_another_site_cannot_log_in(make_stack: Any, origin: str) -> None:
    stack = await make_stack(server__public_url="https://pkgs.example/")
    await stack.add_repository("node", format="npm", visibility="private")
    ours = origin == "http://registry.example"
    for who in (origin, "https://pkgs.example"):
        fields, status = {"Origin": who}, 200 if ours or who != origin else 403
        begun = await stack.call("POST", "/repositories/main/node/-/v1/login", who=None)
        page = begun.json["loginUrl"].removeprefix("https://pkgs.example")
        form = f"username=admin&password={quote(PASSWORD)}".encode()
        assert (await stack.call("GET", page, who=None, headers=fields)).status == 200
        approved = await stack.call("POST", page, raw=form, who=None, headers=fields)
        assert approved.status == status
        polled = await stack.call("GET", begun.json["doneUrl"].removeprefix("https://pkgs.example"), who=None)
        assert polled.status == (200 if status == 200 else 202)
        login = b'{"name": "admin", "password": "%s"}' % PASSWORD.encode()
        path = "/repositories/main/node/-/user/org.couchdb.user:admin"
        assert (await stack.call("PUT", path, raw=login, who=None, headers=fields)).status in (status, status + 1)
        for path in ("/api/auth/token", "/token", "/v2/token"):
            asked = await stack.call("POST", path, raw=b"grant_type=password&" + form, who=None, headers=fields)
            assert asked.status == status, path


@pytest.mark.parametrize("visibility", ["public", "private"])
async def test_a_request_counts_as_one_use_of_its_token(tmp_path: Path, visibility: str) -> None:
    stack = Stack(tmp_path)
    await stack.start()
    await stack.add_repository(visibility=visibility)
    made = await stack.ok("POST", "/user/token", {"name": "x"})
    for _ in range(3):
        assert (await stack.call("GET", "/repositories/main/py/simple/none/", who=made["token"])).status == 404
    await stack.stop()  # flushes the recorded uses of tokens
    again = Stack(tmp_path)
    await again.start()
    assert (await again.ok("GET", f"/user/token/{made['id']}"))["uses"] == 3
    await again.stop()


@pytest.mark.parametrize("scope", ["", "repository:main/node:pull,push"])
async def test_a_scoped_bearer_token_gives_no_access_to_the_account_through_npm(stack: Stack, scope: str) -> None:
    await stack.add_repository("node", format="npm", visibility="private")
    made = await stack.ok("POST", "/user/token", {"name": "x"})
    token = await stack.bearer("admin", scope)
    base = "/repositories/main/node/-/npm/v1"
    for method, path, body in (
        ("GET", "/user", None),
        ("POST", "/user", {"email": "thief@evil.example"}),
        ("POST", "/user", {"password": {"old": PASSWORD, "new": "known to the thief"}}),
        ("GET", "/tokens", None),
        ("POST", "/tokens", {"password": PASSWORD}),
        ("DELETE", f"/tokens/token/{made['id']}", None),
    ):
        assert (await stack.call(method, base + path, body, who=token)).status == 403, (method, path)
    assert (await stack.ok("GET", "/user/me"))["email"] == ""
    assert [each["revoked_at"] for each in (await stack.ok("GET", "/user/token"))["items"]] == [None]
