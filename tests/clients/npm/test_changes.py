"""npm's commands that change published packages, and the resulting output of clients."""

from __future__ import annotations

import itertools
import json

import pytest

from tests.support.container_clients import ok
from tests.support.http_client import HttpClient
from tests.support.npm_clients import ENDS, NPMS, PNPMS, NodeBench, Registry
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]


@pytest.mark.parametrize("client", [*ENDS, *PNPMS])
def test_tags_are_added_listed_and_removed(bench: NodeBench, client: str) -> None:
    name = f"@tagged/{client}"
    for version in ("1.0.0", "1.1.0"):
        bench.publish(client, bench.package(name, version))
    bench.run(client, "dist-tag", "add", f"{name}@1.0.0", "stable")
    assert bench.run(client, "dist-tag", "ls", name).split() == ["latest:", "1.1.0", "stable:", "1.0.0"]
    project = bench.project(f"tagged-{client}")
    bench.install(client, project, f"{name}@stable")
    assert bench.required(project, name) == f"{name}@1.0.0"
    bench.run(client, "dist-tag", "rm", name, "stable")
    assert bench.run(client, "dist-tag", "ls", name).split() == ["latest:", "1.1.0"]
    bench.run(client, "dist-tag", "rm", name, "latest", status=1)
    bench.run(client, "dist-tag", "add", f"{name}@1.0.0", "1.x", status=1)


@pytest.mark.shows("yank")
@pytest.mark.parametrize("client", [*ENDS, *PNPMS])
def test_a_deprecation_is_printed_until_it_is_removed(bench: NodeBench, registry: Registry, client: str) -> None:
    name = f"deprecated-{client}"
    for version in ("1.0.0", "1.1.0"):
        bench.publish("npm-11", bench.package(name, version))
    bench.run(client, "deprecate", f"{name}@1.0.0", "it squeaks")
    versions = registry.document(name)["versions"]
    assert [versions[each].get("deprecated") for each in ("1.0.0", "1.1.0")] == ["it squeaks", None]
    project = bench.project(f"deprecated-{client}")
    assert "it squeaks" in bench.install("npm-11", project, f"{name}@1.0.0")
    taken_back = ("undeprecate", f"{name}@1.0.0") if client == "pnpm-12" else ("deprecate", f"{name}@1.0.0", "")
    bench.run(client, *taken_back)
    assert "deprecated" not in registry.document(name)["versions"]["1.0.0"]


@pytest.mark.parametrize(
    ("client", "name"), list(zip([*NPMS, *PNPMS], itertools.cycle(["shrinking-{}", "@shrinking/{}"])))
)
def test_a_version_is_unpublished_and_then_the_package(
    bench: NodeBench, registry: Registry, client: str, name: str
) -> None:
    name = name.format(client)
    for version in ("1.0.0", "1.1.0"):
        bench.publish(client, bench.package(name, version))
    bench.run(client, "unpublish", f"{name}@1.1.0")
    document = registry.document(name)
    assert (list(document["versions"]), document["dist-tags"]) == (["1.0.0"], {"latest": "1.0.0"})
    bench.run(client, "unpublish", name, "--force")
    assert "404" in bench.run(client, "view", name, status=1)
    again = bench.publish(client, bench.folder / f"package-{name.replace('/', '-')}-1.0.0", status=1)
    assert "cannot publish over" in again.lower()


@pytest.mark.parametrize("action", ["block", "quarantine"])
@pytest.mark.parametrize("client", [*NPMS, *PNPMS])
def test_no_version_that_a_rule_hides_is_unpublished_with_another(
    bench: NodeBench, registry: Registry, server: ServerProcess, client: str, action: str
) -> None:
    name = f"partly-{action}-{client}"
    for version in ("1.0.0", "1.1.0", "1.2.0"):
        bench.publish("npm-11", bench.package(name, version))
    api = HttpClient(f"{server.url}/api", (USER, PASSWORD))
    rule = {"name": "hides", "action": action, "match": {"packages": [name], "versions": "<1.2"}, "reason": "bad"}
    path = "/repository/main%2Fnpm/config/policy"
    ok(api.post_json(path, {"rules": [rule]}, "PUT"))
    try:
        assert list(registry.document(name)["versions"]) == ["1.2.0"]
        bench.run(client, "deprecate", f"{name}@1.0.0", "gone soon")
        bench.run(client, "dist-tag", "add", f"{name}@1.2.0", "good")
        bench.run(client, "unpublish", f"{name}@1.2.0")
    finally:
        ok(api.post_json(path, {}, "PUT"))
    versions = registry.document(name)["versions"]
    assert list(versions) == ["1.0.0", "1.1.0"]
    assert versions["1.0.0"].get("deprecated") == "gone soon"


@pytest.mark.parametrize("client", [*ENDS, "pnpm-12"])
def test_an_owner_is_added_and_removed(bench: NodeBench, registry: Registry, client: str) -> None:
    name = f"owned-{client}"
    for version in ("1.0.0", "1.1.0"):
        bench.publish(client, bench.package(name, version))
    bob = (name, "bob") if client in PNPMS else ("bob", name)
    bench.run(client, "owner", "add", *bob)
    assert "bob" in bench.run(client, "owner", "ls", name)
    assert sorted(registry.document(name)["versions"]) == ["1.0.0", "1.1.0"]
    project = bench.project(f"owned-{client}")
    bench.install(client, project, name)
    assert bench.required(project, name) == f"{name}@1.1.0"
    bench.run(client, "owner", "rm", *bob)
    assert "bob" not in bench.run(client, "owner", "ls", name)


@pytest.mark.parametrize("client", ["npm-11", "pnpm-12"])
def test_a_star_is_added_and_removed(bench: NodeBench, registry: Registry, client: str) -> None:
    name = f"starred-{client}"
    bench.publish(client, bench.package(name))
    bench.run(client, "star", name)
    assert registry.document(name)["users"] == {"admin": True}
    for whose in ((), ("admin",)):
        assert bench.run(client, "stars", *whose).split() == [name]
    bench.run(client, "unstar", name)
    assert "users" not in registry.document(name)


def test_pnpm_shows_access(bench: NodeBench) -> None:
    bench.publish("pnpm-12", bench.package("@asked/x"), "--access", "public")
    told = bench.run("pnpm-12", "access", "get", "status", "@asked/x")
    assert told.split() == ["package:", "@asked/x", "access:", "public"]
    for whose in ((), ("@asked",), ("admin",)):
        assert "@asked/x: write" in bench.run("pnpm-12", "access", "list", "packages", *whose)


@pytest.mark.parametrize("client", ["npm-11", "pnpm-12"])
@pytest.mark.parametrize("command", [("team", "ls", "@acme"), ("team", "create", "@acme:dev"), ("org", "ls", "acme")])
def test_team_commands_print_the_refusal(bench: NodeBench, client: str, command: tuple[str, ...]) -> None:
    if client in PNPMS and command[0] == "org":
        return  # this client has no such command
    printed = bench.run(client, *command, status=1)
    assert "this registry has no organisations and teams" in " ".join(printed.replace("│", "").split()), printed


def test_npm_shows_access(bench: NodeBench) -> None:
    bench.publish("npm-11", bench.package("@access/x"), "--access", "public")
    told = json.loads(bench.run("npm-11", "access", "get", "status", "@access/x", "--json"))
    assert told == {"@access/x": "public"}
    assert "admin" in bench.run("npm-11", "access", "list", "collaborators", "@access/x")
    for whose in ("@access", "admin"):
        assert "@access/x: read-write" in bench.run("npm-11", "access", "list", "packages", whose)


@pytest.mark.parametrize("yarn", ["yarn-1", "yarn-4"])
def test_yarn_tags(bench: NodeBench, registry: Registry, yarn: str) -> None:
    name = f"tagged-{yarn}"
    place = bench.package(name)
    bench.publish(yarn, place)
    word = ("npm", "tag") if yarn == "yarn-4" else ("tag",)
    bench.run(yarn, *word, "add", f"{name}@1.0.0", "stable", cwd=place)
    assert registry.document(name)["dist-tags"] == {"latest": "1.0.0", "stable": "1.0.0"}
    bench.run(yarn, *word, "remove", name, "stable", cwd=place)
    assert registry.document(name)["dist-tags"] == {"latest": "1.0.0"}
