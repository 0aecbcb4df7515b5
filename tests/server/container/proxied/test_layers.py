"""Layers are sent while they arrive, once for all, and shared with care."""

from __future__ import annotations

import http.client
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.support.configurations import hosted, proxy
from tests.support.container_clients import ADMIN, push_image
from tests.support.container_proxy import LAYER, ONE, TWO, Make, Scene
from tests.support.http_client import HttpClient
from tests.support.images import Image, digest_of
from tests.support.proxied import PRIVATE
from tests.support.server_process import running
from tests.support.upstreams.container import ContainerUpstream
from tests.support.upstreams.messages import Answer, Fault


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


@pytest.mark.one_process("workers share what arrives for the same image")
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


def test_an_upstream_does_not_open_blobs_of_a_private_repository(make: Make) -> None:
    scene = make(more=hosted("docker", secret='visibility = "private"'))
    push_image(scene.wire, "main/secret/app", ONE, "1")
    secret = ONE.blobs[1]
    scene.upstream.serve(scene.upstream.blob_path("app", digest_of(secret)), Answer(200, b"?" * len(secret)))
    with suppress(http.client.HTTPException, ConnectionError):
        reply = scene.get(f"app/blobs/{digest_of(secret)}")
        assert reply.status == 502, reply


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
