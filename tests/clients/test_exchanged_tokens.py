"""
Clients that know nothing of identity tokens publish with the token that a job exchanges for them by a request.

Each publishes what the publisher names, and is refused what it does not name.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from attrs import frozen

from tests.support.client_programs import ROOT, client, client_environment, run_client
from tests.support.conda_packages import make_installable
from tests.support.configurations import hosted
from tests.support.container_clients import ContainerClients, host_of
from tests.support.container_daemons import Docker, dockerd
from tests.support.container_tools import Tools
from tests.support.issuer import Issuer, issuer_lines, listening
from tests.support.maven_clients import MavenBench
from tests.support.python_index import PASSWORD, USER
from tests.support.resident_java import stop_all
from tests.support.server_process import ServerProcess, running
from tests.support.timeouts import TIMEOUT_S

pytestmark = pytest.mark.clients

PUBLISHER = '{ issuer = "forge", claims = { repository = "acme/*" }, packages = ["acme*"], actions = ["write"] }'
RATTLER = ROOT / "tests" / "clients" / "conda" / "rattler_client.py"
PUBLISHED_BY = "pipeline release.yml of acme/widget (forge)"


@frozen
class Job:
    """A server that accepts the tokens of an issuer."""

    server: ServerProcess
    issuer: Issuer

    def exchange(self, repository: str) -> str:
        """A token for a repository."""
        body = {"token": self.issuer.token(), "repository": repository}
        answer = requests.post(f"{self.server.url}/api/auth/oidc", json=body, timeout=TIMEOUT_S)
        assert answer.ok, answer.text
        text: str = answer.json()["token"]
        return text

    def publishers(self, repository: str) -> set[str]:
        """Who has published what is in a repository."""
        found = requests.get(
            f"{self.server.url}/api/activity?kind=publish&limit=100", auth=(USER, PASSWORD), timeout=TIMEOUT_S
        ).json()
        return {each["actor"] for each in found["items"] if each["repository"] == repository}


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Job]:
    """A server with repositories whose publisher is for packages that begin with acme."""
    line = f'config = {{ type = "Hosted", publishers = [{PUBLISHER}] }}'
    repositories = {"java": "maven", "ch": "conda", "images": "docker"}
    with listening() as issuer:
        lines = "".join(hosted(kind, **{name: line}) for name, kind in repositories.items())
        lines = f'bootstrap.admin.password = "{PASSWORD}"\n{issuer_lines(issuer)}{lines}'
        with running(tmp_path_factory.mktemp("exchanged"), lines) as server:
            yield Job(server, issuer)
    stop_all()


@pytest.mark.shows("pipeline", by=("maven-3.9",))
def test_maven_deploys(job: Job, tmp_path: Path) -> None:
    url = f"{job.server.url}/repositories/main/java"
    bench = MavenBench(tmp_path, url, ("pipeline", job.exchange("main/java")))
    jar = bench.jar("acme")
    bench.deploy_file("maven-3.9", "acme.tools:app:1.0", jar)
    assert bench.dependencies("maven-3.9", "acme.tools:app:1.0")["app-1.0.jar"] == jar.read_bytes()
    assert "403" in bench.deploy_file("maven-3.9", "com.evil:app:1.0", jar, status=1)


@pytest.mark.shows("pipeline", by=("rattler", "anaconda"))
def test_rattler_build_and_anaconda_upload(job: Job, tmp_path: Path) -> None:
    url, token = f"{job.server.url}/repositories/main/ch", job.exchange("main/ch")
    environ = client_environment(tmp_path / "home")

    def package(name: str) -> Path:
        file = tmp_path / f"{name}-1.0-h0_0.conda"
        file.write_bytes(make_installable(name, "1.0", "h0_0", {f"share/{name}.txt": b"x"}))
        return file

    def rattler(name: str, status: int) -> str:
        given = {"form": "prefix", "url": url, "token": token, "files": [str(package(name))]}
        command = [client("rattler", "python"), RATTLER, json.dumps(given)]
        return run_client(command, environ=environ, folder=tmp_path, status=status).stdout

    def anaconda(name: str, status: int) -> str:
        folder = tmp_path / "home" / ".continuum" / "anaconda-client"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text(f"url: {url}\n")
        more = {
            "ANACONDA_CLIENT_FORCE_STANDALONE": "1",
            "OTEL_SDK_DISABLED": "true",  # it reports to its makers otherwise
            "XDG_CONFIG_DIRS": str(tmp_path / "none"),
            "ANACONDA_API_TOKEN": token,
            "COLUMNS": "200",
        }
        command = [client("anaconda"), "upload", package(name)]
        return run_client(command, environ={**environ, **more}, folder=tmp_path, status=status).stdout

    rattler("acme-rattler", 0)
    rattler("evil-rattler", 1)
    assert "Upload complete" in anaconda("acme-anaconda", 0)
    anaconda("evil-anaconda", 1)
    names = set(
        requests.get(f"{url}/noarch/repodata.json", auth=(USER, PASSWORD), timeout=TIMEOUT_S).json()["packages.conda"]
    )
    assert names == {"acme-rattler-1.0-h0_0.conda", "acme-anaconda-1.0-h0_0.conda"}


@pytest.mark.shows("pipeline", by=("oras",))
def test_oras_and_helm_push(job: Job, tmp_path: Path) -> None:
    clients = ContainerClients(tmp_path, host_of(job.server))
    clients.log_in("pipeline", job.exchange("main/images"))
    (tmp_path / "file.txt").write_text("text")
    clients.run("oras", "push", "--plain-http", f"{clients.host}/main/images/acme/text:1", "file.txt")
    refused = clients.run("oras", "push", "--plain-http", f"{clients.host}/main/images/evil:1", "file.txt", status=1)
    assert "DENIED" in refused.upper() or "403" in refused
    clients.run("helm", "create", "acme-chart")
    clients.run("helm", "package", "acme-chart")
    clients.run("helm", "push", "--plain-http", "acme-chart-0.1.0.tgz", f"oci://{clients.host}/main/images")
    clients.run(
        "helm", "push", "--plain-http", "acme-chart-0.1.0.tgz", f"oci://{clients.host}/main/images/evil", status=1
    )


@pytest.mark.shows("pipeline", by=("docker", "skopeo"))
def test_docker_and_skopeo_push(job: Job, tmp_path: Path) -> None:
    host, token = host_of(job.server), job.exchange("main/images")
    with dockerd() as daemon:
        docker = Docker(tmp_path, host, daemon)
        docker("login", "--username", "pipeline", "--password", token, host)
        docker("push", docker.make("main/images/acme/built:1", "built"))
        docker("push", docker.make("main/images/evil/built:1", "evil"), status=1)
    with tempfile.TemporaryDirectory(prefix="p") as runroot:  # podman accepts paths of at most 50 characters
        tools = Tools(tmp_path, Path(runroot))
        tools.push("copied", f"{host}/main/images/acme/copied:1", f"pipeline:{token}")
        tools.push("copied", f"{host}/main/images/evil/copied:1", f"pipeline:{token}", status=1)
    for name, status in {"acme/built": 200, "acme/copied": 200, "evil/built": 404, "evil/copied": 404}.items():
        address = f"{job.server.url}/v2/main/images/{name}/tags/list"
        assert requests.get(address, auth=(USER, PASSWORD), timeout=TIMEOUT_S).status_code == status


def test_a_token_is_for_the_repository_and_the_actions_that_it_was_exchanged_for(job: Job) -> None:
    token = job.exchange("main/java")
    place = f"{job.server.url}/repositories/main"
    auth = ("pipeline", token)
    assert requests.put(f"{place}/java/acme/x/1/x-1.jar", b"1", auth=auth, timeout=TIMEOUT_S).status_code == 201
    assert requests.delete(f"{place}/java/acme/x/1/x-1.jar", auth=auth, timeout=TIMEOUT_S).status_code == 403
    assert requests.put(f"{place}/java/acme/x/1/x-1.jar", b"2", auth=auth, timeout=TIMEOUT_S).status_code in (403, 409)
    conda = make_installable("acme-x", "1.0", "0", {})
    refused = requests.put(f"{place}/ch/noarch/acme-x-1.0-0.conda", conda, auth=auth, timeout=TIMEOUT_S)
    assert refused.status_code == 403, refused.text
