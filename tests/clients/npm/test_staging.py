"""npm stage: versions that wait for an approval, as npm 11.19 publishes, lists, shows, takes and gives them up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.npm_clients import NodeBench, Registry

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

NPM = "npm-11"  # the first one with these commands; npm 12, which has the same, needs a later Node


def stage(bench: NodeBench, folder: Path, *options: str) -> str:
    """Stage the package in a folder. Returns the id."""
    printed = bench.run(NPM, "stage", "publish", ".", *options, cwd=folder)
    return printed.rpartition("staged with id ")[2].partition(")")[0]


@pytest.mark.shows("stage", by=("npm-11",))
def test_a_version_is_staged_looked_at_and_approved(bench: NodeBench, registry: Registry) -> None:
    name = "@waiting/demo"
    bench.publish(NPM, bench.package(name, "1.0.0"))
    uid = stage(bench, bench.package(name, "1.1.0"), "--tag", "next")
    assert list(registry.document(name)["versions"]) == ["1.0.0"]
    listed = json.loads(bench.run(NPM, "stage", "list", name, "--json"))
    assert [(each["id"], each["version"], each["tag"]) for each in listed] == [(uid, "1.1.0", "next")]
    assert "No staged versions" in bench.run(NPM, "stage", "list", "@waiting/other")
    assert "staged by: admin (user)" in bench.run(NPM, "stage", "view", uid)
    project = bench.project("waiting")
    assert f"waiting-demo-1.1.0-{uid}.tgz" in bench.run(NPM, "stage", "download", uid, cwd=project)
    assert (project / f"waiting-demo-1.1.0-{uid}.tgz").stat().st_size > 0
    assert "published successfully" in bench.run(NPM, "stage", "approve", uid)
    assert registry.document(name)["dist-tags"] == {"latest": "1.0.0", "next": "1.1.0"}
    bench.install(NPM, project, f"{name}@next")
    assert bench.required(project, name) == f"{name}@1.1.0"
    assert "is approved by admin already" in bench.run(NPM, "stage", "approve", uid, status=1)


def test_a_stage_is_rejected_and_a_version_published_meanwhile_is_refused(bench: NodeBench, registry: Registry) -> None:
    name = "twice-staged"
    folder = bench.package(name, "1.0.0")
    given_up, late = stage(bench, folder), stage(bench, folder)
    assert "has been rejected" in bench.run(NPM, "stage", "reject", given_up)
    assert "state: rejected" in bench.run(NPM, "stage", "view", given_up)
    (folder / "more.txt").write_text("something else")
    bench.publish(NPM, folder)
    refused = bench.run(NPM, "stage", "approve", late, status=1)
    assert "You cannot publish over the previously published versions: 1.0.0." in refused
    assert [each["id"] for each in json.loads(bench.run(NPM, "stage", "list", name, "--json"))] == [late]
    again = bench.run(NPM, "stage", "publish", ".", cwd=folder, status=1)
    assert "You cannot publish over the previously published versions: 1.0.0." in again
