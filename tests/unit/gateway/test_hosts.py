"""Requests whose host or path prefix stands for a repository: addresses in responses, caches, refusals, odd hosts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest_twisted

from pkgrepo.auth.tokens.text import make_token
from pkgrepo.model import TokenKind
from tests.support.images import Registry, digest_of, make_image
from tests.support.memory_server import Reply, Stack, running_stacks
from tests.support.npm_packages import make_publish

NPM = {"Host": "npm.corp.example"}
ALIAS = "/repository/npm-all"
CONFIGURED = {"hosts": {"images.corp.example": "main/images"}, "aliases": {"/artifactory/api/npm/old/": "main/npm"}}


@pytest_twisted.async_yield_fixture
async def stack(tmp_path: Path) -> AsyncIterator[Stack]:
    """A server with a public and a private npm repository and one of images, with names set by file and API."""
    async with running_stacks(tmp_path) as make:
        made = await make(**CONFIGURED)
        await made.add_repository("npm", format="npm")
        await made.add_repository("secret", format="npm", visibility="private")
        await made.add_repository("images", format="docker")
        await made.add_repository("py")
        await set_names(
            made,
            hosts={"npm.corp.example": "main/npm", "secret.corp.example": "main/secret", "py.corp.example": "main/py"},
            aliases={f"{ALIAS}/": "main/npm", "/v2/docker-all/": "main/images", "/nexus/secret/": "main/secret"},
        )
        for name in ("npm", "secret"):
            sent = make_publish(f"of-{name}", "1.0.0")
            assert (await made.call("PUT", f"/repositories/main/{name}/of-{name}", raw=sent)).status == 201
        yield made


async def set_names(stack: Stack, **tables: dict[str, str | None]) -> Any:
    return await stack.ok("PATCH", "/system/hosts", tables)


def tarball(reply: Reply) -> str:
    assert reply.status == 200, reply.body
    return str(reply.json["versions"]["1.0.0"]["dist"]["tarball"])


async def test_a_host_has_its_repository_at_the_root_with_right_addresses_in_any_order(stack: Stack) -> None:
    own = "http://registry.example/repositories/main/npm"
    wanted = {
        ("/repositories/main/npm", "registry.example"): own,
        ("", "npm.corp.example"): "http://npm.corp.example",
        ("", "NPM.corp.example:8081"): "http://NPM.corp.example:8081",
        (ALIAS, "registry.example"): f"http://registry.example{ALIAS}",
        ("/artifactory/api/npm/old", "registry.example"): "http://registry.example/artifactory/api/npm/old",
        (ALIAS, "other.example"): f"http://other.example{ALIAS}",
    }
    for _ in range(3):  # from the handler, from the cache, and repeated
        for (prefix, host), base in wanted.items():
            reply = await stack.call("GET", f"{prefix}/of-npm", headers={"Host": host})
            assert tarball(reply) == f"{base}/of-npm/-/of-npm-1.0.0.tgz"
            path = tarball(reply).removeprefix(f"http://{host}")
            assert (await stack.call("GET", path, headers={"Host": host})).status == 200


async def test_nothing_of_the_server_and_of_other_repositories_is_at_a_host(stack: Stack) -> None:
    for path in ("/api/info", "/ui/", "/v2/", "/healthz", "/repositories/main/secret/of-secret", f"{ALIAS}/of-npm"):
        reply = await stack.call("GET", path, headers=NPM)
        assert reply.status in (400, 404), (path, reply.body)
    for path in ("/../secret/of-secret", "/%2e%2e/secret/of-secret", "/..%2fsecret/of-secret", "//of-secret"):
        for prefix, headers in (("", NPM), (ALIAS, {})):
            assert (await stack.call("GET", prefix + path, headers=headers)).status in (400, 404), (prefix, path)


async def test_a_private_repository_is_refused_as_one_that_does_not_exist(stack: Stack) -> None:
    await stack.add_user("bob")
    await stack.ok("PATCH", "/system/hosts", {"hosts": {"gone.corp.example": "main/secret"}})
    for who in (None, "bob"):
        seen = []
        for host, path in (("secret.corp.example", "/of-secret"), ("registry.example", "/nexus/secret/of-secret")):
            for _ in range(2):
                reply = await stack.call("GET", path, who=who, headers={"Host": host})
                assert b"main/secret" not in reply.body
                seen.append(reply.status)
        assert set(seen) == {401 if who is None else 404}
    assert (await stack.call("GET", "/of-secret", headers={"Host": "secret.corp.example"})).status == 200
    repository = await stack.ok("GET", "/repository/main%2Fsecret")
    before = [await stack.call("GET", "/x", who=who, headers={"Host": "gone.corp.example"}) for who in (None, "bob")]
    assert (await stack.api("DELETE", f"/repository/{repository['id']}?confirm=secret")).status < 300
    after = [await stack.call("GET", "/x", who=who, headers={"Host": "gone.corp.example"}) for who in (None, "bob")]
    assert [(each.status, each.body) for each in after] == [(each.status, each.body) for each in before]
    shown = await stack.ok("GET", "/system/hosts")
    assert shown["missing"] == ["/nexus/secret/", "gone.corp.example", "secret.corp.example"]


async def test_set_up_lines_have_the_host_of_a_repository(stack: Stack) -> None:
    async def lines(path: str, host: str = "registry.example", **query: str) -> str:
        asked = "&".join(f"{name}={value}" for name, value in query.items())
        found = await stack.ok("GET", f"/repository/{path.replace('/', '%2f')}/setup?{asked}", headers={"Host": host})
        return "\n".join(each["text"] for each in found)

    assert "registry=http://npm.corp.example/\n//npm.corp.example/:_authToken=" in await lines("main/npm")
    assert "registry=http://npm.corp.example:8081/" in await lines("main/npm", "registry.example:8081")
    assert "docker push images.corp.example/IMAGE:TAG" in await lines("main/images")
    assert "docker pull images.corp.example/app:1" in await lines("main/images", package="app", version="1")
    await set_names(stack, hosts={"npm.corp.example": None})
    assert "registry=http://registry.example/repositories/main/npm/" in await lines("main/npm")
    assert "helm push --plain-http CHART.tgz oci://images.corp.example/charts" in await lines("main/images")


async def test_identity_tokens_are_exchanged_at_the_addresses_that_clients_build_of_a_host(tmp_path: Path) -> None:
    issuers = {"forge": {"issuer": "https://forge.corp.example", "audience": "packages"}}
    async with running_stacks(tmp_path) as make:
        stack = await make(hosts={"npm.corp.example": "main/npm", "py.corp.example": "main/py"}, auth__issuers=issuers)
        await stack.add_repository("npm", format="npm")
        await stack.add_repository("py")
        at_py, at_npm = {"Host": "py.corp.example"}, {**NPM, "Authorization": "Bearer none"}
        audience = await stack.call("GET", "/_/oidc/audience", who=None, headers=at_py)
        assert audience.json == {"audience": "packages"}
        sent = b'{"token": "none"}'
        minted = await stack.call("POST", "/_/oidc/mint-token", who=None, headers=at_py, raw=sent)
        assert (minted.status, minted.json["errors"][0]["code"]) == (422, "invalid-token")
        place = "/-/npm/v1/oidc/token/exchange/package/@acme%2fx"
        exchanged = await stack.call("POST", place, who=None, headers=at_npm)
        assert (exchanged.status, "no identity token" in exchanged.json["message"]) == (422, True)


async def test_other_hosts_are_for_the_server(stack: Stack) -> None:
    for host in (
        *("evil.example", "npm.corp.example.evil.example", "x.npm.corp.example", "npm.corp.example@evil.example"),
        *(
            "npm.corp.example/..",
            "npm.corp.example, a",
            "",
            "npm.corp.example:x",
            "[::1]",
            "npm.corp.example%00",
            "\xe4",
        ),
    ):
        assert (await stack.call("GET", "/of-npm", headers={"Host": host})).status in (400, 404), host


async def test_a_host_of_a_proxy_that_is_not_trusted_counts_nothing(tmp_path: Path) -> None:
    for trusted in ([], ["192.168.0.0/16"]):  # where connections in memory come from
        async with running_stacks(tmp_path / str(bool(trusted))) as make:
            stack = await make(server__trusted_proxies=trusted, hosts={"py.corp.example": "main/py"})
            await stack.add_repository("py")
            await stack.publish("main/py", "demo", "1.0")
            headers = {"X-Forwarded-Host": "py.corp.example", "X-Forwarded-Proto": "https"}
            reply = await stack.call("GET", "/pypi/demo/json", headers=headers)
            assert reply.status == (200 if trusted else 404)
            if trusted:
                assert reply.json["urls"][0]["url"].startswith("https://py.corp.example/")


async def test_the_host_is_read_of_the_field_that_the_settings_name(tmp_path: Path) -> None:
    for header, there in (("X-Forwarded-For", 404), ("Forwarded", 200)):
        async with running_stacks(tmp_path / header) as make:
            stack = await make(
                server__trusted_proxies=["192.168.0.0/16"],
                server__forwarded_header=header,
                hosts={"py.corp.example": "main/py"},
            )
            await stack.add_repository("py")
            await stack.publish("main/py", "demo", "1.0")
            headers = {"Forwarded": "for=192.0.2.1;host=py.corp.example"}
            assert (await stack.call("GET", "/pypi/demo/json", headers=headers)).status == there


async def test_the_scheme_at_a_host_is_that_of_the_public_address(tmp_path: Path) -> None:
    async with running_stacks(tmp_path) as make:
        stack = await make(
            server__public_url="https://pkg.corp.example",
            hosts={"py.corp.example": "main/py", "images.corp.example": "main/images"},
        )
        await stack.add_repository("py")
        await stack.add_repository("images", format="docker", visibility="private")
        await stack.publish("main/py", "demo", "1.0")
        browser = {"Host": "py.corp.example", "Sec-Fetch-Mode": "navigate"}
        shown = await stack.call("GET", "/", headers=browser)
        assert shown.headers["location"] == "https://pkg.corp.example/ui/repositories/main/py"
        found = await stack.call("GET", "/pypi/demo/json", headers={"Host": "py.corp.example"})
        assert found.json["urls"][0]["url"].startswith("https://py.corp.example/packages/")
        asked = await stack.call("GET", "/v2/app/tags/list", who=None, headers={"Host": "images.corp.example"})
        assert 'realm="https://images.corp.example/api/auth/token"' in asked.headers["www-authenticate"]
        refused = await stack.api("PATCH", "/system/hosts", {"hosts": {"pkg.corp.example": "main/py"}})
        assert refused.status == 409


async def test_a_token_in_the_address_counts_at_a_host_and_an_alias_and_nowhere_else(stack: Stack) -> None:
    token = await stack.token(repositories=[{"repository": "main/secret", "actions": ["read"]}])
    at = {"Host": "secret.corp.example"}
    for text in (token, token.replace("_", "-"), token.replace("p", "%70")):
        assert (await stack.call("GET", f"/t/{text}/of-secret", who=None, headers=at)).status == 200
        assert (await stack.call("GET", f"/nexus/secret/t/{text}/of-secret", who=None)).status == 200
        assert (await stack.call("GET", f"/t/{text}/nexus/secret/of-secret", who=None)).status == 200
        for path in (f"/t/{text}/api/user/me", f"/api/t/{text}/user/me", f"/t/{text}/ui/", f"/t/{text}"):
            reply = await stack.call("GET", path, who=None)
            assert (reply.status, reply.json["error"]) == (404, "nothing is served at /t")
    wrong = make_token(TokenKind.PERSONAL)
    assert (await stack.call("GET", f"/t/{wrong}/of-secret", who=None, headers=at)).status == 401
    sent = make_publish("t", "1.0.0")
    assert (await stack.call("PUT", "/t", raw=sent, headers=NPM)).status == 201
    assert (await stack.call("GET", "/t/1.0.0", headers=NPM)).json["name"] == "t"
    assert (await stack.call("GET", "/t/-/t-1.0.0.tgz", headers=NPM)).status == 200


async def test_images_have_short_names_at_a_host_and_those_of_others_by_an_alias(stack: Stack) -> None:
    registry = Registry(stack, "app")
    image = make_image()
    for blob in image.blobs:
        started = await registry.start(Host="images.corp.example")
        assert started.headers["location"].startswith("/v2/app/blobs/uploads/")
        done = await registry.continue_upload(
            started, "PUT", blob, f"?digest={digest_of(blob)}", Host="images.corp.example"
        )
        assert done.status == 201
    assert (await registry.put(image, "1", Host="images.corp.example")).status == 201
    for name in ("main/images/app", "docker-all/app"):
        assert (await registry.below("GET", "manifests/1", name=name)).body == image.manifest
    below = await stack.call("GET", "/v2/docker-all/app/tags/list", who=None)
    assert below.json == {"name": "docker-all/app", "tags": ["1"]}
    token = await stack.bearer(scope="repository:docker-all/app:pull")
    assert (await registry.below("GET", "manifests/1", name="docker-all/app", who=token)).status == 200
    assert (await stack.call("GET", "/v2/docker-all/", who="admin")).status == 404
    # the server's other addresses stay at a host of images, for its token service
    assert (await stack.call("GET", "/api/auth/token", headers={"Host": "images.corp.example"})).status == 200


async def test_names_are_set_replaced_and_removed_by_the_api(stack: Stack) -> None:
    shown = await stack.ok("GET", "/system/hosts")
    assert shown["configured"] == CONFIGURED
    assert shown["hosts"]["npm.corp.example"] == "main/npm"
    await set_names(stack, hosts={"npm.corp.example": None})
    assert (await stack.call("GET", "/of-npm", headers=NPM)).status == 404
    for tables, status in (
        ({"hosts": {"a.example": "main/none"}}, 422),
        ({"hosts": {"a b": "main/npm"}}, 422),
        ({"hosts": {"npm.corp.example": None}}, 422),
        ({"hosts": {"images.corp.example": "main/images"}}, 409),
        ({"hosts": {"registry.example": "main/npm"}}, 409),
        ({"aliases": {"/api/user/": "main/npm"}}, 422),
        ({"aliases": {"/v2/npm/": "main/npm"}}, 422),
    ):
        assert (await stack.api("PATCH", "/system/hosts", tables)).status == status, tables
    tag = (await stack.api("GET", "/system/hosts")).headers["etag"]
    whole = {"hosts": {"b.example": "main/npm"}, "aliases": {}}
    assert (await stack.api("PUT", "/system/hosts", whole, headers={"If-Match": tag})).json["hosts"] == whole["hosts"]
    assert (await stack.api("PUT", "/system/hosts", whole, headers={"If-Match": tag})).status == 412
    assert tarball(await stack.call("GET", "/of-npm", headers={"Host": "b.example"})).startswith("http://b.example/")
    await stack.add_user("bob")
    for method in ("GET", "PUT", "PATCH"):
        body = None if method == "GET" else whole
        assert (await stack.api(method, "/system/hosts", body, who="bob")).status == 403
        assert (await stack.api(method, "/system/hosts", body, who=None)).status == 401
    [row, *_] = await stack.audited(action="hosts.update", outcome="ok")
    assert row["detail"]["hosts"] == whole["hosts"]
