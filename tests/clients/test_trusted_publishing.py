"""Clients that publish with the identity token of a pipeline, which they exchange themselves where they can."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from attrs import frozen

from tests.support.certificates import write_certificate
from tests.support.client_programs import client, run_client
from tests.support.configurations import hosted
from tests.support.container_clients import ContainerClients, host_of
from tests.support.images import make_image, write_layout
from tests.support.issuer import AUDIENCE, Issuer, issuer_lines, listening
from tests.support.npm_clients import NodeBench, Registry
from tests.support.python_index import PASSWORD, USER, PythonBench, PythonIndex
from tests.support.ruby_clients import NEWER, RubyBench
from tests.support.server_process import ServerProcess, running
from tests.support.timeouts import TIMEOUT_S

PUBLISHED_BY = "pipeline release.yml of acme/widget (forge)"
PUBLISHER = (
    '{ issuer = "forge", claims = { repository = "acme/*" }, packages = ["acme-*", "@acme/*"], '
    'actions = ["write", "overwrite"] }'
)


CIRCLE = "3a0a9a4e-0b3c-4d5e-8f60-718293a4b5c6"
OTHER_ISSUERS = f"""
auth.issuers.lab = {{ issuer = "https://gitlab.corp.example", audience = "{AUDIENCE}" }}
auth.issuers.circle = {{ issuer = "https://oidc.circleci.com/org/{CIRCLE}", audience = "{AUDIENCE}" }}
"""


@frozen
class Pipeline:
    """A server that speaks TLS, and the environment of a job whose forge is the issuer."""

    server: ServerProcess
    issuer: Issuer
    certificate: Path

    @property
    def environ(self) -> dict[str, str]:
        """The variables of a job of GitHub Actions, and those by which clients trust the server's certificate."""
        return {
            "GITHUB_ACTIONS": "true",
            "CI": "true",
            "ACTIONS_ID_TOKEN_REQUEST_URL": f"{self.issuer.url}/token?job=1",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "job",
            "SSL_CERT_FILE": str(self.certificate),
            "REQUESTS_CA_BUNDLE": str(self.certificate),
            "NPM_CONFIG_CAFILE": str(self.certificate),
        }

    def ask(self, method: str, path: str, **options: Any) -> Any:
        """The JSON that the server answers to the admin."""
        answer = requests.request(
            method, self.server.url + path, auth=(USER, PASSWORD), verify=self.certificate, timeout=TIMEOUT_S, **options
        )
        assert answer.ok, answer.text
        return answer.json()

    def exchange(self, repository: str) -> str:
        """A token for a repository, as a job gets it with curl."""
        body = {"token": self.issuer.token(), "repository": repository}
        answer = requests.post(
            f"{self.server.url}/api/auth/oidc", json=body, verify=self.certificate, timeout=TIMEOUT_S
        )
        assert answer.ok, answer.text
        text: str = answer.json()["token"]
        return text

    def publisher(self, repository: str, package: str, version: str) -> str:
        """Who has published a version, by the API."""
        found = self.ask("GET", f"/api/repository/find-id/{repository}")["repository_id"]
        path = f"/api/package/{found}/{package.replace('/', '%2f')}/versions/{version}"
        name: str = self.ask("GET", path)["publisher"]
        return name


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pipeline]:
    """A server with a repository of each format, which has a publisher."""
    folder = tmp_path_factory.mktemp("trusted")
    certificate, key = write_certificate(folder)
    line = f'config = {{ type = "Hosted", publishers = [{PUBLISHER}] }}'
    repositories = {"py": "python", "npm": "npm", "rb": "ruby", "images": "docker", "java": "maven"}
    with listening() as issuer:
        lines = "".join(hosted(kind, **{name: line}) for name, kind in repositories.items())
        head = f'bootstrap.admin.password = "{PASSWORD}"\ntls.cert = "{certificate}"\ntls.key = "{key}"\n'
        head += issuer_lines(issuer, kind="github") + OTHER_ISSUERS
        with running(folder, head + lines) as server:
            yield Pipeline(server, issuer, certificate)


@pytest.mark.shows("pipeline", by=("uv",))
def test_uv_publishes_without_credentials(pipeline: Pipeline, tmp_path: Path) -> None:
    bench, index = PythonBench(tmp_path), PythonIndex(pipeline.server.url, "main/py")
    files = [bench.wheel("acme-uv", "1.0"), bench.sdist("acme-uv", "1.0")]
    command = [client("uv"), "publish", "--trusted-publishing", "always", "--publish-url", index.legacy]
    bench.run(*command, *files, **pipeline.environ)
    assert pipeline.publisher("main/py", "acme-uv", "1.0") == PUBLISHED_BY
    printed = bench.run(*command, bench.wheel("other-uv", "1.0"), status=2, **pipeline.environ)
    assert "does not reach that far" in printed


@pytest.mark.shows("pipeline", by=("twine",))
def test_twine_uploads_with_a_minted_token(pipeline: Pipeline, tmp_path: Path) -> None:
    """Twine itself exchanges tokens for the public index only; the action that runs it does it for every index."""
    bench, index = PythonBench(tmp_path), PythonIndex(pipeline.server.url, "main/py")
    audience = pipeline.ask("GET", "/_/oidc/audience")["audience"]
    minted = pipeline.ask("POST", "/_/oidc/mint-token", json={"token": pipeline.issuer.token(audience=audience)})
    files = [bench.wheel("acme-twine", "1.0"), bench.sdist("acme-twine", "1.0")]
    command = [client("twine"), "upload", "--repository-url", index.legacy, "-u", "__token__", "-p", minted["token"]]
    bench.run(*command, *files, **pipeline.environ)
    assert pipeline.publisher("main/py", "acme-twine", "1.0") == PUBLISHED_BY


@pytest.mark.shows("pipeline")
@pytest.mark.parametrize(("npm", "package"), [("npm-11", "acme-node"), ("npm-12", "@acme/node")])
def test_npm_publishes_without_credentials(pipeline: Pipeline, tmp_path: Path, npm: str, package: str) -> None:
    registry = Registry(pipeline.server.url, "main/npm")
    bench = NodeBench(tmp_path, registry, None)
    environ = {**pipeline.environ, "NPM_ID_TOKEN": pipeline.issuer.token()}
    bench.run(npm, "publish", cwd=bench.package(package), **environ)
    assert pipeline.publisher("main/npm", package, "1.0.0") == PUBLISHED_BY


def test_npm_publishes_nothing_else(pipeline: Pipeline, tmp_path: Path) -> None:
    bench = NodeBench(tmp_path, Registry(pipeline.server.url, "main/npm"), None)
    environ = {**pipeline.environ, "NPM_ID_TOKEN": pipeline.issuer.token()}
    assert "ENEEDAUTH" in bench.run("npm-11", "publish", cwd=bench.package("other"), status=1, **environ)


def log_in(pipeline: Pipeline, folder: Path) -> NodeBench:
    """A folder for npm, whose user has logged in."""
    path = "/repositories/main/npm/-/user/org.couchdb.user:admin"
    token = pipeline.ask("PUT", path, json={"name": USER, "password": PASSWORD})["token"]
    return NodeBench(folder, Registry(pipeline.server.url, "main/npm"), token)


def trusted(pipeline: Pipeline, bench: NodeBench, name: str) -> dict[str, Any]:
    """The one configuration that npm lists for a package, with its claims and its permissions."""
    listed = bench.run("npm-12", "trust", "list", name, "--json", **pipeline.environ)
    found: dict[str, Any] = json.loads(listed)
    return found


def test_npm_trust_lets_a_pipeline_publish_a_package_that_is_new(pipeline: Pipeline, tmp_path: Path) -> None:
    bench, name = log_in(pipeline, tmp_path), "@pending/demo"
    given = ("--file", "release.yml", "--repo", "acme/pending", "--env", "release", "--allow-publish", "--yes")
    trust = ("npm-12", "trust", "github", name, *given)
    assert "Trust configuration created successfully" in bench.run(*trust, **pipeline.environ)
    assert "main/npm has this publisher" in bench.run(*trust, status=1, **pipeline.environ)
    found = trusted(pipeline, bench, name)
    assert found == {
        "id": found["id"],
        "type": "github",
        "file": "release.yml",
        "repository": "acme/pending",
        "environment": "release",
        "permissions": ["createPackage"],
    }
    ref = "acme/pending/.github/workflows/{}@refs/tags/v1"
    job = NodeBench(tmp_path / "job", bench.registry, None)

    def publish(version: str, file: str, status: int) -> str:
        token = pipeline.issuer.token(repository="acme/pending", workflow_ref=ref.format(file))
        return job.run(
            "npm-11",
            "publish",
            cwd=job.package(name, version),
            status=status,
            **{**pipeline.environ, "NPM_ID_TOKEN": token},
        )

    assert "ENEEDAUTH" in publish("1.0.0", "other.yml", 1)
    publish("1.0.1", "release.yml", 0)
    assert pipeline.publisher("main/npm", name, "1.0.1") == "pipeline release.yml of acme/pending (forge)"
    revoked = bench.run("npm-12", "trust", "revoke", name, "--id", found["id"], **pipeline.environ)
    assert "Revoked trusted configuration" in revoked
    assert "No trust configurations found" in bench.run("npm-12", "trust", "list", name, **pipeline.environ)
    assert "ENEEDAUTH" in publish("1.0.2", "release.yml", 1)


def test_npm_trust_of_other_forges_names_the_issuer_by_its_type(pipeline: Pipeline, tmp_path: Path) -> None:
    bench, uuid = log_in(pipeline, tmp_path), CIRCLE.replace("3a", "4b")
    lab = ("gitlab", "lab-demo", "--file", ".gitlab-ci.yml", "--project", "group/sub/demo", "--allow-stage-publish")
    bench.run("npm-12", "trust", *lab, "--yes", **pipeline.environ)
    found = trusted(pipeline, bench, "lab-demo")
    assert (found["file"], found["project"], found["permissions"]) == (
        ".gitlab-ci.yml",
        "group/sub/demo",
        ["createStagedPackage"],
    )
    ids = ("--project-id", uuid, "--pipeline-definition-id", uuid, "--vcs-origin", "github.com/acme/x")
    circle = ("circleci", "circle-demo", *ids, "--context-id", uuid, "--allow-publish", "--yes")
    bench.run("npm-12", "trust", *circle, "--org-id", CIRCLE, **pipeline.environ)
    found = trusted(pipeline, bench, "circle-demo")
    assert (found["orgId"], found["vcsOrigin"], found["contextIds"]) == (CIRCLE, "github.com/acme/x", [uuid])
    refused = bench.run("npm-12", "trust", *circle, "--org-id", uuid, status=1, **pipeline.environ)
    assert "accepts no identity tokens of circleci" in refused


@pytest.mark.shows("pipeline", by=("newer",))
def test_gem_pushes_with_an_exchanged_key(pipeline: Pipeline, tmp_path: Path) -> None:
    bench = RubyBench(tmp_path, NEWER, f"{pipeline.server.url}/repositories/main/rb", None)
    path = "/repositories/main/rb/api/v1/oidc/trusted_publisher/exchange_token"
    key = pipeline.ask("POST", path, json={"jwt": pipeline.issuer.token()})["rubygems_api_key"]
    gem = bench.build("acme-gem", "1.0")
    bench.gem("push", "--host", bench.url, gem, environ={**pipeline.environ, "GEM_HOST_API_KEY": key})
    assert pipeline.publisher("main/rb", "acme-gem", "1.0") == PUBLISHED_BY


@pytest.mark.shows("pipeline", by=("crane",))
def test_crane_pushes_with_an_exchanged_token(pipeline: Pipeline, tmp_path: Path) -> None:
    crane = ContainerClients(tmp_path, host_of(pipeline.server))
    crane.environ |= pipeline.environ
    crane.log_in("pipeline", pipeline.exchange("main/images"))
    write_layout(tmp_path / "layout", make_image("trusted"))
    crane.run("crane", "push", tmp_path / "layout", f"{crane.host}/main/images/acme-app:1")
    assert "1" in crane.run("crane", "ls", f"{crane.host}/main/images/acme-app")
    crane.run("crane", "push", tmp_path / "layout", f"{crane.host}/main/images/other:1", status=1)


def test_curl_deploys_an_artifact_with_an_exchanged_token(pipeline: Pipeline, tmp_path: Path) -> None:
    token = pipeline.exchange("main/py")
    bench = PythonBench(tmp_path)
    wheel = bench.wheel("acme-curl", "1.0")
    url = f"{pipeline.server.url}/repositories/main/py/acme-curl/1.0/{wheel.name}"
    run_client(
        ["curl", "--fail", "--cacert", pipeline.certificate, "-u", f"pipeline:{token}", "-T", wheel, url],
        environ=bench.environ,
        folder=tmp_path,
    )
    assert pipeline.publisher("main/py", "acme-curl", "1.0") == PUBLISHED_BY
