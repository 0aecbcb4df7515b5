"""Lists, routes, members of virtual repositories, and what is refused."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.configurations import hosted, virtual
from tests.support.container_clients import ADMIN, push_image
from tests.support.container_proxy import ONE, TWO, Make, Scene, code
from tests.support.http_client import HttpClient
from tests.support.images import OCI_INDEX, digest_of, make_artifact, make_index
from tests.support.proxied import PRIVATE
from tests.support.server_process import running
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.messages import Answer


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


def test_a_list_of_tags_that_leads_back_ends(make: Make) -> None:
    scene = make()
    circle = Answer(200, b'{"tags":["a","b"]}', {"Link": '</v2/app/tags/list?n=4&last=b>; rel="next"'})
    scene.upstream.misbehave("/v2/app/tags/list", circle, repeat=True)
    assert scene.get("app/tags/list").json["tags"] == ["a", "b"]
    reply = scene.get("app/tags/list?last=b")
    assert (reply.json["tags"], "link" in reply.headers) == ([], False)


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


def test_the_lists_of_hosted_members_with_one_image_are_joined(make: Make) -> None:
    more = hosted("docker", "one", "two", "none")
    scene = make(more=more + virtual("docker", "all", "main/none", "main/one", "main/two", "main/images"))
    signatures = [make_artifact(ONE, "application/x.signature", annotations={"by": each}) for each in "abc"]
    for repository, image, *tags in (
        ("one", ONE, "1", "both", "z"),
        ("two", TWO, "2", "both"),
        ("one", signatures[0]),
        ("two", signatures[0]),
        ("two", signatures[1]),
        ("two", signatures[2]),
    ):
        push_image(scene.wire, f"main/{repository}/app", image, *tags)
    pages, path = [], "/v2/main/all/app/tags/list?n=3"
    while path:
        reply = scene.wire.get(path)
        pages.append(reply.json["tags"])
        path = reply.headers["link"][1:].partition(">")[0] if "link" in reply.headers else ""
    assert pages == [["1", "2", "both"], ["z"]]
    assert scene.wire.get("/v2/main/all/app/manifests/both").body == ONE.manifest
    assert scene.wire.get("/v2/main/all/app/manifests/2").body == TWO.manifest
    assert scene.wire.get(f"/v2/main/all/app/manifests/{TWO.digest}").body == TWO.manifest
    referrers = scene.wire.get(f"/v2/main/all/app/referrers/{ONE.digest}").json["manifests"]
    assert [each["digest"] for each in referrers] == sorted(each.digest for each in signatures)
    push_image(scene.wire, "main/two/app", TWO, "new")
    assert scene.wire.get("/v2/main/all/app/tags/list").json["tags"] == ["1", "2", "both", "new", "z"]
    assert scene.wire.get("/v2/main/all/app/manifests/none").status == 404
    assert scene.upstream.count() == 0


def test_kept_images_are_in_the_catalog_unless_another_image_has_their_name(make: Make) -> None:
    policy = '{ reserved_names = ["team/*"] }'
    scene = make(more=hosted("docker", "own") + virtual("docker", "all", "main/images", "main/own", policy=policy))
    for name in ("app", "own", "team/app"):
        scene.upstream.push(name, ONE, "1")
        scene.pull(name, ONE)
    push_image(scene.wire, "main/own/own", TWO, "1")
    assert scene.wire.ask("DELETE", f"/v2/main/own/own/manifests/{TWO.digest}").status == 202
    images = ["main/images/app", "main/images/own", "main/images/team/app"]
    assert scene.wire.get("/v2/_catalog").json["repositories"] == ["main/all/app", *images]


def test_reserved_names_are_those_of_all_virtual_repositories_on_the_way(make: Make) -> None:
    policy = '{ reserved_names = ["team/*"] }'
    inner = virtual("docker", "inner", "main/images", policy=policy)
    scene = make(more=inner + virtual("docker", "outer", "main/inner"))
    scene.upstream.push("team/app", ONE, "1")
    scene.pull("team/app", ONE)
    for name in ("inner", "outer"):
        for path in ("manifests/1", f"manifests/{ONE.digest}", f"blobs/{digest_of(ONE.blobs[0])}", "tags/list"):
            assert scene.wire.get(f"/v2/main/{name}/team/app/{path}").status == 404
