"""Proxy repositories of container images, in front of a scripted registry."""

from __future__ import annotations

import hashlib
import http.client
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from tests.support.configurations import hosted, proxy, virtual
from tests.support.container_clients import ADMIN, push_image
from tests.support.data_folder import DataFolder, pkgrepo, stop_in_step
from tests.support.http_client import HttpClient, Reply
from tests.support.images import OCI_INDEX, Image, digest_of, make_artifact, make_image, make_index
from tests.support.proxied import PRIVATE
from tests.support.server_process import ServerProcess, running
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.messages import Answer, Fault
from tests.support.upstreams.server import ANY

ONE, TWO = make_image("one"), make_image("two")
LAYER = hashlib.shake_256(b"a layer").digest(3 * 1024 * 1024)
TOKEN = "/token"


@frozen
class Scene:
    """A server with a proxy repository ``main/images`` of an upstream."""

    upstream: ContainerUpstream
    server: ServerProcess
    wire: HttpClient

    def get(self, path: str, **fields: str) -> Reply:
        """GET below the address of the proxied images."""
        return self.wire.get(f"/v2/main/images/{path}", **fields)

    def head(self, path: str, **fields: str) -> Reply:
        """HEAD below the address of the proxied images."""
        return self.wire.head(f"/v2/main/images/{path}", **fields)

    def pull(self, name: str, image: Image, reference: str = "1") -> None:
        """Pull an image, and check each byte."""
        assert self.get(f"{name}/manifests/{reference}").body == image.manifest
        for blob in image.blobs:
            assert self.get(f"{name}/blobs/{digest_of(blob)}").body == bytes(blob)

    def manifests(self, method: str, name: str, reference: str) -> int:
        """How often the upstream was asked for a manifest."""
        path = self.upstream.manifest_path(name, reference)
        return sum(each.method == method for each in self.upstream.requests(path))


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as each:
        yield each


class Make:
    """Starts an upstream, and a server in front of it."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack

    def __call__(self, upstream: ContainerUpstream | None = None, more: str = "", **settings: str) -> Scene:
        upstream = self._stack.enter_context(upstream or ContainerUpstream())
        text = PRIVATE + proxy("docker", "images", upstream.url, **settings) + more
        server = self._stack.enter_context(running(self._folder, text))
        return Scene(upstream, server, HttpClient(server.url, ADMIN))


@pytest.fixture
def make(tmp_path: Path, stack: ExitStack) -> Make:
    return Make(tmp_path, stack)


def code(reply: Reply) -> tuple[int, str]:
    """The status and the first error code of an answer."""
    return reply.status, reply.json["errors"][0]["code"]


def test_a_pulled_image_is_kept(make: Make) -> None:
    scene = make()
    scene.upstream.push("team/app", ONE, "1")
    scene.pull("team/app", ONE)
    assert scene.manifests("GET", "team/app", "1") == 1
    scene.upstream.stop()
    scene.pull("team/app", ONE)
    scene.pull("team/app", ONE, ONE.digest)
    head = scene.head("team/app/manifests/1")
    assert (head.status, head.headers["docker-content-digest"]) == (200, ONE.digest)
    assert scene.wire.get("/v2/_catalog").json == {"repositories": ["main/images/team/app"]}


def test_a_tag_is_confirmed_by_head_and_follows_the_upstream(make: Make) -> None:
    scene = make(cache_ttl="0")
    scene.upstream.push("app", ONE, "1")
    scene.pull("app", ONE)
    scene.pull("app", ONE)
    assert (scene.manifests("GET", "app", "1"), scene.manifests("HEAD", "app", "1")) == (1, 1)
    scene.upstream.push("app", TWO, "1")
    scene.pull("app", TWO)
    assert (scene.manifests("GET", "app", "1"), scene.manifests("GET", "app", TWO.digest)) == (1, 1)
    scene.upstream.push("app", ONE, "1")
    scene.pull("app", ONE)
    assert scene.manifests("GET", "app", ONE.digest) == 0, "it is kept"


def test_a_fresh_tag_is_not_asked_for(make: Make) -> None:
    scene = make()
    scene.upstream.push("app", ONE, "1")
    scene.pull("app", ONE)
    scene.upstream.push("app", TWO, "1")
    before = scene.upstream.count()
    scene.pull("app", ONE)
    assert scene.upstream.count() == before
    assert scene.get("app/manifests/1", Cache_Control="no-cache").body == ONE.manifest, "it was confirmed just now"


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
    for realm in ("http://10.0.0.1/token", "file:///token", f"{scene.upstream.url}/nothing"):
        path = scene.upstream.manifest_path("bad", "1")
        challenge = Answer(401).with_fields(WWW_Authenticate=f'Bearer realm="{realm}",service="x"')
        scene.upstream.misbehave(path, challenge, repeat=True)
        assert code(scene.get("bad/manifests/1")) == (502, "UNAVAILABLE")
    scene.pull("good", ONE)


def with_auth(url: str, *auth: str) -> str:
    """The configuration of a proxy with credentials."""
    user, password = auth
    route = f'{{ url = "{url}", auth = {{ username = "{user}", password = "{password}" }} }}'
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
    assert code(reply) == (502, "UNAVAILABLE")
    assert "refuses the credentials of the route" in reply.text


def test_a_token_service_on_another_host_gets_no_credentials(tmp_path: Path, stack: ExitStack) -> None:
    tokens = stack.enter_context(ContainerUpstream(host="127.0.0.2"))
    upstream = stack.enter_context(ContainerUpstream(challenge="bearer", tokens=tokens))
    upstream.push("app", ONE, "1")
    text = PRIVATE.replace('"]', '", "127.0.0.2"]') + with_auth(upstream.url, "u", "p")
    server = stack.enter_context(running(tmp_path, text))
    assert HttpClient(server.url, ADMIN).get("/v2/main/secret/app/manifests/1").body == ONE.manifest
    assert all("authorization" not in each.fields for each in tokens.requests(TOKEN))
    assert tokens.count(TOKEN) == 1


class Renamed(ContainerUpstream):
    """A server that is known by a name which nobody can resolve."""

    @property
    def url(self) -> str:
        return "http://registry.invalid:81"


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


def test_official_images_are_found_in_library(make: Make) -> None:
    scene = make()
    scene.upstream.push("library/app", ONE, "1")
    scene.upstream.push("library/other", TWO, "1")
    scene.pull("app", ONE)
    scene.upstream.forget()
    scene.pull("other", TWO)
    assert scene.manifests("GET", "other", "1") == 0, "the form that the first image had is tried first"


def test_library_is_not_tried_if_the_setting_says_never(make: Make) -> None:
    scene = make(library_prefix='"never"')
    scene.upstream.push("library/app", ONE, "1")
    assert code(scene.get("app/manifests/1")) == (404, "MANIFEST_UNKNOWN")


def test_what_no_upstream_has_is_remembered(make: Make) -> None:
    scene = make()
    assert code(scene.get("no/app/manifests/1")) == (404, "MANIFEST_UNKNOWN")
    assert code(scene.get(f"no/app/blobs/{ONE.digest}")) == (404, "BLOB_UNKNOWN")
    assert code(scene.get("no/app/tags/list")) == (404, "NAME_UNKNOWN")
    before = scene.upstream.count()
    assert scene.head("no/app/manifests/1").status == 404
    assert scene.get(f"no/app/blobs/{ONE.digest}").status == 404
    assert scene.get("no/app/tags/list").status == 404
    assert scene.upstream.count() == before


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(429, fields={"Retry-After": "77"}), (429, "TOOMANYREQUESTS")),
        (Answer(500), (502, "UNAVAILABLE")),
        (Answer(403), (502, "UNAVAILABLE")),
        (Answer(503), (503, "UNAVAILABLE")),
        (Answer(200, b"<html>", {"Content-Type": "text/html"}), (502, "UNAVAILABLE")),
    ],
)
def test_a_failing_upstream_never_means_not_found(make: Make, answer: Answer, expected: tuple[int, str]) -> None:
    scene = make(cache_ttl="0")
    scene.upstream.push("app", ONE, "1")
    scene.pull("app", ONE)
    scene.upstream.misbehave("*", answer, repeat=True)
    reply = scene.get("app/manifests/2")
    assert code(reply) == expected
    assert reply.headers.get("retry-after", "77") <= "77"
    stale = scene.get("app/manifests/1")
    assert (stale.body, stale.headers["warning"]) == (ONE.manifest, '110 - "stale"')
    assert code(scene.get(f"app/blobs/{TWO.digest}")) == expected


def test_a_quota_of_pulls_is_not_used_for_what_is_kept(make: Make) -> None:
    upstream = ContainerUpstream(quota=1)
    scene = make(upstream, cache_ttl="0")
    upstream.push("app", ONE, "1", "2")
    for tag in ("1", "2", "1"):
        assert scene.get(f"app/manifests/{tag}").body == ONE.manifest
    assert upstream.quota == 0


def test_a_removed_tag_is_served_for_a_while(make: Make) -> None:
    scene = make(cache_ttl="0", cache='{ negative_ttl = 0, stale_if_gone = "1h" }')
    scene.upstream.push("app", ONE, "1")
    scene.pull("app", ONE)
    scene.upstream.misbehave("*", Answer(404), repeat=True)
    for _ in range(2):
        reply = scene.get("app/manifests/1")
        assert (reply.body, reply.headers["warning"]) == (ONE.manifest, '110 - "stale"')
    scene.upstream.behave()
    assert "warning" not in scene.get("app/manifests/1").headers


def test_a_removed_tag_ends_with_stale_if_gone(make: Make) -> None:
    scene = make(cache_ttl="0", cache="{ stale_if_gone = 0 }")
    scene.upstream.push("app", ONE, "1")
    scene.pull("app", ONE)
    scene.upstream.misbehave(scene.upstream.manifest_path("app", "1"), Answer(404), repeat=True)
    assert code(scene.get("app/manifests/1")) == (404, "MANIFEST_UNKNOWN")
    assert scene.get(f"app/manifests/{ONE.digest}").body == ONE.manifest, "what has a digest is served for ever"


def test_a_manifest_of_another_digest_is_refused(make: Make) -> None:
    scene = make()
    scene.upstream.push("app", ONE, "1")
    wrong = Answer(200, TWO.manifest, {"Content-Type": TWO.media_type})
    scene.upstream.misbehave(scene.upstream.manifest_path("app", ONE.digest), wrong)
    assert code(scene.get(f"app/manifests/{ONE.digest}")) == (502, "UNAVAILABLE")
    assert scene.get(f"app/manifests/{ONE.digest}").body == ONE.manifest, "nothing of it was kept"


@pytest.fixture
def layered(make: Make) -> tuple[Scene, str, str]:
    """A scene, and the paths of a large layer here and at the upstream."""
    scene = make()
    config, _ = ONE.blobs
    image = Image(ONE.manifest, (config, LAYER))
    scene.upstream.push("app", image, "1")
    digest = digest_of(LAYER)
    return scene, f"app/blobs/{digest}", scene.upstream.blob_path("app", digest)


def test_a_wrong_layer_is_never_complete(layered: tuple[Scene, str, str]) -> None:
    scene, path, upstream_path = layered
    wrong = LAYER[:-1] + bytes([LAYER[-1] ^ 1])
    scene.upstream.misbehave(upstream_path, Answer(200, wrong))
    with suppress(http.client.HTTPException, ConnectionError):
        assert scene.get(path).status == 502
    assert scene.get(path).body == LAYER


def test_a_broken_layer_is_continued(layered: tuple[Scene, str, str]) -> None:
    scene, path, upstream_path = layered
    scene.upstream.misbehave(upstream_path, Fault(cut_at=1_000_000))
    assert scene.get(path).body == LAYER
    assert scene.upstream.requests(upstream_path)[1].fields["range"].startswith("bytes=")


def test_ranges_are_served_while_a_layer_arrives(layered: tuple[Scene, str, str]) -> None:
    scene, path, upstream_path = layered
    scene.upstream.misbehave(upstream_path, Fault(pause_at=2_000_000))
    with ThreadPoolExecutor(2) as pool:
        whole = pool.submit(scene.get, path)
        scene.upstream.wait_paused(upstream_path)
        part = scene.get(path, Range="bytes=100-199")
        assert (part.status, part.body) == (206, LAYER[100:200])
        scene.upstream.release(upstream_path)
        assert whole.result().body == LAYER
    assert scene.upstream.count(upstream_path) == 1


def test_fifty_clients_make_one_request_for_a_layer(layered: tuple[Scene, str, str]) -> None:
    scene, path, upstream_path = layered
    scene.upstream.misbehave(upstream_path, Fault(pause_at=500_000))
    with ThreadPoolExecutor(50) as pool:
        replies = [pool.submit(scene.get, path) for _ in range(50)]
        scene.upstream.wait_paused(upstream_path)
        scene.upstream.release(upstream_path)
        assert all(each.result().body == LAYER for each in replies)
    assert scene.upstream.count(upstream_path) == 1


def test_the_head_of_a_layer_fetches_nothing(layered: tuple[Scene, str, str]) -> None:
    scene, path, upstream_path = layered
    reply = scene.head(path)
    assert (reply.status, reply.headers["content-length"]) == (200, str(len(LAYER)))
    assert reply.headers["docker-content-digest"] == digest_of(LAYER)
    assert [each.method for each in scene.upstream.requests(upstream_path)] == ["HEAD"]


def test_a_layer_is_fetched_once_for_several_images(layered: tuple[Scene, str, str]) -> None:
    scene, path, upstream_path = layered
    scene.upstream.push("other", Image(TWO.manifest, (TWO.blobs[0], LAYER)), "1")
    other = scene.upstream.blob_path("other", digest_of(LAYER))
    scene.upstream.misbehave(upstream_path, Fault(pause_at=500_000))
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(scene.get, path)
        scene.upstream.wait_paused(upstream_path)
        second = pool.submit(scene.get, f"other/blobs/{digest_of(LAYER)}")
        scene.upstream.wait_for(lambda: any(each.request.path == other for each in scene.upstream.exchanges))
        scene.upstream.release(upstream_path)
        assert first.result().body == second.result().body == LAYER
    scene.upstream.push("third", Image(TWO.manifest, (TWO.blobs[0], LAYER)), "1")
    assert scene.get(f"third/blobs/{digest_of(LAYER)}").body == LAYER
    for name in ("other", "third"):
        asked = scene.upstream.requests(scene.upstream.blob_path(name, digest_of(LAYER)))
        assert [each.method for each in asked] == ["HEAD"], "that the image has it is all that is asked"
    assert scene.get(f"fourth/blobs/{digest_of(LAYER)}").status == 404


def test_tags_are_listed_from_all_pages(make: Make) -> None:
    scene = make(cache_ttl="0")
    scene.upstream.push("app", ONE, *(f"v{number}" for number in range(9)), "latest")
    expected = ["latest", *(f"v{number}" for number in range(9))]
    short = {"name": "app", "tags": expected[:4]}
    first = Answer(200, json.dumps(short).encode(), {"Link": '</v2/app/tags/list?n=4&last=v2>; rel="next"'})
    scene.upstream.misbehave("/v2/app/tags/list", first)
    reply = scene.get("app/tags/list?n=3")
    assert reply.json == {"name": "main/images/app", "tags": expected[:3]}
    assert reply.headers["link"] == '</v2/main/images/app/tags/list?last=v1&n=3>; rel="next"'
    scene.upstream.stop()
    rest = scene.get("app/tags/list?last=v1")
    assert (rest.json["tags"], rest.headers["warning"]) == (expected[3:], '110 - "stale"')


def test_referrers_are_listed(make: Make) -> None:
    scene = make()
    signature = make_artifact(ONE, "application/x.signature", annotations={"by": "us"})
    scene.upstream.push("app", ONE, "1")
    scene.upstream.push("app", signature)
    path = f"app/referrers/{ONE.digest}"
    assert [each["digest"] for each in scene.get(path).json["manifests"]] == [signature.digest]
    filtered = scene.get(f"{path}?artifactType=application/x.other")
    assert (filtered.json["manifests"], filtered.headers["oci-filters-applied"]) == ([], "artifactType")
    scene.pull("app", signature, signature.digest)
    none = scene.get(f"app/referrers/{TWO.digest}")
    assert (none.status, none.json["manifests"], none.headers["content-type"]) == (200, [], OCI_INDEX)


def test_referrers_are_found_by_their_tag(make: Make) -> None:
    scene = make()
    signature = make_artifact(ONE, "application/x.signature")
    tag = ONE.digest.replace(":", "-")
    scene.upstream.push("app", ONE, "1")
    scene.upstream.push("app", make_index([signature]), tag, children=(signature,))
    scene.upstream.misbehave(f"/v2/app/referrers/{ONE.digest}", Answer(404), repeat=True)
    listed = scene.get(f"app/referrers/{ONE.digest}").json["manifests"]
    assert [each["digest"] for each in listed] == [signature.digest]


def test_routes_are_asked_by_priority(tmp_path: Path, stack: ExitStack) -> None:
    first, second = (stack.enter_context(ContainerUpstream()) for _ in range(2))
    first.push("both", ONE, "1")
    second.push("both", TWO, "1")
    second.push("own", TWO, "1")
    routes = f'[{{ url = "{second.url}" }}, {{ url = "{first.url}", priority = 5 }}]'
    text = hosted("docker", images=f'config = {{ type = "Proxy", cache_ttl = 0, proxy = {{ routes = {routes} }} }}')
    server = stack.enter_context(running(tmp_path, PRIVATE + text))
    scene = Scene(first, server, HttpClient(server.url, ADMIN))
    scene.pull("both", ONE)
    scene.pull("own", TWO)
    assert second.count("/v2/both/manifests/1") == 0
    first.forget()
    scene.pull("own", TWO)
    assert first.count() == 0, "where an image was found is remembered"
    first.stop()
    assert scene.get("both/manifests/1").headers["warning"] == '110 - "stale"', "the other route's is another image"


def test_layers_are_not_shared_with_images_of_other_routes(tmp_path: Path, stack: ExitStack) -> None:
    first, second = (stack.enter_context(ContainerUpstream()) for _ in range(2))
    first.push("secret", ONE, "1")
    second.push("trap", TWO, "1")
    secret = ONE.blobs[1]
    second.serve(second.blob_path("trap", digest_of(secret)), Answer(200, b"?" * len(secret)))
    server = stack.enter_context(running(tmp_path, PRIVATE + proxy("docker", "images", first.url, second.url)))
    scene = Scene(first, server, HttpClient(server.url, ADMIN))
    scene.pull("secret", ONE)
    scene.pull("trap", TWO)
    assert scene.get(f"trap/blobs/{digest_of(secret)}").status == 502


@pytest.mark.parametrize("name", ["images", "virtual"])
def test_nothing_is_pushed_or_deleted(make: Make, name: str) -> None:
    scene = make(more=virtual("docker", "virtual", "main/images"))
    scene.upstream.push("app", ONE, "1")
    scene.pull("app", ONE)
    for method, path in (
        ("POST", "blobs/uploads/"),
        ("POST", f"blobs/uploads/?mount={ONE.digest}&from=main/images/app"),
        ("PUT", "manifests/1"),
        ("DELETE", "manifests/1"),
        ("DELETE", f"blobs/{digest_of(ONE.blobs[0])}"),
    ):
        reply = scene.wire.ask(method, f"/v2/main/{name}/app/{path}", b"")
        assert code(reply) == (405, "UNSUPPORTED")
        assert f"repository main/{name} is " in reply.text


def test_a_virtual_repository_asks_its_members_in_order(make: Make) -> None:
    more = hosted("docker", "own") + virtual("docker", "all", "main/images", "main/own", publish_to="main/own")
    scene = make(more=more)
    scene.upstream.push("app", TWO, "1")
    scene.upstream.push("other", TWO, "1")
    push_image(scene.wire, "main/own/app", ONE, "1")
    assert scene.wire.get("/v2/main/all/app/manifests/1").body == ONE.manifest
    assert scene.wire.get("/v2/main/all/app/tags/list").json["tags"] == ["1"]
    assert scene.wire.get(f"/v2/main/all/app/manifests/{TWO.digest}").status == 404
    assert scene.upstream.count() == 0, "a hosted member has the image"
    assert scene.wire.get("/v2/main/all/other/manifests/1").body == TWO.manifest
    assert scene.wire.get(f"/v2/main/all/other/blobs/{digest_of(TWO.blobs[1])}").body == TWO.blobs[1]
    push_image(scene.wire, "main/all/third", ONE, "1")
    assert scene.wire.get("/v2/main/own/third/manifests/1").body == ONE.manifest


def test_reserved_names_are_those_of_all_virtual_repositories_on_the_way(make: Make) -> None:
    policy = '{ reserved_names = ["team/*"] }'
    inner = virtual("docker", "inner", "main/images", policy=policy)
    scene = make(more=inner + virtual("docker", "outer", "main/inner"))
    scene.upstream.push("team/app", ONE, "1")
    scene.pull("team/app", ONE)
    for name in ("inner", "outer"):
        for path in ("manifests/1", f"manifests/{ONE.digest}", f"blobs/{digest_of(ONE.blobs[0])}", "tags/list"):
            assert scene.wire.get(f"/v2/main/{name}/team/app/{path}").status == 404


def test_reserved_names_are_not_served_from_the_cache(make: Make) -> None:
    scene = make()
    scene.upstream.push("team/app", ONE, "1")
    scene.pull("team/app", ONE)
    listed: Any = scene.wire.get("/api/repository").json
    found = next(each for each in listed["items"] if each["name"] == "images")
    path = f"/api/repository/{found['id']}/config"
    config = {**scene.wire.get(path).json, "policy": {"reserved_names": ["team/*"]}}
    assert scene.wire.post_json(path, config, "PUT").status == 200
    for path in ("manifests/1", f"manifests/{ONE.digest}", f"blobs/{digest_of(ONE.blobs[0])}", "tags/list"):
        assert scene.get(f"team/app/{path}").status == 404


def test_a_failing_member_is_not_replaced_by_a_stranger(make: Make, stack: ExitStack) -> None:
    inner = stack.enter_context(ContainerUpstream())
    more = proxy("docker", "inner", inner.url) + virtual("docker", "all", "main/inner", "main/images")
    scene = make(more=more)
    for name in ("ours", "theirs"):
        scene.upstream.push(name, TWO, "1")
    inner.push("ours", ONE, "1")
    assert scene.wire.get("/v2/main/all/theirs/manifests/1").body == TWO.manifest
    inner.misbehave(ANY, Answer(500), repeat=True)
    assert scene.wire.get("/v2/main/all/ours/manifests/1").status in (502, 503)
    assert scene.wire.get("/v2/main/all/ours/tags/list").status in (502, 503)
    assert scene.wire.get("/v2/main/all/theirs/manifests/1").body == TWO.manifest


def test_an_upstream_does_not_open_blobs_of_a_private_repository(make: Make) -> None:
    scene = make(more=hosted("docker", secret='visibility = "private"'))
    push_image(scene.wire, "main/secret/app", ONE, "1")
    secret = ONE.blobs[1]
    scene.upstream.serve(scene.upstream.blob_path("app", digest_of(secret)), Answer(200, b"?" * len(secret)))
    with suppress(http.client.HTTPException, ConnectionError):
        reply = scene.get(f"app/blobs/{digest_of(secret)}")
        assert reply.status == 502, reply


def test_pulls_of_kept_images_are_answered_from_memory(make: Make) -> None:
    scene = make()
    scene.upstream.push("app", ONE, "1")
    for _ in range(3):
        scene.pull("app", ONE)
        assert scene.get("app/tags/list").json["tags"] == ["1"]
    for path in ("manifests/1", *(f"blobs/{digest_of(blob)}" for blob in ONE.blobs), "tags/list"):
        lines = scene.server.lines(f"GET /v2/main/images/app/{path} 200", 3)
        assert lines[2].rstrip().endswith("hot"), lines


def test_use_of_the_cache_is_counted(make: Make) -> None:
    scene = make(cache_ttl="0")
    scene.upstream.push("app", ONE, "1")
    scene.pull("app", ONE)
    scene.pull("app", ONE)
    assert scene.get("app/manifests/2").status == 404
    scene.upstream.misbehave("*", Answer(500), repeat=True)
    scene.pull("app", ONE)
    scene.server.stop()
    data = DataFolder(scene.server.folder / "data")
    counted = data.rows("SELECT SUM(misses), SUM(confirmed), SUM(stale), SUM(absent), SUM(hits) FROM cache_count")
    hits = 2 * (1 + len(ONE.blobs))
    assert counted == [(3, 1, 1, 1, hits)], (
        "what is kept and sent is a hit: the manifest by its download, and each blob"
    )


def test_upstreams_are_checked(make: Make) -> None:
    scene = make(ContainerUpstream(challenge="bearer"))
    path = "/api/repository/main%2Fimages/upstream/check"
    assert scene.wire.post_json(path, {}).json["ok"]
    scene.upstream.stop()
    assert not scene.wire.post_json(path, {}).json["ok"]


def test_kept_images_are_restored_from_the_readable_layout(make: Make, tmp_path: Path) -> None:
    scene = make()
    index = make_index([ONE, TWO])
    scene.upstream.push("team/app", index, "1", children=(ONE, TWO))
    scene.pull("team/app", index)
    scene.pull("team/app", ONE, ONE.digest)
    data = DataFolder(tmp_path / "data")
    assert stop_in_step(scene.server, data) in (0, -15)
    entry = json.loads((data.layout / "images/team/app/index.json").read_text())["manifests"][0]
    assert entry["digest"] == index.digest
    data.delete_catalog()
    restored = pkgrepo(data, "reindex")
    assert (restored.returncode, "2 images and 1 tags" in restored.stdout) == (0, True), restored
    scene.upstream.stop()
    again = make(scene.upstream)
    scene.upstream.stop()
    again.pull("team/app", index)
    again.pull("team/app", ONE, ONE.digest)
    assert again.get("team/app/manifests/1").headers["warning"] == '110 - "stale"', "no upstream has confirmed it"
    assert data.damaged() == []


def test_kept_images_are_counted_and_not_collected(make: Make) -> None:
    scene = make()
    index = make_index([ONE, TWO])
    scene.upstream.push("app", index, "1", children=(ONE, TWO))
    scene.pull("app", index)
    scene.pull("app", ONE, ONE.digest)
    scene.pull("app", TWO, TWO.digest)
    scene.upstream.push("by/digest", ONE)
    scene.pull("by/digest", ONE, ONE.digest)
    listed: Any = scene.wire.get("/api/repository").json
    found = next(each for each in listed["items"] if each["name"] == "images")
    reply = scene.wire.post_json(
        f"/api/repository/{found['id']}/gc?wait=true", {"grace_seconds": 0, "delete_untagged": True}
    )
    assert (reply.status, reply.json["manifests_deleted"], reply.json["blobs_deleted"]) == (200, 0, 0)
    scene.upstream.stop()
    scene.pull("app", TWO, TWO.digest)
    scene.pull("by/digest", ONE, ONE.digest)
