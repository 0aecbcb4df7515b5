"""A build is staged in a folder by Maven, published whole by ``pkgrepo deploy``, and resolved."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.clients.maven.conftest import MakeBench, OpenRepository
from tests.support.client_programs import run_client
from tests.support.http_client import HttpClient
from tests.support.maven_clients import MAVENS, MavenBench
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess

PROGRAM = Path(sys.executable).with_name("pkgrepo")


def deploy(bench: MavenBench, staging: Path, status: int = 0) -> str:
    """Run the command that a CI job runs, and return its output."""
    environ = bench.environ | {"PKGREPO_DEPLOY_USER": USER, "PKGREPO_DEPLOY_PASSWORD": PASSWORD}
    return run_client(
        [PROGRAM, "deploy", staging, "--to", bench.url], environ=environ, folder=bench.folder, status=status
    ).stdout


def stage(bench: MavenBench, version: str) -> Path:
    """Build the modules of this version, and deploy them to a folder; its path."""
    staging = bench.folder / f"staging-{version}"
    target = f"-DaltDeploymentRepository=staging::default::{staging.as_uri()}"
    bench.run("maven-3.9", "deploy", target, cwd=bench.project(version))
    return staging


def test_staged_build_is_published_whole_and_resolved(open_repository: OpenRepository, make_bench: MakeBench) -> None:
    repository = open_repository("bundles")
    bench = make_bench(repository.url)
    shown = deploy(bench, stage(bench, "5.0"))
    for artifact in ("parent", "library", "app", "team-maven-plugin"):
        assert f"published com.example.team:{artifact}:5.0" in shown
        assert repository.versions(f"com/example/team/{artifact}") == ["5.0"]
    for maven in MAVENS:
        user = make_bench(repository.url, auth=None)
        assert sorted(user.dependencies(maven, "com.example.team:app:5.0")) == ["app-5.0.jar", "library-5.0.jar"]
        assert "hello from plugin 5.0" in user.run(maven, "-Pplugins", "team:hello")


def test_build_with_a_broken_file_is_not_published_at_all(
    open_repository: OpenRepository, make_bench: MakeBench
) -> None:
    repository = open_repository("bundles")
    bench = make_bench(repository.url)
    staging = stage(bench, "6.0")
    (staging / "com/example/team/app/6.0/app-6.0.jar").write_bytes(b"not what was built")
    shown = deploy(bench, staging, status=2)
    assert "com/example/team/app/6.0/app-6.0.jar" in shown
    assert repository.wire.get("/com/example/team/library/6.0/library-6.0.jar").status == 404


def test_plugin_of_an_approved_stage_runs_by_its_prefix(
    server: ServerProcess, open_repository: OpenRepository, make_bench: MakeBench
) -> None:
    repository, api = open_repository("approved"), HttpClient(f"{server.url}/api", (USER, PASSWORD))
    other = "<plugin><name>Other</name><prefix>other</prefix><artifactId>other-maven-plugin</artifactId></plugin>"
    listed = f"<metadata><plugins>{other}</plugins></metadata>".encode()
    opened = api.post_json("/repository/main%2Fapproved/stages", {}).json
    bench = make_bench(opened["url"])
    bench.deploy("maven-3.9", bench.project("7.0"), "-pl", "tool", "--also-make")
    assert "hello from plugin 7.0" in make_bench(opened["url"]).run("maven-3.9", "-Pplugins", "team:hello")
    at = f"{repository.url}/com/example/team"
    assert HttpClient(at, (USER, PASSWORD)).ask("PUT", "/maven-metadata.xml", listed).status == 201  # meanwhile
    assert api.post_json(f"/stages/{opened['id']}/approve", {}).status == 200
    prefixes = [each.findtext("prefix") for each in repository.metadata("com/example/team").iter("plugin")]
    assert sorted(map(str, prefixes)) == ["other", "team"]
    assert "hello from plugin 7.0" in make_bench(repository.url, auth=None).run("maven-3.9", "-Pplugins", "team:hello")
