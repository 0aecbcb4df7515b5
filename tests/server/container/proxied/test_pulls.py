"""Manifests and tags through a proxy repository, in front of a scripted registry."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.configurations import proxy, virtual
from tests.support.container_proxy import ONE, TWO, Make, code
from tests.support.images import digest_of, make_image
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.messages import Answer, Request
from tests.support.upstreams.server import ANY


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
        (Answer(400), (502, "UNAVAILABLE")),
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
    assert ("it sent a web page" in reply.text) == (answer.status == 200)
    assert reply.headers.get("retry-after", "77") <= "77"
    stale = scene.get("app/manifests/1")
    assert (stale.body, stale.headers["warning"]) == (ONE.manifest, '110 - "stale"')
    assert code(scene.get(f"app/blobs/{TWO.digest}")) == expected


def test_while_a_route_fails_a_later_one_serves_only_what_it_served_before(make: Make, stack: ExitStack) -> None:
    first, second = (stack.enter_context(ContainerUpstream()) for _ in range(2))
    routes = (first.url, second.url)
    more = proxy("docker", "pair", *routes, cache_ttl='"0"')
    scene = make(more=more + proxy("docker", "copies", *routes, routes_are_replicas="true"))

    def pull(image: str, reference: str, repository: str = "pair") -> int:
        return scene.wire.get(f"/v2/main/{repository}/{image}/manifests/{reference}").status

    second.push("known", ONE, "1")
    second.push("strange", TWO, "1")
    assert pull("known", "1") == 200
    first.misbehave("*", Answer(500), repeat=True)
    assert pull("strange", "1") == 502
    assert second.count(second.manifest_path("strange", "1")) == 0
    assert pull("strange", TWO.digest) == 200  # whoever sends it, it is the content of its digest
    assert pull("strange", "1") == 502
    assert pull("known", "1") == 200
    assert pull("strange", "1", "copies") == 200
    first.behave()


def test_a_decision_of_an_upstream_is_passed_with_its_sentence(make: Make, stack: ExitStack) -> None:
    """It ends the search for an image, also of other members, and holds for what is kept under a tag."""
    second = stack.enter_context(ContainerUpstream())
    more = proxy("docker", "second", second.url) + virtual("docker", "both", "main/images", "main/second")
    scene = make(more=more, cache_ttl="0")
    second.push("app", TWO, "1")
    scene.upstream.push("app", ONE, "1")
    scene.pull("app", ONE)
    refusal = Answer(403, b'{"errors":[{"code":"DENIED","message":"blocked by policy"}]}')
    scene.upstream.misbehave("*", refusal, repeat=True)
    for path in ("app/manifests/1", "app/manifests/2", f"app/blobs/{TWO.digest}", "app/tags/list"):
        for repository in ("images", "both"):
            reply = scene.wire.get(f"/v2/main/{repository}/{path}")
            assert (code(reply), "blocked by policy" in reply.text) == ((403, "DENIED"), True), reply
    assert second.count() == 0
    assert scene.get(f"app/manifests/{ONE.digest}").body == ONE.manifest


@pytest.mark.parametrize("status", [400, 404, 405, 500, 501, 503])
def test_an_upstream_that_fails_heads_is_pulled_from(make: Make, status: int) -> None:
    class Headless(ContainerUpstream):
        def answer(self, request: Request) -> Answer:
            return Answer(status) if request.method == "HEAD" else super().answer(request)

    scene = make(Headless(), cache_ttl="0")
    scene.upstream.push("app", ONE, "1", "2")
    for tag in ("1", "2", "1"):
        scene.pull("app", ONE, tag)
    scene.upstream.push("app", TWO, "1")
    scene.pull("app", TWO)
    scene.upstream.push("other", make_image("three"), "1")
    blob = make_image("three").blobs[0]
    head = scene.head(f"other/blobs/{digest_of(blob)}")
    assert (head.status, head.headers["content-length"]) == (200, str(len(blob)))
    assert code(scene.get("app/manifests/3")) == (404, "MANIFEST_UNKNOWN")


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
