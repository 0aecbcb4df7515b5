"""Clients of images get short-lived tokens from ``docker-credential-pkgrepo`` after ``pkgrepo setup --write``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from tests.support.container_clients import ADMIN, push_image
from tests.support.http_client import HttpClient
from tests.support.images import make_image
from tests.support.server_process import ServerProcess
from tests.support.setup_bench import SetupBench

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]
NewUser = Callable[..., SetupBench]
REPOSITORY = "main/images"


@pytest.fixture
def image(server: ServerProcess) -> str:
    """The name of an image that is there, without its tag."""
    push_image(HttpClient(server.url, ADMIN), f"{REPOSITORY}/app", make_image("app"), "1.0")
    return f"{urlsplit(server.url).netloc}/{REPOSITORY}/app"


@pytest.mark.shows("setup", by=("podman", "skopeo"))
def test_podman_and_skopeo_copy_without_options(new_user: NewUser, image: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("podman needs a user namespace")
    bench = new_user("podman", "skopeo")
    printed = bench.set_up(REPOSITORY, "podman,skopeo")
    assert "the token ends" not in printed  # no file has one
    bench.run("skopeo", "copy", f"docker://{image}:1.0", f"docker://{image}:copied")
    assert "copied" in bench.run("podman", "search", "--list-tags", image)
    checked = bench.check(REPOSITORY, "podman,skopeo")
    assert "podman: ok: " in checked
    assert "skopeo: ok: " in checked
    bench.undo(REPOSITORY)


@pytest.mark.shows("setup", by=("docker", "crane"))
def test_crane_and_docker_read_the_same_file(new_user: NewUser, image: str) -> None:
    bench = new_user("crane", "docker")
    bench.set_up(REPOSITORY, "docker")
    written = json.loads((bench.home / ".docker" / "config.json").read_text())
    assert written == {"credHelpers": {urlsplit(bench.url).netloc: "pkgrepo"}}
    bench.run("crane", "copy", "--insecure", f"{image}:1.0", f"{image}:by-crane")
    assert "docker: ok: docker manifest inspect" in bench.check(REPOSITORY, "docker")
    bench.undo(REPOSITORY)


def test_logging_out_of_docker_and_in_again_changes_no_credentials(new_user: NewUser, image: str) -> None:
    bench = new_user("docker")
    bench.set_up(REPOSITORY, "docker")
    host = image.partition("/")[0]
    bench.run("docker", "logout", host)
    assert "docker: ok: " in bench.check(REPOSITORY, "docker")
    bench.run("pkgrepo", "logout")
    assert bench.run("docker", "manifest", "inspect", "--insecure", f"{image}:1.0", status=1)
