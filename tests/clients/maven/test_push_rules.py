"""Each push rule refuses with a sentence that Maven prints, and leaves nothing behind."""

from __future__ import annotations

import pytest

from tests.clients.maven.conftest import MakeBench, OpenRepository
from tests.support.container_clients import BOB, add_bob, ok
from tests.support.http_client import HttpClient
from tests.support.maven_clients import MAVENS, MavenRepository, printed


@pytest.mark.parametrize("maven", MAVENS)
@pytest.mark.parametrize(
    ("name", "accepted", "refused"), [("releases", "1.0", "1.1-SNAPSHOT"), ("snapshots", "1.1-SNAPSHOT", "1.0")]
)
def test_policy_accepts_one_kind_only(
    open_repository: OpenRepository, make_bench: MakeBench, maven: str, name: str, accepted: str, refused: str
) -> None:
    repository, group = open_repository(name), group_of(maven, "policy")
    bench = make_bench(repository.url)
    bench.deploy_file(maven, f"{group}:app:{accepted}", bench.jar("x"))
    shown = printed(bench.deploy_file(maven, f"{group}:app:{refused}", bench.jar("x"), status=1))
    assert "409" in shown
    assert f"Repository accepts only {name.upper()}; {refused} refused" in shown
    assert repository.wire.get(f"/{group.replace('.', '/')}/app/{refused}/").status == 404
    assert repository.versions(f"{group.replace('.', '/')}/app") == [accepted]


@pytest.mark.parametrize("maven", MAVENS)
def test_stages_are_both(open_repository: OpenRepository, make_bench: MakeBench, maven: str) -> None:
    repository, group = open_repository("stages"), group_of(maven, "stages")
    bench = make_bench(repository.url)
    for version in ("1.0", "1.1-SNAPSHOT"):
        bench.deploy_file(maven, f"{group}:app:{version}", bench.jar("x"))
    assert repository.versions(f"{group.replace('.', '/')}/app") == ["1.0", "1.1-SNAPSHOT"]


@pytest.mark.parametrize("maven", MAVENS)
def test_releases_are_deployed_once(open_repository: OpenRepository, make_bench: MakeBench, maven: str) -> None:
    repository, group = open_repository("once"), group_of(maven, "once")
    bench = make_bench(repository.url)
    directory = f"{group.replace('.', '/')}/app"
    bench.deploy_file(maven, f"{group}:app:1.0", bench.jar("first"))
    shown = printed(bench.deploy_file(maven, f"{group}:app:1.0", bench.jar("second"), status=1))
    assert "409" in shown
    assert "already exists" in shown
    assert "overwriting is disabled" in shown
    assert repository.get(f"{directory}/1.0/app-1.0.jar") == bench.jar("first").read_bytes()
    bench.deploy_file(maven, f"{group}:app:1.1", bench.jar("second"))
    for text in ("one", "two"):
        bench.deploy_file(maven, f"{group}:app:1.2-SNAPSHOT", bench.jar(text))
    assert repository.versions(directory) == ["1.0", "1.1", "1.2-SNAPSHOT"]
    for text in (b"one", b"two"):
        repository.put(f"{directory}/1.3-SNAPSHOT/app-1.3-SNAPSHOT.jar", text)


@pytest.mark.parametrize("maven", MAVENS)
def test_pushes_can_need_a_token(
    open_repository: OpenRepository, make_bench: MakeBench, wire: HttpClient, maven: str
) -> None:
    repository, group = open_repository("tokens"), group_of(maven, "tokens")
    bench = make_bench(repository.url)
    shown = printed(bench.deploy_file(maven, f"{group}:app:1.0", bench.jar("x"), status=1))
    assert "403" in shown
    assert "Use an auth token instead of a password for this repository" in shown
    assert repository.wire.get(f"/{group.replace('.', '/')}/app/1.0/").status == 404
    token = ok(wire.post_json("/api/user/token", {"name": maven})).json["token"]
    bench.log_in(("admin", token))
    bench.deploy_file(maven, f"{group}:app:1.0", bench.jar("x"))


def test_projects_have_members(open_repository: OpenRepository, make_bench: MakeBench, wire: HttpClient) -> None:
    repository = open_repository("members")
    add_bob(wire, "main/members")
    ok(wire.post_json("/api/project", {"key": "team"}))
    ok(wire.post_json("/api/project/team/bindings", {"repository": "main/members", "pattern": "com.example.owned:*"}))
    for maven in MAVENS:
        bench = make_bench(repository.url, auth=BOB)
        shown = printed(bench.deploy_file(maven, "com.example.owned:app:1.0", bench.jar("x"), status=1))
        assert "403" in shown
        assert "only members of project team may push" in shown.lower().replace("Only", "only")
        assert repository.wire.get("/com/example/owned/app/1.0/").status == 404
    ok(wire.post_json("/api/project/team/members", {"user": BOB[0], "role": "developer"}))
    bench.deploy_file("maven-3.9", "com.example.owned:app:1.0", bench.jar("x"))


@pytest.mark.parametrize("maven", MAVENS)
def test_single_files_can_be_refused(open_repository: OpenRepository, make_bench: MakeBench, maven: str) -> None:
    repository, group = open_repository("bundles"), group_of(maven, "bundles")
    bench = make_bench(repository.url)
    shown = printed(bench.deploy_file(maven, f"{group}:app:1.0", bench.jar("x"), status=1))
    assert "403" in shown
    assert "This repository accepts bundle deploys only" in shown
    assert repository.wire.get(f"/{group.replace('.', '/')}/app/1.0/").status == 404


def test_versions_are_kept_where_yanking_is_not_allowed(
    repository: MavenRepository, open_repository: OpenRepository, make_bench: MakeBench
) -> None:
    kept = open_repository("kept")
    for each in (repository, kept):
        bench = make_bench(each.url)
        for version in ("1.0", "1.1"):
            bench.deploy_file("maven-3.9", f"com.example.yanked:app:{version}", bench.jar("x"))
    refused = kept.wire.delete("/com/example/yanked/app/1.0/")
    assert refused.status == 403
    assert "yanking_allowed" in refused.text
    assert kept.versions("com/example/yanked/app") == ["1.0", "1.1"]
    assert repository.wire.delete("/com/example/yanked/app/1.0/").status == 204
    assert repository.versions("com/example/yanked/app") == ["1.1"]
    shown = make_bench().fetch("maven-3.9", "com.example.yanked:app:1.0", status=1)
    assert "Could not find artifact com.example.yanked:app" in printed(shown)


def group_of(maven: str, subject: str) -> str:
    """Return a group that no other test uses."""
    return f"com.example.{subject}.{maven.replace('.', '').replace('-', '')}"
