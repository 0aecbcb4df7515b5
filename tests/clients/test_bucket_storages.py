"""npm, twine and pip, Maven, crane and skopeo with repositories in buckets, at a server with two workers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.client_programs import client, program
from tests.support.container_clients import ADMIN, ContainerClients, host_of, ok
from tests.support.http_client import HttpClient
from tests.support.images import digest_of, make_image, write_layout
from tests.support.maven_clients import MavenBench
from tests.support.npm_clients import NodeBench, Registry
from tests.support.python_index import PASSWORD, USER, PythonBench, PythonIndex
from tests.support.resident_java import stop_all
from tests.support.s3_servers import s3_server
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

CONFIG = ""
BIG = "".join(hashlib.sha256(b"%d" % n).hexdigest() for n in range(20_000))  # half of it remains when compressed
ENVIRONMENT = {"PKGREPO_SERVER__WORKERS": "2"}


@pytest.fixture(scope="module")
def server(server: ServerProcess) -> Iterator[ServerProcess]:
    """
    The server, with two storages in a bucket and repositories in each.

    That of "away" has another host name, like the buckets of a provider: clients send it no credentials of this server.
    """
    with s3_server() as s3:
        api = HttpClient(f"{server.url}/api", ADMIN)
        away = {"endpoint": s3.endpoint.replace("127.0.0.1", "localhost"), "redirect_from": "100KiB"}
        for storage, visibility, place in (("cloud", "public", {}), ("away", "private", away)):
            settings = {**s3.settings(storage), **place}
            ok(api.post_json("/storage", {"name": storage, "type": "S3", "settings": settings}))
            for name, kind in (("npm", "npm"), ("py", "python"), ("images", "docker"), ("java", "maven")):
                body = {"name": name, "storage": storage, "format": kind, "visibility": visibility}
                ok(api.post_json("/repository", {**body, "config": {"type": "Hosted"}}))
        yield server


def test_npm_publishes_and_installs(server: ServerProcess, tmp_path: Path) -> None:
    registry = Registry(server.url, "cloud/npm")
    bench = NodeBench(tmp_path, registry, registry.token())
    bench.publish("npm-11", bench.package("in-a-bucket", files={"big.js": f"// {BIG}\n"}))
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


def is_redirected(server: ServerProcess, path: str, times: int) -> bool:
    """Whether reads of a path were answered so often with an address in the bucket; the log may be late."""
    return len(server.lines(f"{path} 307 ", times)) >= times


def test_npm_installs_from_the_bucket_itself(server: ServerProcess, tmp_path: Path) -> None:
    registry = Registry(server.url, "away/npm")
    bench = NodeBench(tmp_path, registry, registry.token())
    bench.publish("npm-11", bench.package("elsewhere", files={"big.js": f"// {BIG}\n"}))
    (tmp_path / "user").mkdir()
    user = NodeBench(tmp_path / "user", registry, registry.token())  # npm's cache has what it has published
    project = user.project("npm-11")
    user.install("npm-11", project, "elsewhere")
    assert user.required(project, "elsewhere") == "elsewhere@1.0.0"
    assert is_redirected(server, "/elsewhere-1.0.0.tgz", 1)


def test_pip_and_uv_install_from_the_bucket_itself(server: ServerProcess, tmp_path: Path) -> None:
    index, bench = PythonIndex(server.url, "away/py"), PythonBench(tmp_path)
    files = [bench.wheel("elsewhere", "1.0", pad=9 * 1024 * 1024)]
    bench.run(client("twine"), "upload", "--repository-url", index.legacy, "-u", USER, "-p", PASSWORD, *files)
    simple = index.simple.replace("://", f"://{USER}:{quote(PASSWORD)}@")
    bench.pip(bench.venv("pip"), "install", "--index-url", simple, "elsewhere")
    python = bench.venv("uv")
    bench.run(client("uv"), "pip", "install", "--python", python, "--index-url", simple, "elsewhere")
    assert "1.0" in bench.pip(python, "show", "elsewhere")
    assert is_redirected(server, f"/{files[0].name}", 2)


def test_crane_and_skopeo_pull_from_the_bucket_itself(server: ServerProcess, tmp_path: Path) -> None:
    crane = ContainerClients(tmp_path, host_of(server))
    crane.log_in(*ADMIN)
    image, name = make_image(BIG), f"{crane.host}/away/images/app:1"
    write_layout(tmp_path / "layout", image)
    crane.run("crane", "push", tmp_path / "layout", name)
    assert "PASS" in crane.run("crane", "validate", "--remote", name).upper()
    crane.run("crane", "pull", "--format=oci", name, tmp_path / "pulled")
    source = ("--src-tls-verify=false", f"docker://{name}")
    crane.call(program("skopeo"), "--insecure-policy", "copy", *source, f"oci:{tmp_path / 'copied'}:1")
    for folder in ("pulled", "copied"):
        for blob in image.blobs:
            stored = tmp_path / folder / "blobs" / "sha256" / hashlib.sha256(blob).hexdigest()
            assert stored.read_bytes() == bytes(blob)
    assert is_redirected(server, f"/{digest_of(image.blobs[1])}", 3)


def test_maven_resolves_from_the_bucket_itself(server: ServerProcess, tmp_path: Path) -> None:
    url = f"{server.url}/repositories/away/java"
    bench, user = MavenBench(tmp_path / "one", url), MavenBench(tmp_path / "other", url)
    try:
        jar = bench.jar(BIG)
        bench.deploy_file("maven-3.9", "com.example:elsewhere:1", jar)
        user.fetch("maven-3.9", "com.example:elsewhere:1")
    finally:
        stop_all()
    assert user.fetched("com.example", "elsewhere", "1", "elsewhere-1.jar") == jar.read_bytes()
    assert is_redirected(server, "/elsewhere-1.jar", 1)
