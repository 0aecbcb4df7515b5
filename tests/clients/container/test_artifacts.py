"""oras and helm: artifacts and charts in a container repository."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.container_clients import ADMIN, ContainerClients, host_of, push_image
from tests.support.http_client import HttpClient
from tests.support.images import make_image, write_layout
from tests.support.server_process import ServerProcess

CONFIG = hosted("docker", "images", "copies")
REPORT = "application/vnd.example.report.v1"
CHART = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"


class Artifacts(ContainerClients):
    """oras and helm, with the repository that they push to."""

    @property
    def name(self) -> str:
        return f"{self.host}/main/images"

    def oras(self, *arguments: str | Path, status: int | None = 0) -> str:
        return self.run("oras", *arguments, status=status)

    def helm(self, *arguments: str | Path, status: int | None = 0) -> str:
        return self.run("helm", *arguments, status=status)

    def write_file(self, name: str, content: str) -> Path:
        (self.folder / name).write_text(content)
        return self.folder / name

    def package(self, version: str) -> Path:
        """Make a packed chart named "app"."""
        self.helm("create", "app")
        self.helm("package", "app", "--version", version)
        return self.folder / f"app-{version}.tgz"


@pytest.fixture
def clients(tmp_path: Path, server: ServerProcess) -> Artifacts:
    """oras and helm, logged in as the admin."""
    made = Artifacts(tmp_path, host_of(server))
    made.log_in(*ADMIN)
    return made


@pytest.mark.shows("publish", "install", by=("oras",))
def test_oras_pushes_files_and_pulls_them(clients: Artifacts, wire: HttpClient) -> None:
    clients.write_file("one.txt", "first")
    clients.write_file("two.json", "{}")
    name = f"{clients.name}/files:v1"
    kinds = ["one.txt:text/plain", "two.json:application/json"]
    clients.oras("push", "--plain-http", "--artifact-type", REPORT, name, *kinds)
    manifest = wire.get("/v2/main/images/files/manifests/v1").json
    assert manifest["artifactType"] == REPORT
    assert [each["mediaType"] for each in manifest["layers"]] == ["text/plain", "application/json"]
    clients.oras("pull", "--plain-http", "-o", clients.folder / "pulled", name)
    assert (clients.folder / "pulled" / "one.txt").read_text() == "first"
    assert (clients.folder / "pulled" / "two.json").read_text() == "{}"
    assert clients.oras("repo", "tags", "--plain-http", f"{clients.name}/files").split() == ["v1"]
    clients.oras("tag", "--plain-http", name, "v2", "v3")
    assert clients.oras("repo", "tags", "--plain-http", f"{clients.name}/files").split() == ["v1", "v2", "v3"]


def test_oras_attaches_to_an_image_and_finds_it_again(clients: Artifacts, wire: HttpClient) -> None:
    image, name = make_image("subject"), f"{clients.name}/subject"
    push_image(wire, "main/images/subject", image, "v1")
    clients.write_file("report.json", '{"found": 0}')
    clients.oras("attach", "--plain-http", "--artifact-type", REPORT, f"{name}:v1", "report.json:application/json")
    clients.oras("attach", "--plain-http", "--artifact-type", "text/note", f"{name}:v1", "-a", "by=ada")

    def discover(*arguments: str) -> dict[str, str]:
        """Return type and digest of each attached artifact."""
        shown = clients.oras("discover", "--plain-http", "--format", "json", *arguments, f"{name}:v1")
        return {each["artifactType"]: each["digest"] for each in json.loads(shown)["referrers"]}

    found = discover()
    assert sorted(found) == [REPORT, "text/note"]
    assert discover("--artifact-type", REPORT) == {REPORT: found[REPORT]}
    tags = wire.get("/v2/main/images/subject/tags/list").json["tags"]
    assert tags == ["v1"], "a server that knows referrers gets no tag for them"
    clients.oras("pull", "--plain-http", "-o", clients.folder / "attached", f"{name}@{found[REPORT]}")
    assert (clients.folder / "attached" / "report.json").read_text() == '{"found": 0}'
    clients.oras("manifest", "delete", "--plain-http", "--force", f"{name}@{found['text/note']}")
    assert list(discover()) == [REPORT]


def test_oras_copies_an_image_with_its_attached_artifacts(clients: Artifacts, wire: HttpClient) -> None:
    image = make_image("with friends")
    push_image(wire, "main/images/from", image, "v1")
    clients.write_file("report.json", "{}")
    source, target = f"{clients.name}/from:v1", f"{clients.host}/main/copies/to:v1"
    clients.oras("attach", "--plain-http", "--artifact-type", REPORT, source, "report.json")
    clients.oras("copy", "-r", "--from-plain-http", "--to-plain-http", source, target)
    assert wire.get("/v2/main/copies/to/manifests/v1").body == image.manifest
    listed = wire.get(f"/v2/main/copies/to/referrers/{image.digest}").json["manifests"]
    assert [each["artifactType"] for each in listed] == [REPORT]
    layout = write_layout(clients.folder / "layout", make_image("from a layout"))
    clients.oras("copy", "--from-oci-layout", "--to-plain-http", f"{layout}:v1", f"{clients.name}/layout:v1")
    assert wire.get("/v2/main/images/layout/manifests/v1").body == make_image("from a layout").manifest


def test_oras_without_a_login_reads_only_public_repositories(clients: Artifacts) -> None:
    clients.write_file("one.txt", "first")
    clients.oras("push", "--plain-http", f"{clients.name}/public:v1", "one.txt")
    clients.log_out()
    clients.oras("pull", "--plain-http", "-o", clients.folder / "pulled", f"{clients.name}/public:v1")
    refused = clients.oras("push", "--plain-http", f"{clients.name}/public:v2", "one.txt", status=1)
    assert "authentication required" in refused.lower()
    wrong = ("login", "--plain-http", "-u", ADMIN[0], "-p", "wrong", clients.host)
    assert "incorrect username or password" in clients.oras(*wrong, status=1)
    assert "Login Succeeded" in clients.oras("login", "--plain-http", "-u", ADMIN[0], "-p", ADMIN[1], clients.host)
    shown = clients.oras("push", "--plain-http", f"{clients.name}/public:v1", "one.txt", "-a", "x=y", status=1)
    assert "tag v1 already exists" in shown


def test_helm_pushes_a_chart_and_pulls_it(clients: Artifacts, wire: HttpClient) -> None:
    chart = clients.package("1.2.3+build.4")
    charts = f"oci://{clients.name}/charts"
    assert "Digest: sha256:" in clients.helm("push", "--plain-http", chart, charts)
    manifest = wire.get("/v2/main/images/charts/app/manifests/1.2.3_build.4").json
    assert [each["mediaType"] for each in manifest["layers"]] == [CHART]
    assert "version: 1.2.3+build.4" in clients.helm("show", "chart", "--plain-http", f"{charts}/app")
    pulled = clients.folder / "pulled"
    pulled.mkdir()
    for version in ("--version=1.2.3+build.4", "--version=>0.1", ""):
        clients.helm("pull", "--plain-http", *filter(None, [version]), "-d", pulled, f"{charts}/app")
        assert (pulled / chart.name).read_bytes() == chart.read_bytes()
        (pulled / chart.name).unlink()


def test_helm_pulls_the_newest_matching_version(clients: Artifacts) -> None:
    charts = f"oci://{clients.name}/several"
    for version in ("1.0.0", "1.10.0", "2.0.0-beta.1"):
        clients.helm("push", "--plain-http", clients.package(version), charts)
    for version, expected in (("^1", "1.10.0"), ("1.0.0", "1.0.0"), (">=2.0.0-0", "2.0.0-beta.1")):
        shown = clients.helm("show", "chart", "--plain-http", f"--version={version}", f"{charts}/app")
        assert f"version: {expected}\n" in shown


def test_helm_logs_in(clients: Artifacts) -> None:
    clients.log_out()
    chart, charts = clients.package("1.0.0"), f"oci://{clients.name}/logins"
    assert "UNAUTHORIZED" in clients.helm("push", "--plain-http", chart, charts, status=1).upper()
    login = ("registry", "login", "--plain-http", "-u", ADMIN[0], "-p")
    assert "incorrect username or password" in clients.helm(*login, "wrong", clients.host, status=1)
    clients.helm(*login, ADMIN[1], clients.host)
    clients.helm("push", "--plain-http", chart, charts)
