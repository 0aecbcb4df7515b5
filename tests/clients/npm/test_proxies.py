"""Node's clients install through a proxy of another registry: cold, warm, and while that is down."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support.configurations import hosted, proxy, virtual
from tests.support.http_client import HttpClient
from tests.support.npm_clients import CLIENTS, NPMS, PNPMS, NodeBench, Registry
from tests.support.npm_packages import make_bundle, make_publish, make_tarball
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import running
from tests.support.tcp_proxy import TcpProxy
from tests.support.upstreams.faults import HTML, corrupted, failing
from tests.support.upstreams.messages import Answer
from tests.support.upstreams.npm import NpmUpstream
from tests.support.verdaccio import verdaccio

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

TRUSTING = f"--require={Path(__file__).with_name('no_root_of_trust.cjs')}"  # see test_signatures

# The versions that are published of each package, and their dependencies.
TREE: dict[str, tuple[list[str], dict[str, str]]] = {
    "leaf": (["1.0.0", "1.1.0", "2.0.0-rc.1"], {}),
    "@sc/branch": (["1.0.0"], {"leaf": "^1.0.0"}),
    "digits-64": (["0.9.0", "0.10.0"], {"leaf": "1.0.0"}),
    "root": (["1.0.0"], {"@sc/branch": "^1.0.0", "digits-64": "*", "leaf": "^1.0.0"}),
}
JSON = "application/json"  # verdaccio reads no other type
WANTED, INSTALLED = ("root", "@sc/branch", "leaf"), "root@1.0.0 @sc/branch@1.0.0 leaf@1.1.0"


class Scene:
    """A server with a proxy of a registry, reached through ``line``, and a virtual repository with a hosted one."""

    def __init__(self, url: str, line: TcpProxy, make_folder: Callable[[], Path]) -> None:
        self.registry = Registry(url, "main/mirror")
        self.virtual = Registry(url, "main/all")
        self.line = line
        self._make_folder = make_folder

    def bench(self) -> NodeBench:
        """A bench with empty caches, whose only registry is the proxy."""
        return NodeBench(self._make_folder(), self.registry, None)

    def virtual_bench(self) -> NodeBench:
        """The same for the virtual repository, with an admin's token."""
        return NodeBench(self._make_folder(), self.virtual, self.virtual.token())

    def tarballs(self) -> int:
        """How many tarballs were requested of the registry."""
        return len(self.line.requests(".tgz"))


Mirror = Callable[[str], AbstractContextManager[Scene]]


@pytest.fixture
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Mirror:
    """Return a function that runs a server with a proxy of the registry at a URL, which is asked each time."""

    @contextmanager
    def run(url: str) -> Iterator[Scene]:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        with TcpProxy((parts.hostname, parts.port)).running() as line:
            sections = (
                'proxy.allow_private = ["127.0.0.1"]\n',
                proxy("npm", "mirror", f"http://{line.host}{parts.path}", cache_ttl="0"),
                hosted("npm", "own"),
                virtual("npm", "all", "main/own", "main/mirror", publish_to="main/own"),
            )
            with running(tmp_path_factory.mktemp("mirror"), "".join(sections)) as server:
                yield Scene(server.url, line, lambda: tmp_path_factory.mktemp("bench"))

    return run


def publish(where: HttpClient, name: str, version: str, **options: Any) -> None:
    tag = "next" if "-" in version else "latest"
    reply = where.put(
        f"/{name.replace('/', '%2f')}", make_publish(name, version, tag=tag, **options), Content_Type=JSON
    )
    assert reply.status == 201, reply


def publish_tree(where: HttpClient) -> None:
    for name, (versions, dependencies) in TREE.items():
        for version in versions:
            publish(where, name, version, dependencies=dependencies)


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpClient]:
    """A hosted repository of another server, with the packages."""
    with running(tmp_path_factory.mktemp("origin"), hosted("npm", "own")) as process:
        where = HttpClient(f"{process.url}/repositories/main/own", (USER, PASSWORD))
        publish_tree(where)
        yield where


def install(bench: NodeBench, client: str) -> Path:
    """Install the packages into a new project, and return it."""
    project = bench.project(f"app-{client}")
    bench.install(client, project, *WANTED)
    assert bench.required(project, *WANTED) == INSTALLED
    return project


@pytest.mark.shows("proxy")
@pytest.mark.parametrize("client", CLIENTS)
def test_install_cold_warm_and_without_the_upstream(mirror: Mirror, origin: HttpClient, client: str) -> None:
    with mirror(origin.url) as scene:
        install(scene.bench(), client)
        fetched = scene.tarballs()
        assert fetched == 5
        install(scene.bench(), client)
        assert scene.tarballs() == fetched
        scene.line.stop()
        bench = scene.bench()
        project = install(bench, client)
        if client in (*NPMS, *PNPMS):
            shutil.rmtree(project / "node_modules")
            command = ("ci",) if client in NPMS else ("install", "--frozen-lockfile")
            bench.run(client, *command, cwd=project)
            assert bench.required(project, "root") == "root@1.0.0"


@pytest.mark.parametrize("npm", ["npm-9", "npm-11"])
def test_lockfile_is_installed_by_a_proxy_that_knows_no_package(mirror: Mirror, origin: HttpClient, npm: str) -> None:
    with mirror(origin.url) as first:
        bench = first.bench()
        project = install(bench, npm)
        lock = (project / "package-lock.json").read_text()
    with mirror(origin.url) as scene:
        bench = scene.bench()
        (project / "package-lock.json").write_text(lock.replace(first.registry.url, scene.registry.url))
        shutil.rmtree(project / "node_modules")
        bench.run(npm, "ci", "--no-audit", cwd=project)
        assert bench.required(project, "root") == "root@1.0.0"
        assert scene.tarballs() == 5


@pytest.mark.parametrize("client", ["npm-11", "pnpm", "yarn-4", "bun"])
def test_new_version_is_installed_once_it_is_published(mirror: Mirror, origin: HttpClient, client: str) -> None:
    name = f"moving-{client}"
    publish(origin, name, "1.0.0")
    with mirror(origin.url) as scene:
        for version in ("1.0.0", "1.1.0"):
            bench = scene.bench()
            project = bench.project(f"moving-{version}")
            bench.install(client, project, name)
            assert bench.required(project, name) == f"{name}@{version}"
            if version == "1.0.0":
                publish(origin, name, "1.1.0")


@pytest.mark.parametrize("client", ["npm-9", "npm-11", "pnpm", "yarn-1", "yarn-4", "bun"])
def test_corrupted_tarball_fails_the_install_and_is_not_kept(mirror: Mirror, client: str) -> None:
    with NpmUpstream() as upstream:
        upstream.add("leaf", pad=200_000)
        path = upstream.tarball_path("leaf", "1.0.0")
        upstream.misbehave(path, corrupted, repeat=True)
        with mirror(upstream.url) as scene:
            bench = scene.bench()
            bench.environ["npm_config_fetch_retries"] = "0"
            with pytest.raises(pytest.fail.Exception, match="exited with"):
                bench.install(client, bench.project("corrupted"), "leaf")
            upstream.behave()
            bench = scene.bench()
            project = bench.project("mended")
            bench.install(client, project, "leaf")
            assert bench.required(project, "leaf") == "leaf@1.0.0"


@pytest.mark.shows("virtual")
@pytest.mark.parametrize("client", CLIENTS)
def test_own_packages_win_over_public_ones_of_their_name(mirror: Mirror, origin: HttpClient, client: str) -> None:
    name = f"internal-{client}"
    with mirror(origin.url) as scene:
        bench = scene.virtual_bench()
        bench.publish(client, bench.package(name, dependencies={"leaf": "^1.0.0"}))
        publish(origin, name, "9.0.0")
        asked = len(scene.line.requests(name))
        project = bench.project("mixed")
        bench.install(client, project, name, "leaf")
        assert bench.required(project, name, "leaf") == f"{name}@1.0.0 leaf@1.1.0"
        assert len(scene.line.requests(name)) == asked


@pytest.mark.parametrize("npm", ["npm-9", "npm-11"])
def test_own_packages_are_changed_through_a_virtual_repository(mirror: Mirror, origin: HttpClient, npm: str) -> None:
    name = f"changed-{npm}"
    with mirror(origin.url) as scene:
        bench = scene.virtual_bench()
        for version in ("1.0.0", "1.1.0"):
            bench.publish(npm, bench.package(name, version))
        bench.run(npm, "dist-tag", "add", f"{name}@1.0.0", "stable")
        bench.run(npm, "deprecate", f"{name}@1.0.0", "use another")
        bench.run(npm, "unpublish", f"{name}@1.1.0")
        document = scene.virtual.document(name)
        assert document["dist-tags"] == {"latest": "1.0.0", "stable": "1.0.0"}
        assert {version: each["deprecated"] for version, each in document["versions"].items()} == {
            "1.0.0": "use another"
        }
        bench.run(npm, "unpublish", name, "--force")
        assert "E404" in bench.run(npm, "view", name, status=1)


@pytest.mark.parametrize("npm", ["npm-9", "npm-11"])
def test_publish_to_a_proxy_is_refused_with_a_sentence(mirror: Mirror, origin: HttpClient, npm: str) -> None:
    with mirror(origin.url) as scene:
        bench = scene.bench()
        bench.log_in(scene.registry.token())
        printed = bench.publish(npm, bench.package(f"new-by-{npm}"), status=1)
        assert "405" in printed, printed
        assert "is a proxy" in printed, printed


def test_signatures_and_provenance_of_the_upstream_are_verified(mirror: Mirror, origin: HttpClient) -> None:
    tarball = make_tarball("proven", "1.0.0")
    publish(origin, "proven", "1.0.0", tarball=tarball, bundle=make_bundle("proven", "1.0.0", tarball))
    with mirror(origin.url) as scene:
        bench = scene.bench()
        project = bench.project("signed")
        bench.install("npm-11", project, "proven", "leaf")
        for upstream_is_up in (True, False):
            if not upstream_is_up:
                scene.line.stop()
            printed = bench.run("npm-11", "audit", "signatures", cwd=project, NODE_OPTIONS=TRUSTING)
            assert "2 packages have verified registry signatures" in printed
            assert "1 package has a verified attestation" in printed


def test_audit_and_search_go_through_a_proxy(mirror: Mirror, origin: HttpClient) -> None:
    with mirror(origin.url) as scene:
        bench = scene.bench()
        project = install(bench, "npm-11")
        # the upstream was given no advisories, so nothing was checked
        assert "no upstream of main/mirror answers audits" in bench.run("npm-11", "audit", cwd=project, status=1)
        found = json.loads(bench.run("npm-11", "search", "--json", "leaf", cwd=project))
        assert "leaf" in [each["name"] for each in found]


ADVISORY = {
    "id": 1094544,
    "url": "https://advisories.example/GHSA-vh95-rmgr-6w4m",
    "title": "It bites",
    "severity": "critical",
    "vulnerable_versions": "<1.2.0",
    "cwe": [],
    "cvss": {"score": 9.8, "vectorString": None},
}
BULK = "/-/npm/v1/security/advisories/bulk"


@pytest.mark.parametrize("client", ["npm-9", "npm-11", "pnpm", "pnpm-12", "yarn-4", "bun"])
def test_audits_find_what_the_upstream_knows_and_fail_with_it(mirror: Mirror, client: str) -> None:
    """The registry answers the bulk question only, as public ones do; pnpm before 11 asks about a tree."""
    audit = ("npm", "audit", "--all") if client == "yarn-4" else ("audit",)
    with NpmUpstream() as upstream, mirror(upstream.url) as scene:
        upstream.add("leaf")
        upstream.serve(BULK, json.dumps({"leaf": [ADVISORY]}).encode())
        bench = scene.bench()
        bench.environ |= {f"{name}_config_fetch_retries": "0" for name in ("npm", "pnpm")}  # pnpm 12 reads its own
        project = bench.project("audited")
        bench.install(client, project, "leaf")
        with pytest.raises(pytest.fail.Exception, match="exited with"):
            bench.run(client, *audit, cwd=project)
        assert "It bites" in bench.run(client, *audit, cwd=project, status=None)
        upstream.serve(BULK, b"{}")
        bench.run(client, *audit, cwd=project)
        for fault in (failing(500), HTML, Answer(410)):
            upstream.misbehave(BULK, fault, repeat=True)
            with pytest.raises(pytest.fail.Exception, match="exited with"):
                bench.run(client, *audit, cwd=project)


@pytest.mark.parametrize("client", ["npm-11", "pnpm", "yarn-4"])
def test_verdaccio_is_an_upstream(mirror: Mirror, tmp_path: Path, client: str) -> None:
    with verdaccio(tmp_path) as url:
        publish_tree(HttpClient(url))
        with mirror(url) as scene:
            install(scene.bench(), client)
            scene.line.stop()
            install(scene.bench(), client)
