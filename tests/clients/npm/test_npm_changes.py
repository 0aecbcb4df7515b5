"""npm's commands that change what was published, and what everybody sees of it."""

from __future__ import annotations

import json

import pytest

from tests.support.nodeclients import NPMS, NodeBench, Registry

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]


@pytest.mark.parametrize("npm", NPMS)
def test_tags_are_added_listed_and_removed(bench: NodeBench, npm: str) -> None:
    name = f"@tagged/{npm}"
    for version in ("1.0.0", "1.1.0"):
        bench.publish(npm, bench.package(name, version))
    bench.run(npm, "dist-tag", "add", f"{name}@1.0.0", "stable")
    assert bench.run(npm, "dist-tag", "ls", name).split() == ["latest:", "1.1.0", "stable:", "1.0.0"]
    project = bench.project(f"tagged-{npm}")
    bench.install(npm, project, f"{name}@stable")
    assert bench.required(project, name) == f"{name}@1.0.0"
    bench.run(npm, "dist-tag", "rm", name, "stable")
    assert bench.run(npm, "dist-tag", "ls", name).split() == ["latest:", "1.1.0"]
    bench.run(npm, "dist-tag", "rm", name, "latest", status=1)
    bench.run(npm, "dist-tag", "add", f"{name}@1.0.0", "1.x", status=1)


@pytest.mark.parametrize("client", [*NPMS, "pnpm"])
def test_a_deprecation_is_printed_until_it_is_taken_back(bench: NodeBench, registry: Registry, client: str) -> None:
    name = f"deprecated-{client}"
    for version in ("1.0.0", "1.1.0"):
        bench.publish("npm-11", bench.package(name, version))
    bench.run(client, "deprecate", f"{name}@1.0.0", "it squeaks")
    versions = registry.document(name)["versions"]
    assert [versions[each].get("deprecated") for each in ("1.0.0", "1.1.0")] == ["it squeaks", None]
    project = bench.project(f"deprecated-{client}")
    assert "it squeaks" in bench.install("npm-11", project, f"{name}@1.0.0")
    bench.run(client, "deprecate", f"{name}@1.0.0", "")
    assert "deprecated" not in registry.document(name)["versions"]["1.0.0"]


@pytest.mark.parametrize("npm", NPMS)
@pytest.mark.parametrize("name", ["shrinking-{}", "@shrinking/{}"])
def test_a_version_is_unpublished_and_then_the_package(
    bench: NodeBench, registry: Registry, npm: str, name: str
) -> None:
    name = name.format(npm)
    for version in ("1.0.0", "1.1.0"):
        bench.publish(npm, bench.package(name, version))
    bench.run(npm, "unpublish", f"{name}@1.1.0")
    document = registry.document(name)
    assert (list(document["versions"]), document["dist-tags"]) == (["1.0.0"], {"latest": "1.0.0"})
    bench.run(npm, "unpublish", name, "--force")
    assert "E404" in bench.run(npm, "view", name, status=1)
    again = bench.publish(npm, bench.folder / f"package-{name.replace('/', '-')}-1.0.0", status=1)
    assert "cannot publish over" in again.lower()


@pytest.mark.parametrize("npm", NPMS)
def test_an_owner_is_added_and_removed(bench: NodeBench, registry: Registry, npm: str) -> None:
    name = f"owned-{npm}"
    for version in ("1.0.0", "1.1.0"):
        bench.publish(npm, bench.package(name, version))
    bench.run(npm, "owner", "add", "bob", name)
    assert "bob" in bench.run(npm, "owner", "ls", name)
    assert sorted(registry.document(name)["versions"]) == ["1.0.0", "1.1.0"]
    project = bench.project(f"owned-{npm}")
    bench.install(npm, project, name)
    assert bench.required(project, name) == f"{name}@1.1.0"
    bench.run(npm, "owner", "rm", "bob", name)
    assert "bob" not in bench.run(npm, "owner", "ls", name)


def test_a_star_is_given_and_taken_back(bench: NodeBench, registry: Registry) -> None:
    bench.publish("npm-11", bench.package("starred"))
    bench.run("npm-11", "star", "starred")
    assert registry.document("starred")["users"] == {"admin": True}
    assert bench.run("npm-11", "stars").split() == ["starred"]
    bench.run("npm-11", "unstar", "starred")
    assert "users" not in registry.document("starred")


def test_access_is_told(bench: NodeBench) -> None:
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
