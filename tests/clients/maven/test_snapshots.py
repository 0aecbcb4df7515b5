"""Snapshots: each build has files of its own, and everybody gets the newest build."""

from __future__ import annotations

from tests.clients.maven.conftest import MakeBench
from tests.support.maven_clients import MAVENS, MavenBench, MavenRepository


def test_second_build_is_got(repository: MavenRepository, make_bench: MakeBench) -> None:
    bench = make_bench()
    groups = {maven: f"com.example.{maven.replace('.', '').replace('-', '')}" for maven in MAVENS}
    users = {reader: make_bench(auth=None) for reader in MAVENS}
    for number in (1, 2):
        for maven, group in groups.items():
            jar = bench.jar(f"{maven}, build {number}")
            bench.deploy_file(maven, f"{group}:app:1.1-SNAPSHOT", jar, f"-Dsources={jar}")
            check_metadata(repository, f"{group.replace('.', '/')}/app", number)
        for reader, user in users.items():
            user.dependencies(reader, *(f"{group}:app:1.1-SNAPSHOT" for group in groups.values()))
            for maven, group in groups.items():
                got = user.fetched(group, "app", "1.1-SNAPSHOT", "app-1.1-SNAPSHOT.jar")
                assert got == bench.jar(f"{maven}, build {number}").read_bytes(), (reader, maven, number)


def check_metadata(repository: MavenRepository, directory: str, number: int) -> None:
    """Check that the metadata of 1.1-SNAPSHOT names a jar, sources and a POM of this build."""
    metadata = repository.metadata(f"{directory}/1.1-SNAPSHOT")
    assert metadata.findtext("versioning/snapshot/buildNumber") == str(number)
    timestamp = metadata.findtext("versioning/snapshot/timestamp")
    kinds = {
        (each.findtext("classifier") or "", each.findtext("extension")): each.findtext("value")
        for each in metadata.iter("snapshotVersion")
    }
    assert kinds == dict.fromkeys([("", "jar"), ("", "pom"), ("sources", "jar")], f"1.1-{timestamp}-{number}")
    assert repository.versions(directory) == ["1.1-SNAPSHOT"]
    assert repository.metadata(directory).find("versioning/release") is None


def test_build_of_several_modules_is_deployed_twice_and_used(
    repository: MavenRepository, make_bench: MakeBench
) -> None:
    bench = make_bench()
    project = bench.project("3.0-SNAPSHOT")
    bench.deploy("maven-3.8", project)
    source = project / "library/src/main/java/com/example/team/Library.java"
    source.write_text(source.read_text().replace("library 3.0-SNAPSHOT", "library, second build"))
    bench.deploy("maven-3.9", project)
    for maven in MAVENS:
        user = make_bench(auth=None)
        app = user.project("3.0-SNAPSHOT") / "app"
        (app.parent / "pom.xml").unlink()
        user.run(maven, "compile", "dependency:copy-dependencies", f"-DoutputDirectory={user.folder}", cwd=app)
        shown = user.java([app / "target/classes", *user.folder.glob("library-3.0-*.jar")], "com.example.team.App")
        assert "library, second build" in shown


def test_deploys_of_the_same_snapshot_at_once_leave_whole_builds(
    repository: MavenRepository, bench: MavenBench, make_bench: MakeBench
) -> None:
    """Both take the same build number, so that the metadata must name files that exist."""
    bench.deploy_file("maven-3.9", "com.example.warm:app:1", bench.jar("warm"))
    for maven in ("maven-3.8", "maven-3.9"):
        versions = {"1.0-SNAPSHOT": bench.jar("one"), "1.1-SNAPSHOT": bench.jar("two")}
        bench.deploy_together(maven, "com.example.both:app", versions)
    assert repository.versions("com/example/both/app") == ["1.0-SNAPSHOT", "1.1-SNAPSHOT"]
    for version in ("1.0", "1.1"):
        metadata = repository.metadata(f"com/example/both/app/{version}-SNAPSHOT")
        for each in metadata.iter("snapshotVersion"):
            repository.get(
                f"com/example/both/app/{version}-SNAPSHOT/app-{each.findtext('value')}.{each.findtext('extension')}"
            )


def test_literal_snapshot_files_are_found(repository: MavenRepository, make_bench: MakeBench) -> None:
    """As sbt publishes them: no timestamps, no metadata, and again and again."""
    bench = make_bench()
    names = b"<groupId>com.example.sbt</groupId><artifactId>app_3</artifactId><version>0.1-SNAPSHOT</version>"
    pom = b"<project><modelVersion>4.0.0</modelVersion>" + names + b"</project>"
    for text in ("first", "second"):
        repository.put("com/example/sbt/app_3/0.1-SNAPSHOT/app_3-0.1-SNAPSHOT.pom", pom)
        repository.put("com/example/sbt/app_3/0.1-SNAPSHOT/app_3-0.1-SNAPSHOT.jar", bench.jar(text).read_bytes())
    for maven in MAVENS:
        user = make_bench(auth=None)
        user.dependencies(maven, "com.example.sbt:app_3:0.1-SNAPSHOT")
        got = user.fetched("com.example.sbt", "app_3", "0.1-SNAPSHOT", "app_3-0.1-SNAPSHOT.jar")
        assert got == bench.jar("second").read_bytes()
