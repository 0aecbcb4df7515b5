"""Helm with chart repositories: published, found, pulled, verified, depended on, and through a proxy."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import frozen

from tests.support.client_programs import client, program
from tests.support.command_line import Program
from tests.support.configurations import PRIVATE, hosted, virtual
from tests.support.http_client import BOUNDARY, HttpClient, form_body
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess

pytestmark = pytest.mark.clients
GENERATIONS = ("helm", "helm-4")


@pytest.fixture(scope="module")
def configuration() -> str:
    return (
        'proxy.allow_private = ["127.0.0.1"]\n'
        + hosted("helm", "charts", private=PRIVATE)
        + virtual("helm", "all", "main/charts")
        + hosted("docker", "images")
    )


@frozen
class Helm:
    """One generation of helm, with folders of its own."""

    program: Path
    folder: Path
    url: str

    def __call__(self, *arguments: object, status: int = 0, data: str | None = None) -> str:
        """What it prints."""
        places = {f"HELM_{each}_HOME": str(self.folder / each) for each in ("CACHE", "CONFIG", "DATA")}
        environ = {**os.environ, **places, "HOME": str(self.folder), "GNUPGHOME": str(self.folder / "gpg")}
        done = subprocess.run(
            [self.program, *map(str, arguments)],
            cwd=self.folder, env=environ, input=data, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def at(self, name: str) -> str:
        """The address of a repository."""
        return f"{self.url}/repositories/main/{name}"

    def wire(self, name: str) -> HttpClient:
        """A client of a repository, with the admin's credentials."""
        return HttpClient(self.at(name), (USER, PASSWORD))

    def publish(self, name: str, version: str, repository: str = "charts", *options: object) -> Path:
        """Make, pack and send a chart, with its provenance if it is signed."""
        if not (self.folder / name).exists():
            self("create", name)
        self("package", name, "--version", version, *options)
        archive = self.folder / f"{name}-{version}.tgz"
        parts = [("chart", archive.name, archive.read_bytes())]
        if (provenance := Path(f"{archive}.prov")).exists():
            parts.append(("prov", provenance.name, provenance.read_bytes()))
        headers = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
        reply = self.wire(repository).ask("POST", "/api/charts", form_body(parts), headers)
        assert reply.status == 201, reply.text
        return archive


@pytest.fixture(params=GENERATIONS)
def helm(request: pytest.FixtureRequest, tmp_path: Path, server: ServerProcess) -> Helm:
    return Helm(client(request.param, "helm"), tmp_path, server.url)


@pytest.fixture
def named(helm: Helm) -> Callable[[str], str]:
    """Names that the other generation does not use."""
    return lambda text: f"{text}-{helm.program.parent.parent.name}"


@pytest.mark.shows("install", "search")
def test_charts_are_found_and_pulled(helm: Helm, named: Callable[[str], str]) -> None:
    name = named("found")
    for version in ("0.1.0", "1.0.0-rc.1", "v0.2.0", "0.3.0+b1"):
        archive = helm.publish(name, version)
    helm("repo", "add", "r", helm.at("charts"))
    helm("repo", "update")
    found = helm("search", "repo", f"r/{name}", "--versions", "--devel")
    assert [line.split()[1] for line in found.splitlines()[1:]] == ["1.0.0-rc.1", "0.3.0+b1", "v0.2.0", "0.1.0"]
    helm("pull", f"r/{name}")
    assert archive.read_bytes() == helm.wire("charts").get(f"/charts/{archive.name}").body
    (helm.folder / "pulled").mkdir()
    helm("pull", "--repo", helm.at("charts"), name, "--version", "0.1.0", "-d", "pulled", "--untar")
    assert (helm.folder / "pulled" / name / "Chart.yaml").exists()
    assert "kind: Service" in helm("template", "x", f"r/{name}")


def test_a_folder_is_packed_as_helm_does(helm: Helm, named: Callable[[str], str], server: ServerProcess) -> None:
    name = named("folder")
    helm("create", name)
    folder = helm.folder / name
    ignored = "*.tmp\n/notes/\n!*\n*.orig\n[a-b]?.txt\n"
    with (folder / ".helmignore").open("a") as file:
        file.write(ignored)
    for each in ("x.tmp", "notes/a", "in/notes/a", "templates/.hidden", "y.orig", "ab.txt", "cb.txt", "in/ab.txt"):
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        (folder / each).write_text("text\n")
    helm("package", name, "-d", "packed")
    with tarfile.open(helm.folder / "packed" / f"{name}-0.1.0.tgz") as archive:
        wanted = sorted(archive.getnames())
    program = Program(helm.folder / "program", server.url)
    program.folder.mkdir()
    program.log_in()
    [sent] = program.json("upload", "main/charts", folder)
    assert sent["packed"] == f"{name} 0.1.0"
    helm("pull", "--repo", helm.at("charts"), name)
    with tarfile.open(helm.folder / f"{name}-0.1.0.tgz") as archive:
        assert sorted(archive.getnames()) == wanted
    helm("lint", helm.folder / f"{name}-0.1.0.tgz")


@pytest.mark.shows("provenance")
def test_signed_charts_are_verified(helm: Helm, named: Callable[[str], str]) -> None:
    home = helm.folder / "gpg"
    home.mkdir(mode=0o700)

    def gpg(*arguments: str) -> bytes:
        options = [
            str(program("gpg")),
            "--homedir",
            str(home),
            "--batch",
            "--pinentry-mode",
            "loopback",
            "--passphrase",
            "",
        ]
        return subprocess.run([*options, *arguments], check=True, capture_output=True, timeout=60).stdout

    gpg("--quick-gen-key", "Tester <t@example.org>", "rsa2048", "sign", "never")
    (home / "public").write_bytes(gpg("--export"))
    (home / "secret").write_bytes(gpg("--export-secret-keys"))
    name = named("signed")
    helm.publish(name, "1.0.0", "charts", "--sign", "--key", "Tester", "--keyring", home / "secret")
    for repository in ("charts", "all"):
        folder = helm.folder / repository
        folder.mkdir()
        pull = ("pull", "--repo", helm.at(repository), name, "--verify", "--keyring", home / "public", "-d", folder)
        assert "Chart Hash Verified: sha256:" in helm(*pull)
        assert (folder / f"{name}-1.0.0.tgz.prov").exists()
    unsigned = named("unsigned")
    helm.publish(unsigned, "1.0.0")
    pull = ("pull", "--repo", helm.at("charts"), unsigned, "--verify", "--keyring", home / "public")
    assert "failed to fetch provenance" in helm(*pull, status=1)


def test_a_chart_depends_on_another_one(helm: Helm, named: Callable[[str], str]) -> None:
    name, parent = named("child"), named("parent")
    for version in ("0.1.0", "0.1.7", "0.2.0"):
        helm.publish(name, version)
    helm("create", parent)
    needs = f"dependencies:\n- name: {name}\n  version: ~0.1.0\n  repository: {helm.at('charts')}\n  alias: sub\n"
    with (helm.folder / parent / "Chart.yaml").open("a") as file:
        file.write(needs)
    helm("dependency", "update", parent)
    assert (helm.folder / parent / "charts" / f"{name}-0.1.7.tgz").exists()
    helm.publish(parent, "0.1.0")
    found = helm.wire("charts").get(f"/api/charts/{parent}/0.1.0").json
    assert found["dependencies"] == [
        {"name": name, "version": "~0.1.0", "repository": helm.at("charts"), "alias": "sub"}
    ]


@pytest.mark.shows("private")
def test_a_private_repository_wants_a_password(helm: Helm, named: Callable[[str], str]) -> None:
    name = named("secret")
    helm.publish(name, "1.0.0", "private")
    assert "401" in helm("repo", "add", "p", helm.at("private"), status=1)
    assert "401" in helm("repo", "add", "p", helm.at("private"), "--username", USER, "--password", "wrong", status=1)
    helm("repo", "add", "p", helm.at("private"), "--username", USER, "--password-stdin", data=PASSWORD)
    helm("pull", f"p/{name}")


@pytest.mark.shows("proxy")
def test_a_proxy_of_another_repository(helm: Helm, named: Callable[[str], str], server: ServerProcess) -> None:
    name, mirror = named("far"), named("mirror")
    helm.publish(name, "1.0.0")
    route = {"url": helm.at("charts"), "auth": {"username": USER, "password": PASSWORD}}
    body = {"name": mirror, "storage": "main", "format": "helm", "visibility": "public"}
    config = {"type": "Proxy", "cache_ttl": "0", "proxy": {"routes": [route]}}
    api = HttpClient(f"{server.url}/api", (USER, PASSWORD))
    assert api.post_json("/repository", {**body, "config": config}).status == 201
    helm("repo", "add", "m", helm.at(mirror))
    helm("pull", f"m/{name}")
    refused = helm("pull", "--repo", helm.at(mirror), name, "--version", "9.9.9", status=1)
    assert "9.9.9" in refused


def text_of(page: str) -> str:
    """A page without its tags."""
    return re.sub("<[^>]*>", "", page)


def test_the_pages_of_a_chart_and_of_its_image_say_how_to_get_the_other(
    helm: Helm, named: Callable[[str], str], server: ServerProcess
) -> None:
    name = named("both")
    helm("create", name)
    (helm.folder / name / "templates" / "shown.yaml").write_text("# shown\n")
    (helm.folder / name / "values.yaml").write_text("answer: 42 # <b>\n")
    archive = helm.publish(name, "1.0.0+b1")
    site = HttpClient(server.url, (USER, PASSWORD))
    page = HttpClient(server.url).get(f"/ui/repositories/main/charts/packages/{name}").text
    for each in ("values.yaml", "templates/shown.yaml", "helm push --plain-http", "answer: 42 # &lt;b&gt;"):
        assert each in text_of(page), each
    asked = f"/api/repository/main%2Fcharts/setup?package={name}&version=1.0.0%2Bb1"
    [commands] = [each["text"] for each in site.get(asked).json if each["title"] == "As an image of this server"]
    host = server.url.removeprefix("http://")
    helm("registry", "login", "--plain-http", host, "--username", USER, "--password-stdin", data=PASSWORD)
    archive.rename(helm.folder / "published.tgz")
    (helm.folder / archive.name).write_bytes((helm.folder / "published.tgz").read_bytes())
    for line in commands.splitlines():
        helm(*shlex.split(line)[1:])
    image = f"/ui/repositories/main/images/packages/charts%2F{name}/versions/1.0.0_b1"
    shown = text_of(HttpClient(server.url).get(image).text)
    command = f"helm pull --plain-http oci://{host}/main/images/charts/{name} --version 1.0.0+b1"
    assert command in shown
    assert "docker pull" not in shown
    (helm.folder / archive.name).unlink()
    helm(*command.split()[1:])
    assert (helm.folder / archive.name).read_bytes() == (helm.folder / "published.tgz").read_bytes()
