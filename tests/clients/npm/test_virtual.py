"""Node's clients publish to and install from a virtual repository, and print why something is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.configurations import hosted, proxy, virtual
from tests.support.container_clients import ok
from tests.support.http_client import HttpClient
from tests.support.npm_clients import NodeBench, Registry
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import running
from tests.support.upstreams.npm import NpmUpstream

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

POLICY = '{ minimum_release_age = { days = 3, exempt = ["quick-*"] }, reserved_names = ["acme-*"] }'
BOB = "bob keeps bees at home"

Bench = Callable[..., NodeBench]


@pytest.fixture(scope="module")
def upstream() -> Iterator[NpmUpstream]:
    with NpmUpstream() as registry:
        registry.add("public-one", "1.0.0")
        yield registry


@pytest.fixture(scope="module")
def bench(upstream: NpmUpstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Return a bench for the virtual repository, with the token of a user; bob may only read."""
    sections = (
        hosted("npm", "own"),
        proxy("npm", "mirror", upstream.url),
        virtual("npm", "all", "main/mirror", "main/own", publish_to="main/own", policy=POLICY),
    )
    configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + "".join(sections)
    with running(tmp_path_factory.mktemp("server"), configuration) as server:
        bob = {"username": "bob", "password": BOB, "email": "bob@example.org"}
        ok(HttpClient(f"{server.url}/api", (USER, PASSWORD)).post_json("/users", bob))

        def make(user: str = USER, password: str = PASSWORD) -> NodeBench:
            registry = Registry(server.url, "main/all")
            body = {"name": user, "password": password}
            token = registry.ask("PUT", f"-/user/org.couchdb.user:{user}", json=body).json()["token"]
            return NodeBench(tmp_path_factory.mktemp("bench"), registry, token)

        yield make


@pytest.mark.parametrize("client", ["npm-9", "npm-11", "pnpm", "yarn-1", "yarn-4", "bun"])
def test_published_package_is_installed_at_once_with_those_of_the_upstream(
    bench: Bench, upstream: NpmUpstream, client: str
) -> None:
    name, here = f"own-by-{client}", bench()
    upstream.add(name, "0.1.0")
    asked = 0
    for version in ("1.0.0", "1.1.0"):
        here.publish(client, here.package(name, version, dependencies={"public-one": "^1.0.0"}))
        asked = asked or upstream.count(upstream.path(name))  # npm looks at what there is before it publishes
        upstream.add(name, "99.0.0")
        project = here.project(f"app-{version}")
        here.install(client, project, name, "public-one")
        assert here.required(project, name, "public-one") == f"{name}@{version} public-one@1.0.0"
    assert upstream.count(upstream.path(name)) == asked


@pytest.mark.parametrize("client", ["npm-9", "npm-11"])
def test_permissions_and_rules_of_the_target_apply(bench: Bench, client: str) -> None:
    here, name = bench(), f"ruled-by-{client}"
    package = here.package(name)
    here.publish(client, package)
    printed = here.publish(client, package, status=1)
    assert "cannot publish over the previously published versions" in printed
    stranger = bench("bob", BOB)
    printed = stranger.publish(client, stranger.package(name, "2.0.0"), status=1)
    assert "403" in printed
    assert "main/own" in printed


@pytest.mark.parametrize("client", ["npm-9", "npm-11"])
def test_young_versions_are_hidden_and_their_files_refused_with_the_time(
    bench: Bench, upstream: NpmUpstream, client: str
) -> None:
    here, name = bench(), f"aging-by-{client}"
    young = (datetime.now(UTC) - timedelta(days=1)).isoformat().replace("+00:00", "Z")
    upstream.add(name, "1.0.0")
    upstream.add(name, "2.0.0", published=young)
    upstream.add(f"quick-by-{client}", "1.0.0", published=young)
    project = here.project("app")
    here.install(client, project, name, f"quick-by-{client}")
    assert here.required(project, name) == f"{name}@1.0.0"
    assert "2.0.0" in here.install(client, project, f"{name}@2.0.0", status=1)
    printed = here.install(client, project, f"{here.registry.url}{name}/-/{name}-2.0.0.tgz", status=1)
    assert "403" in printed
    assert "minimum_release_age" in printed
    assert "it will be served from 20" in printed


def test_reserved_names_are_not_found(bench: Bench, upstream: NpmUpstream) -> None:
    here = bench()
    upstream.add("acme-secret", "9.0.0")
    assert "404" in here.install("npm-11", here.project("app"), "acme-secret", status=1)
    assert not [each.path for each in upstream.requests() if "acme" in each.path]


@pytest.mark.parametrize("client", ["npm-9", "npm-11"])
def test_npm_prints_that_an_upstream_has_the_name(bench: Bench, upstream: NpmUpstream, client: str) -> None:
    name, here = f"taken-by-{client}", bench()
    upstream.add(name, "1.0.0")
    first = here.publish(client, here.package(name, "9.0.0"))
    assert f"an upstream of main/all has '{name}', too: from now on only what is published here is served" in first
    assert "an upstream" not in here.publish(client, here.package(name, "9.1.0"))
