"""Each push rule refuses with a sentence that Maven prints, and leaves nothing behind."""

from __future__ import annotations

import pytest

from tests.clients.maven.conftest import MakeBench, OpenRepository
from tests.support.container_clients import BOB, add_bob, ok
from tests.support.http_client import HttpClient
from tests.support.maven_clients import MAVENS, MavenBench, MavenRepository, printed
from tests.support.maven_files import make_pom


@pytest.mark.parametrize(
    ("maven", "name", "accepted", "refused"),
    [
        ("maven-3.8", "releases", "1.0", "1.1-SNAPSHOT"),
        ("maven-3.9", "snapshots", "1.1-SNAPSHOT", "1.0"),
        ("maven-4", "snapshots", "1.1-SNAPSHOT", "1.0"),
    ],
)
def test_policy_accepts_one_kind_only(
    open_repository: OpenRepository, make_bench: MakeBench, maven: str, name: str, accepted: str, refused: str
) -> None:
    repository, group = open_repository(name), group_of(maven, "policy")
    bench = make_bench(repository.url)
    bench.deploy_file(maven, f"{group}:app:{accepted}", bench.jar("x"))
    sentence = f"Repository accepts only {name.upper()}; {refused} refused"
    assert_refused(bench, maven, f"{group}:app:{refused}", 409, sentence)
    assert repository.wire.get(f"/{group.replace('.', '/')}/app/{refused}/").status == 404
    assert repository.versions(f"{group.replace('.', '/')}/app") == [accepted]


@pytest.mark.parametrize("maven", ["maven-4"])
def test_stages_are_both(open_repository: OpenRepository, make_bench: MakeBench, maven: str) -> None:
    repository, group = open_repository("stages"), group_of(maven, "stages")
    bench = make_bench(repository.url)
    for version in ("1.0", "1.1-SNAPSHOT"):
        bench.deploy_file(maven, f"{group}:app:{version}", bench.jar("x"))
    assert repository.versions(f"{group.replace('.', '/')}/app") == ["1.0", "1.1-SNAPSHOT"]


@pytest.mark.parametrize("maven", ["maven-3.9", "maven-4"])
def test_releases_are_deployed_once(open_repository: OpenRepository, make_bench: MakeBench, maven: str) -> None:
    repository, group = open_repository("once"), group_of(maven, "once")
    bench = make_bench(repository.url)
    directory = f"{group.replace('.', '/')}/app"
    bench.deploy_file(maven, f"{group}:app:1.0", bench.jar("first"))
    assert_refused(bench, maven, f"{group}:app:1.0", 409, "already exists; overwriting is disabled")
    assert repository.get(f"{directory}/1.0/app-1.0.jar") == bench.jar("first").read_bytes()
    bench.deploy_file(maven, f"{group}:app:1.1", bench.jar("second"))
    for text in ("one", "two"):  # the second build of a snapshot has names of its own
        bench.deploy_file(maven, f"{group}:app:1.2-SNAPSHOT", bench.jar(text))
    assert repository.versions(directory) == ["1.0", "1.1", "1.2-SNAPSHOT"]
    for text in (b"one", b"two"):
        repository.put(f"{directory}/1.3-SNAPSHOT/app-1.3-SNAPSHOT.jar", text)


@pytest.mark.parametrize("maven", ["maven-3.8", "maven-4"])
def test_pushes_can_need_a_token(
    open_repository: OpenRepository, make_bench: MakeBench, wire: HttpClient, maven: str
) -> None:
    repository, group = open_repository("tokens"), group_of(maven, "tokens")
    bench = make_bench(repository.url)
    sentence = "Use an auth token instead of a password for this repository"
    assert_refused(bench, maven, f"{group}:app:1.0", 403, sentence)
    assert repository.wire.get(f"/{group.replace('.', '/')}/app/1.0/").status == 404
    token = ok(wire.post_json("/api/user/token", {"name": maven})).json["token"]
    bench.log_in(("admin", token))
    bench.deploy_file(maven, f"{group}:app:1.0", bench.jar("x"))


def test_what_needs_an_approval_comes_by_no_path_without_one(
    open_repository: OpenRepository, make_bench: MakeBench, wire: HttpClient
) -> None:
    repository, version, build = open_repository("approving"), "1.1-SNAPSHOT", "1.1-20260101.000000-1234567890"
    eve = add_writer(wire, "eve", "main/approving")
    place, bench = f"/com/example/evil/{version}", make_bench(repository.url)
    pom = make_pom("com.example", "evil", version)
    listed = "".join(
        f"<snapshotVersion><extension>{each}</extension><value>{build}</value><updated>20260101000000</updated>"
        "</snapshotVersion>"
        for each in ("jar", "pom")
    )
    metadata = (
        f"<metadata><groupId>com.example</groupId><artifactId>evil</artifactId><version>{version}</version><versioning>"
        "<snapshot><timestamp>20260101.000000</timestamp><buildNumber>1234567890</buildNumber></snapshot>"
        f"<snapshotVersions>{listed}</snapshotVersions></versioning></metadata>"
    ).encode()
    sent = {
        f"{place}/evil-{build}.jar": bench.jar("evil").read_bytes(),
        f"{place}/evil-{build}.pom": pom,
        f"{place}/maven-metadata.xml": metadata,
    }
    for path, data in sent.items():
        refused = repository.wire.as_user(*eve).put(path, data)
        assert (path, refused.status, "requires_approval" in refused.text) == (path, 403, True)
    bench.fetch("maven-3.9", f"com.example:evil:{version}", status=1)
    for path, data in sent.items():
        assert (path, repository.wire.put(path, data).status in (200, 201)) == (path, True)
    make_bench(repository.url).fetch("maven-3.9", f"com.example:evil:{version}")


def test_members_deploy_their_plugins(open_repository: OpenRepository, make_bench: MakeBench, wire: HttpClient) -> None:
    repository = open_repository("members")
    pia = add_writer(wire, "pia", "main/members")
    ok(wire.post_json("/api/project", {"key": "plugins"}))
    given = {"repository": "main/members", "pattern": "com.example.plugins:own-maven-plugin"}
    ok(wire.post_json("/api/project/plugins/bindings", given))
    ok(wire.post_json("/api/project/plugins/members", {"user": pia[0], "role": "developer"}))
    bench = make_bench(repository.url, auth=pia)
    coordinates = "com.example.plugins:own-maven-plugin:1.0"
    bench.deploy_file("maven-3.9", coordinates, bench.jar("x"), "-Dpackaging=maven-plugin")
    assert repository.versions("com/example/plugins/own-maven-plugin") == ["1.0"]
    assert b"own-maven-plugin" in repository.get("com/example/plugins/maven-metadata.xml")


def test_projects_have_members(open_repository: OpenRepository, make_bench: MakeBench, wire: HttpClient) -> None:
    repository = open_repository("members")
    add_bob(wire, "main/members")
    ok(wire.post_json("/api/project", {"key": "team"}))
    ok(wire.post_json("/api/project/team/bindings", {"repository": "main/members", "pattern": "com.example.owned"}))
    for maven in MAVENS:
        bench = make_bench(repository.url, auth=BOB)
        assert_refused(bench, maven, "com.example.owned:app:1.0", 403, "only members of project team may push")
        assert repository.wire.get("/com/example/owned/app/1.0/").status == 404
    ok(wire.post_json("/api/project/team/members", {"user": BOB[0], "role": "developer"}))
    bench.deploy_file("maven-3.9", "com.example.owned:app:1.0", bench.jar("x"))


@pytest.mark.parametrize("maven", ["maven-3.9"])
def test_single_files_can_be_refused(open_repository: OpenRepository, make_bench: MakeBench, maven: str) -> None:
    repository, group = open_repository("bundles"), group_of(maven, "bundles")
    bench = make_bench(repository.url)
    assert_refused(bench, maven, f"{group}:app:1.0", 403, "This repository accepts bundle deploys only")
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


def add_writer(wire: HttpClient, name: str, repository: str) -> tuple[str, str]:
    """Add a user who may read and write in a repository. Returns the credentials."""
    ok(wire.post_json("/api/users", {"username": name, "password": BOB[1]}))
    given = [{"repository": repository, "actions": ["read", "write"]}]
    ok(wire.post_json(f"/api/users/{name}/permissions", {"repositories": given}, "PUT"))
    return name, BOB[1]


def assert_refused(bench: MavenBench, maven: str, coordinates: str, status: int, sentence: str) -> None:
    """
    Deploy other bytes than before, and check that Maven fails and prints the status and our sentence.

    Maven 4 shows the sentence only with Apache's transport: the JDK's, its default, discards what comes after a PUT.
    """
    if maven == "maven-4":
        assert f"HTTP Status: {status}" in printed(
            bench.deploy_file(maven, coordinates, bench.jar("refused"), status=1)
        )
    options = ["-Dmaven.resolver.transport=apache"] if maven == "maven-4" else []
    shown = printed(bench.deploy_file(maven, coordinates, bench.jar("refused"), *options, status=1))
    assert f"{status}" in shown
    assert sentence in shown


def group_of(maven: str, subject: str) -> str:
    """Return a group that no other test uses."""
    return f"com.example.{subject}.{maven.replace('.', '').replace('-', '')}"
