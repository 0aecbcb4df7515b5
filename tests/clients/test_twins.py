"""Static twins of repositories, which nginx serves to clients of each format."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import requests

import pkgrepo
from pkgrepo.client.twins.folder import verify
from tests.support.client_programs import client, client_environment, make_venv, pip_into, program, run_client
from tests.support.conda_packages import make_installable
from tests.support.configurations import hosted
from tests.support.container_clients import ADMIN
from tests.support.container_tools import Tools
from tests.support.first_publishes import NAME, Publisher
from tests.support.forked_programs import run_pkgrepo
from tests.support.http_client import HttpClient
from tests.support.maven_clients import MavenBench
from tests.support.npm_clients import NodeBench, Registry
from tests.support.npm_packages import make_publish
from tests.support.ports import closed_port
from tests.support.ruby_clients import DEBIAN, RubyBench
from tests.support.s3_servers import BUCKET, KEY, S3Server, s3_server
from tests.support.server_process import ServerProcess
from tests.support.single_clients import BUILDS
from tests.support.timeouts import TIMEOUT_S, polled

pytestmark = pytest.mark.clients

CONFIG = hosted("npm", "private")
EXAMPLE = Path(pkgrepo.__file__).parent / "examples" / "twins" / "nginx.conf"
REPOSITORIES = ("py", "node", "java", "gems", "channel", *BUILDS, "images")
IN_BUCKET = ("py", "node", "gems", "channel", *BUILDS)
SCOPED = "@team/thing"
MAIN = """
daemon off;
{user}
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/twins.conf;
}}
"""


class Twins:
    """The twins of all repositories below ``folder``, at ``url``."""

    def __init__(self, server: ServerProcess, folder: Path, port: int) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}"
        self.server_url = server.url

    def export(self, name: str, *options: str) -> str:
        token = self.folder.with_name("token")
        command = ["export", f"main/{name}", str(self.folder / name), "--base-url", f"{self.url}/{name}", *options]
        return self.pkgrepo(*command, "--url", self.server_url, "--token-file", str(token))

    def export_to(self, s3: S3Server, name: str, *options: str, status: int = 0) -> str:
        token, bucket = self.folder.with_name("token"), f"{s3.endpoint}/{BUCKET}"
        command = ["export", f"main/{name}", f"s3://{BUCKET}/{name}", "--base-url", f"{bucket}/{name}", *options]
        return self.on_bucket(s3, *command, "--url", self.server_url, "--token-file", str(token), status=status)

    def on_bucket(self, s3: S3Server, *arguments: str, status: int = 0) -> str:
        keys = {"AWS_ACCESS_KEY_ID": KEY.id, "AWS_SECRET_ACCESS_KEY": KEY.secret, "AWS_ENDPOINT_URL": s3.endpoint}
        return self.pkgrepo(*arguments, status=status, **keys)

    def pkgrepo(self, *arguments: str, status: int = 0, **variables: str) -> str:
        folder = self.folder.parent
        done = run_pkgrepo(*arguments, environ=client_environment(folder / "home", **variables), folder=folder)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr


@pytest.fixture(scope="module")
def bucket(twins: Twins) -> Iterator[S3Server]:
    """A bucket that anyone may read, with twins of some repositories."""
    with s3_server(kind="moto") as s3:
        for name in IN_BUCKET:
            assert "0 removed" in twins.export_to(s3, name)
        s3.publish()
        yield s3


@pytest.fixture(params=["nginx", "bucket"])
def url(request: pytest.FixtureRequest, twins: Twins) -> str:
    """The address below which the twins are."""
    if request.param == "nginx":
        return twins.url
    s3: S3Server = request.getfixturevalue("bucket")
    return f"{s3.endpoint}/{BUCKET}"


@pytest.fixture(scope="module")
def twins(server: ServerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """Twins of a repository of each format behind nginx."""
    nginx, folder, port = program("/usr/sbin/nginx"), tmp_path_factory.mktemp("nginx"), closed_port()
    publisher = Publisher(server.url, ADMIN)
    list(publisher.publish_all())
    publisher.ask(
        "PUT",
        f"repositories/main/node/{SCOPED.replace('/', '%2f')}",
        data=make_publish(SCOPED, "1.0.0"),
        headers={"Content-Type": "application/json"},
    )
    publisher.ask(
        "PUT",
        "repositories/main/channel/noarch/tool-2.0-h0_0.conda",
        data=make_installable("tool", "2.0", "h0_0", {"share/tool.txt": b"x"}),
    )
    body = {
        "name": "twins",
        "scopes": ["api:read"],
        "repositories": [{"repository": "*", "actions": ["read", "admin"]}],
    }
    token = publisher.ask("POST", "api/user/token", json=body).json()["token"]
    (folder / "token").write_text(token)
    found = Twins(server, folder / "twins", port)
    for name in REPOSITORIES:
        assert "0 removed" in found.export(name)
    text = EXAMPLE.read_text().replace("listen 8080", f"listen 127.0.0.1:{port}")
    (folder / "twins.conf").write_text(text.replace("/srv/twins", str(folder / "twins")))
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=user))
    with subprocess.Popen([nginx, "-p", folder, "-c", folder / "nginx.conf"]) as process:

        def answers() -> bool:
            assert process.poll() is None, (folder / "error.log").read_text()
            with suppress(requests.ConnectionError):
                requests.get(found.url, timeout=TIMEOUT_S)
                return True
            return False

        try:
            polled(answers)
            yield found
        finally:
            process.terminate()
            process.wait(TIMEOUT_S)


@pytest.mark.shows("twin")
@pytest.mark.parametrize("name", ["pip", "uv"])
def test_python(url: str, tmp_path: Path, name: str) -> None:
    environ = client_environment(tmp_path / "home")
    python = make_venv(tmp_path / "venv", environ=environ)
    index = ["--index-url", f"{url}/py/simple/"]
    install = [*pip_into(python), "install"] if name == "pip" else [client("uv"), "pip", "install", "--python", python]
    run_client([*install, *index, NAME], environ=environ, folder=tmp_path)
    shown = run_client(
        [python, "-c", f"import importlib.metadata as m; print(m.version({NAME!r}))"], environ=environ, folder=tmp_path
    )
    assert shown.stdout.strip() == "1.0"


def test_python_pages_have_their_types(twins: Twins) -> None:
    for accept, type_ in (
        ("application/vnd.pypi.simple.v1+json, text/html;q=0.1", "application/vnd.pypi.simple.v1+json"),
        ("text/html", "text/html"),
        ("*/*", "text/html"),
    ):
        answer = requests.get(f"{twins.url}/py/simple/{NAME}/", headers={"Accept": accept}, timeout=TIMEOUT_S)
        assert (answer.status_code, answer.headers["Content-Type"], answer.headers["Vary"]) == (200, type_, "Accept")
    metadata = requests.get(
        f"{twins.url}/py/packages/{NAME}/1.0/{NAME}-1.0-py3-none-any.whl.metadata", timeout=TIMEOUT_S
    )
    assert metadata.text.startswith("Metadata-Version")


@pytest.mark.shows("twin", by=("npm-11",))
def test_npm(url: str, tmp_path: Path) -> None:
    registry = Registry(url, "")
    registry.url = f"{url}/node/"
    bench = NodeBench(tmp_path / "bench", registry, None)
    place = bench.project("app")
    bench.install("npm-11", place, NAME, SCOPED)
    lock = json.loads((place / "package-lock.json").read_text())["packages"]
    assert lock[f"node_modules/{SCOPED}"]["resolved"].startswith(f"{url}/node/{SCOPED}/-/")
    assert (place / "node_modules" / NAME / "package.json").exists()


@pytest.mark.shows("twin", by=("maven-3.9",))
def test_maven(twins: Twins, tmp_path: Path) -> None:
    bench = MavenBench(tmp_path / "bench", f"{twins.url}/java", None)
    bench.fetch("maven-3.9", f"com.example:{NAME}:1.0:pom")
    assert b"com.example" in bench.fetched("com.example", NAME, "1.0", f"{NAME}-1.0.pom")


@pytest.mark.shows("twin", by=("debian",))
def test_gem_and_bundle(url: str, tmp_path: Path) -> None:
    bench = RubyBench(tmp_path, DEBIAN, f"{url}/gems", None)
    assert f"Successfully installed {NAME}-1.0.0" in bench.gem(
        "install", NAME, "--clear-sources", "--source", f"{bench.url}/"
    )
    bench.write_gemfile(NAME)
    bench.bundle("lock")
    assert f"{NAME} (1.0.0)" in bench.locked()


@pytest.mark.shows("twin", by=("rattler",))
def test_conda(url: str, tmp_path: Path) -> None:
    script = Path(__file__).with_name("conda") / "rattler_client.py"
    arguments = {
        "channel": f"{url}/channel",
        "specs": ["tool"],
        "prefix": str(tmp_path / "env"),
        "cache": str(tmp_path / "cache"),
    }
    command = [client("rattler", "python"), script, json.dumps(arguments)]
    done = run_client(command, environ=client_environment(tmp_path / "home"), folder=tmp_path)
    assert json.loads(done.stdout.splitlines()[-1]) == ["tool-2.0-h0_0.conda"]
    assert (tmp_path / "env/share/tool.txt").read_bytes() == b"x"


@pytest.mark.parametrize("name", BUILDS)
def test_crates_modules_charts_and_files(url: str, tmp_path: Path, name: str) -> None:
    BUILDS[name](f"{url}/{name}", tmp_path)


@pytest.mark.shows("twin", by=("skopeo",))
def test_images(twins: Twins, tmp_path: Path) -> None:
    tools = Tools(tmp_path, tmp_path / "runroot")
    tools.skopeo("copy", f"oci:{twins.folder}/images/{NAME}:v1", f"dir:{tmp_path}/copied")
    assert (tmp_path / "copied" / "manifest.json").exists()


def test_a_changed_byte_and_another_key_are_found(server: ServerProcess, twins: Twins, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text(HttpClient(server.url).get("/api/system/twin-key").json["key"])
    for name in REPOSITORIES:
        manifest, problems = verify(twins.folder / name, key.read_bytes())
        assert (manifest.repository, problems) == (f"main/{name}", [])
    python = twins.folder / "py"
    assert "files are sound" in twins.pkgrepo("twin", "verify", str(python), "--key", str(key))
    file = next(python.rglob("*.whl"))
    whole = file.read_bytes()
    file.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
    assert "has other bytes" in twins.pkgrepo("twin", "verify", str(python), "--key", str(key), status=1)
    file.write_bytes(whole)


def test_changed_and_missing_objects_are_found_and_replaced(twins: Twins) -> None:
    with s3_server() as s3:
        assert "--no-addresses" in twins.export_to(s3, "py", status=1)
        twins.export_to(s3, "py", "--no-addresses")
        wheel = next((s3.objects / "py").rglob("*.whl"))
        whole = wheel.read_bytes()
        wheel.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        (s3.objects / "py" / "simple" / "index.html").unlink()
        found = twins.on_bucket(s3, "twin", "verify", f"s3://{BUCKET}/py", status=1)
        assert f"{wheel.name} has other bytes" in found
        assert "simple/index.html is missing" in found
        twins.export_to(s3, "py", "--no-addresses", "--renew")
        assert "files are sound" in twins.on_bucket(s3, "twin", "verify", f"s3://{BUCKET}/py")
        assert wheel.read_bytes() == whole
        lock = s3.objects / "py" / ".twin" / "lock"
        assert not lock.exists()
        assert s3._put(f"{BUCKET}/py/.twin/lock", b"builder, process 12, 0123456789abcdef") == 200
        refused = twins.export_to(s3, "py", "--no-addresses", status=5)
        assert "another process (builder, process 12) writes the twin" in refused
        os.utime(lock, (1, 1))  # it was killed long ago
        assert "0 were written" in twins.export_to(s3, "py", "--no-addresses")
        assert not lock.exists()


def test_objects_have_the_types_of_the_server(twins: Twins, bucket: S3Server) -> None:
    for path, type_ in (
        (f"py/simple/{NAME}/", "text/html"),
        (f"py/simple/{NAME}/index.json", "application/vnd.pypi.simple.v1+json"),
        (f"node/{NAME}", "application/json"),
        ("gems/specs.4.8.gz", "application/octet-stream"),
    ):
        answer = requests.get(f"{bucket.endpoint}/{BUCKET}/{path}", timeout=TIMEOUT_S)
        assert (path, answer.status_code, answer.headers["Content-Type"].partition(";")[0]) == (path, 200, type_)
        assert "Content-Encoding" not in answer.headers
    assert "of which 0 were written and 0 removed" in twins.export_to(bucket, "channel")
    assert "is in the twin at py/" in twins.on_bucket(
        bucket, "export", "main/py", f"s3://{BUCKET}/py/inner", "--url", twins.server_url, status=5
    )
