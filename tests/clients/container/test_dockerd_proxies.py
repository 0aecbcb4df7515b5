"""docker with its own daemon pulls through a proxy: cold, warm, and when the upstream is stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.container_clients import ADMIN
from tests.support.container_daemons import Docker
from tests.support.http_client import HttpClient
from tests.support.proxied_images import IMAGES, INDEX, Scene


@pytest.fixture
def docker(tmp_path: Path, scene: Scene, daemon: str) -> Docker:
    """docker, not logged in: the proxied images are public."""
    return Docker(tmp_path, scene.host, daemon)


def pull(docker: Docker, image: str, platform: str) -> None:
    """Pull an image into a daemon that has none of its layers, check it, and remove it."""
    assert "Downloaded newer image" in docker("pull", "--platform", f"linux/{platform}", image)
    assert docker("image", "inspect", "--format", "{{.Architecture}}", image).strip() == platform
    assert docker.digest(image) == INDEX.digest
    docker("rmi", image)


def test_docker_pulls_a_platform_cold_warm_and_alone(docker: Docker, scene: Scene) -> None:
    image = f"{scene.image}:v1"
    pull(docker, image, "arm64")
    pull(docker, image, "arm64")
    scene.upstream.close()
    pull(docker, image, "arm64")
    # Of a status 5xx docker shows no text.
    assert "503 Service Unavailable" in docker("pull", "--platform", "linux/amd64", image, status=1)


@pytest.mark.shows("proxy", by=("docker",))
def test_docker_pulls_by_digest_when_the_upstream_is_stopped(docker: Docker, scene: Scene) -> None:
    image = f"{scene.image}@{IMAGES['amd64'].digest}"
    docker("pull", image)
    docker("rmi", image)
    scene.upstream.close()
    docker("pull", image)
    docker("rmi", image)


@pytest.mark.shows("held", by=("docker",))
def test_docker_prints_why_the_image_of_a_platform_is_refused(docker: Docker, scene: Scene) -> None:
    wire = HttpClient(scene.server.url, ADMIN)
    rule = {"name": "rights", "reason": "ask security", "match": {"contents": ["root_user", "setuid"]}}
    assert wire.post_json("/api/repository/main%2Fimages/config/policy", {"rules": [rule]}, "PATCH").status == 200
    for image in (f"{scene.image}:v1", f"{scene.image}@{IMAGES['amd64'].digest}"):
        shown = " ".join(docker("pull", "--platform", "linux/amd64", image, status=1).split())
        assert "denied: team/app@" in shown
        assert "(root_user inside): ask security" in shown


def test_docker_is_told_that_nothing_can_be_pushed_and_what_is_missing(docker: Docker, scene: Scene) -> None:
    docker.log_in(*ADMIN)
    shown = docker("push", docker.make("main/images/team/mine:1", "refused"), status=1)
    assert "repository main/images is a proxy" in shown
    shown = docker("pull", f"{scene.host}/main/images/team/none:v1", status=1)
    assert "manifest unknown" in shown or "not found" in shown
