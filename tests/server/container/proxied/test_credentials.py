"""Tokens and credentials for upstream registries, and where their hosts are."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.container_clients import ADMIN
from tests.support.container_proxy import ONE, TOKEN, Make, Scene, code
from tests.support.http_client import HttpClient
from tests.support.proxied import PRIVATE
from tests.support.server_process import running
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.messages import Answer, Request


@pytest.mark.one_process("each worker gets tokens of its own")
def test_tokens_are_got_once_for_each_image(make: Make) -> None:
    upstream = ContainerUpstream(challenge="bearer")
    scene = make(upstream, cache_ttl="0")
    for name in ("one", "two"):
        upstream.push(name, ONE, "1")
        scene.pull(name, ONE)
        scene.pull(name, ONE)
    assert [each.query["scope"] for each in upstream.requests(TOKEN)] == ["repository:one:pull", "repository:two:pull"]
    unauthorized = [each for each in upstream.requests() if "authorization" not in each.fields and each.path != TOKEN]
    assert len(unauthorized) == 1, "the address of the token service is known from then on"
    upstream.valid.clear()
    scene.pull("one", ONE)
    assert upstream.count(TOKEN) == 3, "a refused token is replaced once"


def test_a_challenge_with_a_useless_address_does_not_close_the_upstream(make: Make) -> None:
    scene = make()
    scene.upstream.push("good", ONE, "1")
    for realm, status in (
        ("http://10.0.0.1/token", 424),
        ("file:///token", 502),
        (f"{scene.upstream.url}/nothing", 502),
    ):
        path = scene.upstream.manifest_path("bad", "1")
        challenge = Answer(401).with_fields(WWW_Authenticate=f'Bearer realm="{realm}",service="x"')
        scene.upstream.misbehave(path, challenge, repeat=True)
        assert code(scene.get("bad/manifests/1")) == (status, "UNAVAILABLE")
    scene.pull("good", ONE)


def test_a_registry_that_wants_no_token_any_more_wants_credentials(make: Make) -> None:
    """Gitea gives a token to everybody, and asks for a password where that may not read; absent images are 404."""
    scene = make()
    token = f'Bearer realm="{scene.upstream.url}/token",service="container_registry",scope="*"'

    def refuse(request: Request) -> Answer:
        wanted = 'Basic realm="Gitea Package API"' if "authorization" in request.fields else token
        return Answer(401).with_fields(WWW_Authenticate=wanted)

    def restrict(_request: Request) -> Answer:
        return Answer(401).with_fields(WWW_Authenticate=f'{token},error="insufficient_scope"')

    scene.upstream.dynamic[scene.upstream.manifest_path("private", "1")] = refuse
    scene.upstream.dynamic["/v2/private/tags/list"] = refuse
    scene.upstream.dynamic[scene.upstream.manifest_path("absent", "1")] = restrict
    for rest in ("manifests/1", "tags/list"):
        reply = scene.get(f"private/{rest}")
        assert code(reply) == (424, "UNAVAILABLE")
        assert "it wants credentials" in reply.text
    assert scene.get("absent/manifests/1").status == 404


def with_auth(url: str, user: str, password: str, more: str = "") -> str:
    """The configuration of a proxy with credentials."""
    route = f'{{ url = "{url}", auth = {{ username = "{user}", password = "{password}" }}{more} }}'
    return hosted("docker", secret=f'config = {{ type = "Proxy", proxy = {{ routes = [{route}] }} }}')


@pytest.mark.parametrize("challenge", ["bearer", "basic"])
def test_credentials_of_the_route_are_used(tmp_path: Path, stack: ExitStack, challenge: str) -> None:
    upstream = stack.enter_context(ContainerUpstream(challenge=challenge, credentials="Basic dTpw"))
    upstream.push("app", ONE, "1")
    text = PRIVATE + with_auth(upstream.url, "u", "p") + with_auth(upstream.url, "u", "wrong").replace("secret", "bad")
    server = stack.enter_context(running(tmp_path, text))
    wire = HttpClient(server.url, ADMIN)
    assert wire.get("/v2/main/secret/app/manifests/1").body == ONE.manifest
    reply = wire.get("/v2/main/bad/app/manifests/1")
    assert code(reply) == (424, "UNAVAILABLE")
    assert "refuses the credentials of the route" in reply.text


def test_a_token_service_on_another_host_gets_no_credentials(tmp_path: Path, stack: ExitStack) -> None:
    tokens = stack.enter_context(ContainerUpstream(host="127.0.0.2"))
    upstream = stack.enter_context(ContainerUpstream(challenge="bearer", tokens=tokens))
    upstream.push("app", ONE, "1")
    named = with_auth(upstream.url, "u", "p", ', token_hosts = ["127.0.0.2"]').replace("secret", "named")
    text = PRIVATE.replace('"]', '", "127.0.0.2"]') + with_auth(upstream.url, "u", "p") + named
    server = stack.enter_context(running(tmp_path, text))
    wire = HttpClient(server.url, ADMIN)
    reply = wire.get("/v2/main/secret/app/manifests/1")
    assert code(reply) == (424, "UNAVAILABLE")
    assert "token_hosts" in reply.text
    assert tokens.count() == 0
    assert wire.get("/v2/main/named/app/manifests/1").body == ONE.manifest
    assert [each.fields["authorization"] for each in tokens.requests(TOKEN)] == ["Basic dTpw"]


class Renamed(ContainerUpstream):
    """A server that is known by a name which nobody can resolve."""

    @property
    def url(self) -> str:
        return "http://registry.invalid:81"


@pytest.mark.one_process("each worker gets tokens of its own")
def test_hosts_that_the_upstream_names_can_be_elsewhere(tmp_path: Path, stack: ExitStack) -> None:
    others = stack.enter_context(Renamed())
    upstream = stack.enter_context(ContainerUpstream(challenge="bearer", tokens=others, blobs=others))
    upstream.push("app", ONE, "1")
    there = f'hosts = {{ "registry.invalid:81" = "http://127.0.0.1:{others.port}" }}'
    routes = f'[{{ url = "{upstream.url}", {there} }}]'
    text = hosted("docker", images=f'config = {{ type = "Proxy", proxy = {{ routes = {routes} }} }}')
    server = stack.enter_context(running(tmp_path, PRIVATE + text))
    Scene(upstream, server, HttpClient(server.url, ADMIN)).pull("app", ONE)
    assert others.count(TOKEN) == 1


def test_a_redirected_blob_is_fetched_without_credentials(make: Make, stack: ExitStack) -> None:
    blobs = stack.enter_context(ContainerUpstream())
    upstream = ContainerUpstream(challenge="bearer", blobs=blobs)
    scene = make(upstream)
    upstream.push("app", ONE, "1")
    scene.pull("app", ONE)
    assert blobs.count() == len(ONE.blobs)
    assert all("authorization" not in each.fields for each in blobs.requests())
