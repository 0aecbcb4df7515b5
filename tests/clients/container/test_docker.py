"""The docker command line without a daemon: login, and reading manifests with that login."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.support.client_programs import client_environment, program, run_client
from tests.support.configurations import PRIVATE, hosted
from tests.support.http_client import HttpClient
from tests.support.images import OCI_IMAGE, digest_of, make_image
from tests.support.server_process import ServerProcess

USER, PASSWORD = "admin", "correct horse battery"
CONFIG = hosted("docker", private=PRIVATE)
IMAGE = "main/private/app"

Docker = Callable[..., str]


@pytest.fixture
def docker(tmp_path: Path) -> Docker:
    """Run docker with its own home and without a daemon."""
    environ = client_environment(tmp_path / "home", DOCKER_HOST=f"unix://{tmp_path}/none.sock")

    def run(*arguments: str, status: int = 0) -> str:
        return run_client([program("docker"), *arguments], environ=environ, folder=tmp_path, status=status).stdout

    return run


def test_docker_logs_in_stores_a_token_and_reads_with_it(server: ServerProcess, docker: Docker, tmp_path: Path) -> None:
    host = urlsplit(server.url).netloc
    wire, image = HttpClient(server.url, (USER, PASSWORD)), make_image()
    for blob in image.blobs:
        assert wire.post(f"/v2/{IMAGE}/blobs/uploads/?digest={digest_of(blob)}", blob).status == 201
    assert wire.put(f"/v2/{IMAGE}/manifests/v1", image.manifest, Content_Type=OCI_IMAGE).status == 201
    shown = docker("login", "-u", USER, "-p", "wrong", host, status=1)
    assert "unauthorized: incorrect username or password" in shown
    docker("manifest", "inspect", "--insecure", f"{host}/{IMAGE}:v1", status=1)
    assert "Login Succeeded" in docker("login", "-u", USER, "-p", PASSWORD, host)
    kept = json.loads((tmp_path / "home" / ".docker" / "config.json").read_text())["auths"][host]
    assert kept["identitytoken"].startswith("pkgr_l_")
    read = json.loads(docker("manifest", "inspect", "--insecure", f"{host}/{IMAGE}:v1"))
    assert read["config"] == json.loads(image.manifest)["config"]
