"""Authorization: challenges, tokens, hidden names, push rules."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.support.images import Registry, code, digest_of, make_image, sentence

APP = "main/images/app"
REALM = 'Bearer realm="http://registry.example/api/auth/token",service="pkgrepo"'


async def bearer(registry: Registry, *scopes: str, who: str | None = "admin") -> str:
    query = "&".join(f"scope={scope}" for scope in scopes)
    reply = await registry.stack.call("GET", f"/api/auth/token?service=x&{query}", who=who)
    assert reply.status == 200
    return str(reply.json["token"])


@pytest.mark.parametrize(
    ("ping", "agent", "method", "status"),
    [
        ("auto", "docker/28.2", "GET", 401),
        ("auto", "curl/8.1", "GET", 200),
        ("auto", "Mozilla/5.0", "GET", 200),
        ("auto", "docker/28.2", "HEAD", 200),
        ("challenge", "curl/8.1", "GET", 401),
        ("open", "docker/28.2", "GET", 200),
    ],
)
async def test_registry_clients_are_asked_for_credentials(
    make_registry: Any, ping: str, agent: str, method: str, status: int
) -> None:
    registry = await make_registry(container__ping=ping)
    for path in ("/", ""):
        reply = await registry.call(method, path, who=None, User_Agent=agent)
        assert reply.status == status
        assert reply.headers["docker-distribution-api-version"] == "registry/2.0"
        if status == 401:
            assert reply.headers["www-authenticate"] == REALM
            assert code(reply) == "UNAUTHORIZED"


@pytest.mark.parametrize("path", ["//main/images/app/tags/list", "/main/images/a%0Ab/tags/list", "//", "/nothing"])
async def test_odd_addresses_are_answered_in_the_shape_that_clients_read(registry: Registry, path: str) -> None:
    reply = await registry.call("GET", path)
    assert reply.status in (400, 404)
    assert code(reply) in ("NAME_UNKNOWN", "NAME_INVALID")
    assert reply.headers["docker-distribution-api-version"] == "registry/2.0"
    elsewhere = await registry.stack.call("GET", "//x/y")
    assert (elsewhere.status, elsewhere.json["error"]) == (404, "nothing is served at //x/y")


async def test_the_ping_accepts_right_credentials_and_refuses_wrong_ones(registry: Registry) -> None:
    token = await bearer(registry)
    for who in ("admin", token, await bearer(registry, who=None)):
        reply = await registry.call("GET", "/", who=who, User_Agent="docker/28.2")
        assert (reply.status, reply.json) == (200, {})
    wrong = "Basic " + base64.b64encode(b"admin:wrong").decode()
    for header, error in ((wrong, ""), ("Bearer a.b.c", ',error="invalid_token"')):
        reply = await registry.call("GET", "/", who=None, Authorization=header)
        assert (reply.status, reply.headers["www-authenticate"]) == (401, REALM + error)


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "tags/list", "pull"),
        ("POST", "blobs/uploads/", "pull,push"),
        ("PUT", "manifests/v1", "pull,push"),
        ("DELETE", "manifests/v1", "delete"),
    ],
)
async def test_a_challenge_names_the_scope_that_is_missing(
    make_registry: Any, method: str, path: str, scope: str
) -> None:
    registry = await make_registry(visibility="private")
    reply = await registry.below(method, path, who=None)
    assert (reply.status, code(reply)) == (401, "UNAUTHORIZED")
    assert reply.headers["www-authenticate"] == f'{REALM},scope="repository:{APP}:{scope}"'
    error = reply.json["errors"][0]
    sentence = f"there is no repository {APP} here, or it needs credentials"
    assert (error["message"], error["detail"]) == (sentence, {"scope": f"repository:{APP}:{scope}"})


async def test_public_images_are_read_by_everyone_and_written_only_with_credentials(registry: Registry) -> None:
    await registry.push(make_image(), "v1")
    for _ in range(2):
        assert (await registry.below("GET", "manifests/v1", who=None)).status == 200
    assert (await registry.start(who=None)).status == 401
    token = await bearer(registry, f"repository:{APP}:pull,push", who=None)
    assert (await registry.below("GET", "manifests/v1", who=token)).status == 200
    assert (await registry.start(who=token)).status == 401


async def test_names_do_not_leak(make_registry: Any) -> None:
    registry = await make_registry(visibility="private")
    await registry.push(make_image(), "v1")
    await registry.stack.add_user("bob")
    assert (await registry.below("GET", "manifests/v1")).status == 200
    for name in (APP, "main/images/none", "main/none/app"):
        assert (await registry.below("GET", "manifests/v1", name=name, who=None)).status == 401
        reply = await registry.below("GET", "manifests/v1", name=name, who="bob")
        assert (reply.status, code(reply)) == (404, "NAME_UNKNOWN")
    refused = await registry.start(who="bob")
    assert (refused.status, code(refused)) == (404, "NAME_UNKNOWN")
    await registry.stack.grant("bob", "main/images", "read")
    refused = await registry.start(who="bob")
    assert (refused.status, code(refused)) == (403, "DENIED")
    assert "www-authenticate" not in refused.headers
    await registry.stack.grant("bob", "main/images")
    assert (await registry.call("GET", "/_catalog", who="bob")).json["repositories"] == []


@pytest.mark.parametrize("default", ["", "main/open"])
@pytest.mark.parametrize(
    "path", ["manifests/v1", f"manifests/{digest_of(b'')}", f"blobs/{digest_of(b'')}", "tags/list"]
)
async def test_hidden_images_are_answered_like_absent_ones(make_registry: Any, default: str, path: str) -> None:
    registry = await make_registry(visibility="private", container__default_repository=default)
    await registry.stack.add_repository("open", format="docker", visibility="public")
    await registry.push(make_image(), "v1")
    await registry.stack.add_user("bob")
    names = (APP, "main/nobody/app", "main/images", "main/nobody")
    token = await bearer(registry, *(f"repository:{name}:pull" for name in names), who="bob")
    for who in ("bob", token):
        hidden = await registry.below("GET", path, who=who)
        missing = await registry.below("GET", path, name="main/nobody/app", who=who)
        assert hidden.status == missing.status == 404
        assert hidden.body.replace(b"main/images", b"main/nobody") == missing.body
        short = [await registry.below("GET", path, name=name, who=who) for name in ("main/images", "main/nobody")]
        assert short[0].body.replace(b"main/images", b"main/nobody") == short[1].body


async def test_a_token_is_good_for_its_scope_and_while_its_user_may(registry: Registry) -> None:
    await registry.stack.add_user("bob")
    await registry.stack.grant("bob", "main/images", "read", "write")
    pull = await bearer(registry, f"repository:{APP}:pull", who="bob")
    push = await bearer(registry, f"repository:{APP}:push,pull", who="bob")
    await registry.push(make_image(), "v1", who=push)
    assert (await registry.below("GET", "manifests/v1", who=pull)).status == 200
    short = await registry.start(who=pull)
    assert short.status == 401
    assert short.headers["www-authenticate"] == (
        f'{REALM},scope="repository:{APP}:pull,push",error="insufficient_scope"'
    )
    assert (await registry.start(name="main/images/other", who=push)).status == 401
    denied = await registry.below("DELETE", "manifests/v1", who=push)
    assert (denied.status, code(denied)) == (403, "DENIED")
    assert "'bob' may not delete" in sentence(denied)
    assert "grant in this repository is for read, write" in sentence(denied)
    await registry.stack.grant("bob", "main/images", "read")
    refused = await registry.start(who=push)
    assert (refused.status, code(refused)) == (403, "DENIED")
    assert "grant in this repository is for read" in sentence(refused)


async def test_a_token_for_the_catalog_shows_what_its_user_may_see(registry: Registry) -> None:
    await registry.stack.add_repository("secret", format="docker", visibility="private")
    await registry.stack.add_user("bob")
    await registry.push(make_image(), "v1")
    await registry.push(make_image(), "v1", name="main/secret/app")
    token = await bearer(registry, "registry:catalog:*", who="bob")
    assert (await registry.call("GET", "/_catalog", who=token)).json["repositories"] == [APP]
    assert (await registry.below("GET", "tags/list", name="main/secret/app", who=token)).status == 404
    anonymous = await registry.call("GET", "/_catalog", who=None)
    assert anonymous.headers["www-authenticate"] == f'{REALM},scope="registry:catalog:*"'


async def test_a_mount_needs_a_token_that_may_pull_its_source(registry: Registry) -> None:
    await registry.stack.add_user("bob")
    await registry.stack.grant("bob", "main/images", "read", "write")
    await registry.stack.ok("PATCH", "/repository/main%2Fimages", {"visibility": "private"})
    digest = await registry.push_blob(b"layer", name="main/images/base")
    push, pull = f"repository:{APP}:pull,push", "repository:main/images/base:pull"
    for source in ("&from=main/images/base", ""):
        token = await bearer(registry, push, who="bob")
        assert (await registry.start(f"?mount={digest}{source}", who=token)).status == 202
        assert (await registry.below("HEAD", f"blobs/{digest}", who=token)).status == 404
    token = await bearer(registry, push, pull, who="bob")
    assert (await registry.start(f"?mount={digest}&from=main/images/base", who=token)).status == 201


async def test_a_token_for_the_target_mounts_what_everybody_may_read(registry: Registry) -> None:
    await registry.stack.add_user("bob")
    await registry.stack.grant("bob", "main/images", "read", "write")
    digest = await registry.push_blob(b"layer", name="main/images/base")
    token = await bearer(registry, f"repository:{APP}:pull,push", who="bob")
    assert (await registry.start(f"?mount={digest}&from=main/images/base", who=token)).status == 201
    assert (await registry.below("HEAD", f"blobs/{digest}", who=token)).status == 200


@pytest.mark.parametrize("where", ["/v2/main/images", "/repositories/main/images/v2"])
@pytest.mark.parametrize(
    ("source", "more"),
    [
        ("&from={}base/image", " repository:main/images/base/image:pull"),
        ("", ""),
        ("&from=x%22,error=%22y", ""),
        ("&from=a%20b", ""),
    ],
)
async def test_the_challenge_of_a_mount_names_both_images(
    registry: Registry, where: str, source: str, more: str
) -> None:
    source = source.format("main/images/" if where.startswith("/v2") else "")
    for who, error in ((None, ""), (await bearer(registry, "repository:main/images/other:pull"), "insufficient_scope")):
        path = f"{where}/app/blobs/uploads/?mount={digest_of(b'layer')}{source}"
        reply = await registry.stack.call("POST", path, who=who)
        wanted = f'{REALM},scope="repository:{APP}:pull,push{more}"' + (f',error="{error}"' if error else "")
        assert (reply.status, reply.headers["www-authenticate"]) == (401, wanted)


async def test_a_name_alone_means_the_default_repository(make_registry: Any) -> None:
    registry = await make_registry(container__default_repository="main/images")
    await registry.push(make_image(), "v1", name="proj/img")
    token = await bearer(registry, "repository:proj/img:pull,push")
    assert (await registry.below("GET", "tags/list", name="proj/img", who=token)).json == {
        "name": "proj/img",
        "tags": ["v1"],
    }
    assert (await registry.below("GET", "tags/list", name="main/images/proj/img")).json["tags"] == ["v1"]
    await registry.stack.add_user("bob")
    await registry.stack.grant("bob", "main/images", "read", "write")
    narrow = await bearer(registry, "repository:proj/img:pull,push", who="bob")
    assert (await registry.start(name="proj/img", who=narrow)).status == 202


async def test_a_host_can_stand_for_a_repository(make_registry: Any) -> None:
    registry = await make_registry(hosts={"images.example": "main/images"})
    await registry.push(make_image(), "v1")
    assert (await registry.call("GET", "/_catalog", Host="images.example")).json["repositories"] == ["app"]
    other = await registry.below("GET", "tags/list", Host="other.example")
    assert other.json["tags"] == ["v1"]


async def test_a_login_can_be_kept_as_a_token_that_is_revoked_like_any_other(make_registry: Any) -> None:
    registry = await make_registry(rules={"must_use_auth_token_for_push": True}, visibility="private")
    stack = registry.stack
    await stack.add_user("bob")
    await stack.grant("bob", "main/images", "read", "write")
    login = await stack.call("GET", "/v2/token?account=bob&client_id=docker&offline_token=true", who="bob")
    kept = login.json["refresh_token"]
    form = f"client_id=docker&grant_type=refresh_token&refresh_token={kept}&scope=repository:{APP}:push,pull"
    again = await stack.call("POST", "/v2/token", raw=form.encode(), who=None)
    assert again.status == 200
    assert "refresh_token" not in again.json
    refused = await registry.start(who=again.json["token"])
    assert sentence(refused) == "pushes to this repository need an access token, not a password"
    assert (await registry.below("GET", "tags/list", who=again.json["token"])).status == 404
    listed = (await stack.ok("GET", "/user/token", who="bob"))["items"]
    assert [each["kind"] for each in listed] == ["login"]
    await stack.ok("DELETE", f"/user/token/{listed[0]['id']}", who="bob")
    assert (await stack.call("POST", "/v2/token", raw=form.encode(), who=None)).status == 401
    assert (await registry.below("GET", "tags/list", who=again.json["token"])).status == 401


async def test_a_new_password_ends_the_logins_of_the_old_one_and_no_token(registry: Registry) -> None:
    stack = registry.stack
    user = await stack.add_user("bob")
    made = await stack.token(who="bob")
    login = await stack.call("GET", "/v2/token?offline_token=true", who="bob")
    form = f"grant_type=refresh_token&refresh_token={login.json['refresh_token']}".encode()
    assert (await stack.call("POST", "/v2/token", raw=form, who=None)).status == 200
    await stack.ok("PUT", f"/users/{user['id']}/password", {"password": "quite another password"})
    assert (await stack.call("POST", "/v2/token", raw=form, who=None)).status == 401
    assert (await registry.call("GET", "/", who=made)).status == 200


async def test_a_refresh_token_is_given_for_a_password_on_request_only(registry: Registry) -> None:
    token = await registry.stack.token()
    for path, who in (("/token", "admin"), ("/token?offline_token=true", token), ("/token?offline_token=true", None)):
        assert "refresh_token" not in (await registry.stack.call("GET", path, who=who)).json
    form = b"grant_type=password&username=admin&password=correct+horse+battery&access_type=offline"
    assert "refresh_token" in (await registry.stack.call("POST", "/token", raw=form, who=None)).json


async def test_errors_of_the_token_service_have_the_shape_that_clients_read(registry: Registry) -> None:
    wrong = "Basic " + base64.b64encode(b"admin:wrong").decode()
    reply = await registry.stack.call("GET", "/v2/token", who=None, headers={"Authorization": wrong})
    assert (reply.status, code(reply)) == (401, "UNAUTHORIZED")
    assert reply.headers["content-type"] == "application/json"
    assert "incorrect username or password" in sentence(reply)


# Push rules


async def test_a_tag_cannot_be_overwritten(registry: Registry) -> None:
    one, two = make_image("one"), make_image("two")
    await registry.push(one, "v1")
    await registry.push(two)
    for reference in ("v1", f"{two.digest}?tag=new&tag=v1"):
        refused = await registry.put(two, reference)
        assert (refused.status, code(refused)) == (403, "DENIED")
        assert sentence(refused) == "tag v1 already exists and this repository does not allow tags to be overwritten"
        assert refused.json["errors"][0]["detail"] == {"tag": "v1", "current": one.digest, "pushed": two.digest}
    assert (await registry.below("GET", "tags/list")).json["tags"] == ["v1"]
    assert (await registry.put(one, "v1")).status == 201


async def test_tags_of_signatures_and_exempt_ones_may_move(make_registry: Any) -> None:
    registry = await make_registry(policy={"overwrite_exempt": ["nightly-*"]})
    one, two = make_image("one"), make_image("two")
    await registry.push(two)
    hexadecimal = digest_of(b"x").partition(":")[2]
    for tag in (f"sha256-{hexadecimal}.sig", f"sha256-{hexadecimal}", "nightly-x"):
        await registry.push(one, tag)
        assert (await registry.put(two, tag)).status == 201


async def test_containerd_is_challenged_before_its_push(registry: Registry) -> None:
    await registry.push(make_image(), "v1")
    blob = f"blobs/{digest_of(make_image().blobs[0])}"

    async def status(method: str, path: str, who: str | None, agent: str = "containerd/1.6.20") -> int:
        return (await registry.below(method, path, who=who, User_Agent=agent)).status

    assert await status("HEAD", blob, None) == 401
    assert await status("HEAD", blob, None, "curl/8.1") == 200
    for who in ("admin", await bearer(registry, f"repository:{APP}:pull", who=None)):
        assert await status("HEAD", blob, who) == 200
    for method, path in (("GET", blob), ("HEAD", "manifests/v1"), ("GET", "manifests/v1")):
        assert await status(method, path, None) == 200, "to pull needs no token"


async def test_pushes_can_be_bound_to_access_tokens(make_registry: Any) -> None:
    registry = await make_registry(rules={"must_use_auth_token_for_push": True})
    image = make_image()
    scope = f"repository:{APP}:pull,push"
    for who in ("admin", await bearer(registry, scope)):
        for refused in (await registry.start(who=who), await registry.put(image, "v1", who=who)):
            assert (refused.status, code(refused)) == (403, "DENIED")
            assert sentence(refused) == "pushes to this repository need an access token, not a password"
    token = await registry.stack.token()
    await registry.push(image, "v1", who=token)
    await registry.push(make_image("other"), "v2", who=await bearer(registry, scope, who=token))


async def test_pushes_can_be_bound_to_members_of_the_project(make_registry: Any) -> None:
    registry = await make_registry(rules={"must_be_project_member": True})
    await registry.stack.add_user("bob")
    await registry.stack.grant("bob", "main/images", "read", "write")
    refused = await registry.start(name="main/images/proj/img", who="bob")
    assert (refused.status, code(refused)) == (403, "DENIED")
    assert "must_be_project_member" in sentence(refused)
    await registry.push(make_image(), "v1", name="main/images/proj/img")  # admins always may
    assert (await registry.below("GET", "manifests/v1", name="main/images/proj/img", who="bob")).status == 200


async def test_an_inactive_repository_serves_nothing(registry: Registry) -> None:
    await registry.push(make_image(), "v1")
    found = registry.stack.assembly.core.registry.find("main", "images")
    await registry.stack.ok("PATCH", f"/repository/{found.uid}", {"active": False})
    reply = await registry.below("GET", "manifests/v1")
    assert (reply.status, code(reply)) == (503, "UNAVAILABLE")
