"""
Clients at host names and path prefixes that stand for repositories.

The names do not exist in DNS: the server itself is the HTTP proxy of the clients, which then send it the whole address.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from attrs import frozen

from tests.support.client_programs import client, client_environment, run_client
from tests.support.conda_packages import make_installable
from tests.support.configurations import hosted
from tests.support.container_clients import ContainerClients
from tests.support.images import make_image, write_layout
from tests.support.maven_clients import MavenBench
from tests.support.npm_clients import NodeBench, Registry
from tests.support.python_index import PASSWORD, USER, PythonBench, pip_into
from tests.support.resident_java import stop_all
from tests.support.ruby_clients import NEWER, RubyBench
from tests.support.server_process import ServerProcess, running
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.clients

NAMES = """
[hosts]
"npm.corp.example" = "main/npm"
"pypi.corp.example" = "main/py"
"gems.corp.example" = "main/rb"
"maven.corp.example" = "main/java"
"images.corp.example" = "main/images"
"conda.corp.example" = "main/ch"
[aliases]
"/artifactory/api/npm/npm-all/" = "main/npm"
"/repository/pypi-all/" = "main/py"
"/api/packages/acme/rubygems/" = "main/rb"
"/artifactory/libs-release/" = "main/java"
"/v2/docker-local/" = "main/images"
"""
KINDS = {"npm": "npm", "py": "python", "rb": "ruby", "java": "maven", "images": "docker", "ch": "conda"}
UNBLOCKED = "<mirror><id>maven-default-http-blocker</id><mirrorOf>none</mirrorOf><url>http://none</url></mirror>"
LINES = 'visibility = "public"'


@frozen
class Names:
    """The server, which is the HTTP proxy of its clients."""

    server: ServerProcess

    @property
    def environ(self) -> dict[str, str]:
        """The variables by which clients use the proxy."""
        proxy = {"HTTP_PROXY": self.server.url, "http_proxy": self.server.url}
        return {**proxy, "NO_PROXY": "", "no_proxy": "", "NPM_CONFIG_NOPROXY": ""}

    def get(self, url: str) -> requests.Response:
        """The response to a GET."""
        return requests.get(url, proxies={"http": self.server.url}, timeout=TIMEOUT_S)

    def token(self) -> str:
        """An access token of the admin."""
        made = requests.post(
            f"{self.server.url}/api/user/token",
            json={"name": "test", "repositories": [{"repository": "main/*", "actions": ["read", "write"]}]},
            auth=(USER, PASSWORD),
            timeout=TIMEOUT_S,
        )
        text: str = made.json()["token"]
        return text


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Names]:
    """A server with a repository of each format that has a host name and a path prefix."""
    lines = f'bootstrap.admin.password = "{PASSWORD}"\n' + "".join(
        hosted(kind, **{name: LINES}) for name, kind in KINDS.items()
    )
    with running(tmp_path_factory.mktemp("names"), lines + NAMES) as server:
        yield Names(server)
    stop_all()


def npm_bench(names: Names, folder: Path, url: str) -> NodeBench:
    """A folder for npm whose registry is at an address, which ends with a slash."""
    registry = Registry(names.server.url, "main/npm")
    token = registry.token()
    registry.url = url
    bench = NodeBench(folder, registry, token)
    bench.environ |= names.environ
    return bench


@pytest.mark.shows("host", by=("npm-11",))
def test_npm_publishes_to_a_host_and_installs_from_it(names: Names, tmp_path: Path) -> None:
    bench = npm_bench(names, tmp_path, "http://npm.corp.example/")
    bench.publish("npm-11", bench.package("@acme/by-host"))
    project = bench.project("app")
    bench.install("npm-11", project, "@acme/by-host")
    assert bench.required(project, "@acme/by-host") == "@acme/by-host@1.0.0"
    [resolved] = [
        each["resolved"]
        for each in json.loads((project / "package-lock.json").read_text())["packages"].values()
        if "resolved" in each
    ]
    assert resolved == "http://npm.corp.example/@acme/by-host/-/by-host-1.0.0.tgz"


@pytest.mark.parametrize("npm", ["npm-11", "npm-12"])
def test_npm_installs_a_lockfile_with_the_addresses_of_another_server(names: Names, tmp_path: Path, npm: str) -> None:
    prefix, name = f"{names.server.url}/artifactory/api/npm/npm-all/", f"moved-{npm}"
    bench = npm_bench(names, tmp_path, prefix)
    bench.publish(npm, bench.package(name))
    project = bench.project("app")
    bench.install(npm, project, name)
    lock = project / "package-lock.json"
    assert f'"resolved": "{prefix}{name}/-/{name}-1.0.0.tgz"' in lock.read_text()
    # as it was written at that server: its name leads here now, and some clients have another registry already
    lock.write_text(lock.read_text().replace(names.server.url, "http://artifactory.corp.example"))
    shutil.rmtree(project / "node_modules")
    other = npm_bench(names, tmp_path / "other", f"{names.server.url}/repositories/main/npm/")
    options = []
    if npm == "npm-12":  # it fetches only what is below the address of its registry
        assert "EALLOWREMOTE" in other.run(npm, "ci", cwd=project, status=1)
        options = ["--replace-registry-host=http://artifactory.corp.example/artifactory/api/npm/npm-all/"]
    other.run(npm, "ci", *options, cwd=project)
    assert bench.required(project, name) == f"{name}@1.0.0"


@pytest.mark.shows("host", by=("uv", "pip"))
@pytest.mark.parametrize("place", ["http://pypi.corp.example", "SERVER/repository/pypi-all"], ids=["host", "prefix"])
def test_uv_publishes_and_pip_installs(names: Names, tmp_path: Path, place: str) -> None:
    bench, url = PythonBench(tmp_path), place.replace("SERVER", names.server.url)
    bench.environ |= names.environ
    name = f"by-{'host' if 'pypi.corp' in url else 'prefix'}"
    given = (client("uv"), "publish", "-u", USER, "-p", PASSWORD, "--trusted-publishing", "never")
    bench.run(*given, "--publish-url", f"{url}/legacy/", bench.wheel(name, "1.0"))
    python = bench.venv()
    trusted = ("--trusted-host", "pypi.corp.example", "--no-cache-dir")
    bench.run(*pip_into(python), "install", "--index-url", f"{url}/simple/", *trusted, name)
    assert bench.run(python, "-c", f"import importlib.metadata as m; print(m.version({name!r}))").strip() == "1.0"
    assert names.get(f"{url}/pypi/{name}/json").json()["info"]["version"] == "1.0", "as Dependabot asks"


@pytest.mark.shows("host", by=("newer",))
@pytest.mark.parametrize(
    "place", ["http://gems.corp.example", "SERVER/api/packages/acme/rubygems"], ids=["host", "prefix"]
)
def test_gem_pushes_and_installs(names: Names, tmp_path: Path, place: str) -> None:
    url = place.replace("SERVER", names.server.url)
    bench = RubyBench(tmp_path, NEWER, url, names.token())
    bench.environ |= names.environ
    name = f"by-{'host' if 'gems.corp' in url else 'prefix'}"
    bench.gem("push", "--host", url, bench.build(name, "1.0"))
    bench.gem("install", "--clear-sources", "--source", f"{url}/", name)
    assert f"{name} (1.0)" in bench.gem("list")


@pytest.mark.shows("host", by=("maven-3.9",))
@pytest.mark.parametrize(
    "place", ["http://maven.corp.example", "SERVER/artifactory/libs-release"], ids=["host", "prefix"]
)
def test_maven_deploys_and_resolves(names: Names, tmp_path: Path, place: str) -> None:
    url = place.replace("SERVER", names.server.url)
    bench = MavenBench(tmp_path, url)
    if "corp.example" in url:
        host, _, port = names.server.url.removeprefix("http://").partition(":")
        proxy = f"<proxies><proxy><protocol>http</protocol><host>{host}</host><port>{port}</port></proxy></proxies>"
        settings = bench.settings.read_text().replace("</localRepository>", f"</localRepository>{proxy}")
        # Maven refuses plain HTTP to other machines by a mirror of its own
        bench.settings.write_text(settings.replace("<mirrors>", f"<mirrors>{UNBLOCKED}"))
    coordinates = f"com.example.{'host' if 'maven.corp' in url else 'prefix'}:app:1.0"
    jar = bench.jar(coordinates)
    bench.deploy_file("maven-3.9", coordinates, jar)
    assert bench.dependencies("maven-3.9", coordinates)["app-1.0.jar"] == jar.read_bytes()


@pytest.mark.shows("host", by=("anaconda",))
def test_anaconda_uploads_and_conda_finds(names: Names, tmp_path: Path) -> None:
    file = tmp_path / "by-host-1.0-h0_0.conda"
    file.write_bytes(make_installable("by-host", "1.0", "h0_0", {"share/x.txt": b"x"}))
    folder = tmp_path / "home" / ".continuum" / "anaconda-client"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("url: http://conda.corp.example\n")
    environ = client_environment(
        tmp_path / "home",
        ANACONDA_CLIENT_FORCE_STANDALONE="1",
        OTEL_SDK_DISABLED="true",  # it reports to its makers otherwise
        XDG_CONFIG_DIRS=str(tmp_path / "none"),
        ANACONDA_API_TOKEN=names.token(),
    )
    command = [client("anaconda"), "upload", file]
    run_client(command, environ={**environ, **names.environ}, folder=tmp_path)
    assert "by-host-1.0-h0_0.conda" in names.get("http://conda.corp.example/noarch/repodata.json").text


@pytest.mark.shows("host", by=("crane",))
def test_crane_pushes_to_a_host_and_pulls_by_a_prefix(names: Names, tmp_path: Path) -> None:
    crane = ContainerClients(tmp_path, "images.corp.example")
    crane.environ |= names.environ
    crane.log_in(USER, PASSWORD)
    image = make_image("by host")
    write_layout(tmp_path / "layout", image)
    crane.run("crane", "push", "--insecure", tmp_path / "layout", "images.corp.example/app:1")
    assert crane.run("crane", "ls", "--insecure", "images.corp.example/app").split() == ["1"]
    assert crane.run("crane", "digest", "--insecure", "images.corp.example/app:1").strip() == image.digest
    host = names.server.url.removeprefix("http://")
    assert crane.run("crane", "digest", f"{host}/docker-local/app:1").strip() == image.digest
    assert crane.run("crane", "digest", f"{host}/main/images/app:1").strip() == image.digest
