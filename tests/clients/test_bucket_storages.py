"""npm, twine and pip, and crane with repositories in a bucket, at a server with two workers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.client_programs import client
from tests.support.container_clients import ADMIN, ContainerClients, host_of, ok
from tests.support.http_client import HttpClient
from tests.support.images import make_image, write_layout
from tests.support.npm_clients import NodeBench, Registry
from tests.support.python_index import PASSWORD, USER, PythonBench, PythonIndex
from tests.support.s3_servers import BUCKET, KEY, s3_server
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

CONFIG = ""
ENVIRONMENT = {"PKGREPO_SERVER__WORKERS": "2"}


@pytest.fixture(scope="module")
def server(server: ServerProcess) -> Iterator[ServerProcess]:
    """The server, with a storage in a bucket, in which all repositories are."""
    with s3_server() as s3:
        api = HttpClient(f"{server.url}/api", ADMIN)
        key = {"access_key_id": KEY.id, "secret_access_key": KEY.secret}
        settings = {"endpoint": s3.endpoint, "bucket": BUCKET, "prefix": "packages", **key}
        ok(api.post_json("/storage", {"name": "cloud", "type": "S3", "settings": settings}))
        for name, kind in (("npm", "npm"), ("py", "python"), ("images", "docker")):
            body = {"name": name, "storage": "cloud", "format": kind, "visibility": "public"}
            ok(api.post_json("/repository", {**body, "config": {"type": "Hosted"}}))
        yield server


def test_npm_publishes_and_installs(server: ServerProcess, tmp_path: Path) -> None:
    registry = Registry(server.url, "cloud/npm")
    bench = NodeBench(tmp_path, registry, registry.token())
    big = "".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(20_000))
    bench.publish("npm-11", bench.package("in-a-bucket", files={"big.js": f"// {big}\n"}))
    project = bench.project("npm-11")
    bench.install("npm-11", project, "in-a-bucket")
    assert bench.required(project, "in-a-bucket") == "in-a-bucket@1.0.0"


def test_twine_uploads_and_pip_installs(server: ServerProcess, tmp_path: Path) -> None:
    index, bench = PythonIndex(server.url, "cloud/py"), PythonBench(tmp_path)
    files = [bench.wheel("in-a-bucket", "1.0", pad=9 * 1024 * 1024), bench.wheel("in-a-bucket", "0.9")]
    bench.run(client("twine"), "upload", "--repository-url", index.legacy, "-u", USER, "-p", PASSWORD, *files)
    python = bench.venv()
    bench.pip(python, "install", "--index-url", index.simple, "in-a-bucket")
    assert "1.0" in bench.pip(python, "show", "in-a-bucket")


def test_crane_pushes_and_pulls(server: ServerProcess, tmp_path: Path) -> None:
    crane = ContainerClients(tmp_path, host_of(server))
    crane.log_in(*ADMIN)
    image, name = make_image("in a bucket"), f"{crane.host}/cloud/images/app:1"
    write_layout(tmp_path / "layout", image)
    crane.run("crane", "push", tmp_path / "layout", name)
    assert crane.run("crane", "digest", name).strip() == image.digest
    assert "PASS" in crane.run("crane", "validate", "--remote", name).upper()
