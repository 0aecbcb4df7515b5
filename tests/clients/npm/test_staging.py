"""npm stage: versions that wait for an approval, as npm 11.19 and 12 publish, list, show, take and give them up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.npm_clients import NodeBench, Registry

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

STAGING = ("npm-11", "npm-12")


def stage(bench: NodeBench, npm: str, folder: Path, *options: str) -> str:
    """Stage the package in a folder. Returns the id."""
    printed = bench.run(npm, "stage", "publish", ".", *options, cwd=folder)
    return printed.rpartition("staged with id ")[2].partition(")")[0]


@pytest.mark.shows("stage")
@pytest.mark.parametrize("npm", STAGING)
def test_a_version_is_staged_looked_at_and_approved(bench: NodeBench, registry: Registry, npm: str) -> None:
    name = f"@waiting/by-{npm}"
    bench.publish(npm, bench.package(name, "1.0.0"))
    uid = stage(bench, npm, bench.package(name, "1.1.0"), "--tag", "next")
    assert list(registry.document(name)["versions"]) == ["1.0.0"]
    listed = json.loads(bench.run(npm, "stage", "list", name, "--json"))
    assert [(each["id"], each["version"], each["tag"]) for each in listed] == [(uid, "1.1.0", "next")]
    assert "No staged versions" in bench.run(npm, "stage", "list", "@waiting/other")
    assert "staged by: admin (user)" in bench.run(npm, "stage", "view", uid)
    project = bench.project("waiting")
    assert f"waiting-by-{npm}-1.1.0-{uid}.tgz" in bench.run(npm, "stage", "download", uid, cwd=project)
    assert (project / f"waiting-by-{npm}-1.1.0-{uid}.tgz").stat().st_size > 0
    assert "published successfully" in bench.run(npm, "stage", "approve", uid)
    assert registry.document(name)["dist-tags"] == {"latest": "1.0.0", "next": "1.1.0"}
    bench.install(npm, project, f"{name}@next")
    assert bench.required(project, name) == f"{name}@1.1.0"
    assert "is approved by admin already" in bench.run(npm, "stage", "approve", uid, status=1)


@pytest.mark.parametrize("npm", STAGING)
def test_a_stage_is_rejected_and_a_version_published_meanwhile_is_refused(bench: NodeBench, npm: str) -> None:
    name = f"twice-staged-by-{npm}"
    folder = bench.package(name, "1.0.0")
    given_up, late = stage(bench, npm, folder), stage(bench, npm, folder)
    assert "has been rejected" in bench.run(npm, "stage", "reject", given_up)
    assert "state: rejected" in bench.run(npm, "stage", "view", given_up)
    (folder / "more.txt").write_text("something else")
    bench.publish(npm, folder)
    refused = bench.run(npm, "stage", "approve", late, status=1)
    assert "You cannot publish over the previously published versions: 1.0.0." in refused
    assert [each["id"] for each in json.loads(bench.run(npm, "stage", "list", name, "--json"))] == [late]
    again = bench.run(npm, "stage", "publish", ".", cwd=folder, status=1)
    assert "You cannot publish over the previously published versions: 1.0.0." in again
