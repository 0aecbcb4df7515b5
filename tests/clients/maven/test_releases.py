"""Maven 3.8, 3.9 and 4 deploy releases, which each of them resolves with strict checksums."""

from __future__ import annotations

import pytest

from tests.clients.maven.conftest import MakeBench, OpenRepository
from tests.support.maven_clients import COPY, MAVENS, MavenBench, MavenRepository
from tests.support.server_process import ServerProcess
from tests.support.tcp_proxy import TcpProxy


def group_of(maven: str) -> str:
    """Return a group that no other test uses."""
    return "com.example." + maven.replace(".", "").replace("-", "")


def test_deployed_files_have_all_checksums_and_are_resolved_by_each_maven(
    repository: MavenRepository, make_bench: MakeBench
) -> None:
    bench = make_bench()
    jars = {maven: bench.jar(maven) for maven in MAVENS}
    for maven, jar in jars.items():
        group = group_of(maven) + ".files"
        bench.deploy_file(maven, f"{group}:app:1.0.0", jar, f"-Dsources={bench.jar('sources')}")
        directory = f"{group.replace('.', '/')}/app"
        repository.check_checksums(f"{directory}/1.0.0/app-1.0.0.jar", jar.read_bytes())
        path = f"{directory}/1.0.0/app-1.0.0-sources.jar"
        repository.check_checksums(path, bench.jar("sources").read_bytes())
        assert repository.get(path) == bench.jar("sources").read_bytes()
        assert repository.versions(directory) == ["1.0.0"]
        assert repository.metadata(directory).findtext("versioning/release") == "1.0.0"
        assert repository.get(f"{directory}/repo-metadata.xml") == repository.get(f"{directory}/maven-metadata.xml")
    for reader in MAVENS:
        user = make_bench(auth=None)
        user.dependencies(reader, *(f"{group_of(maven)}.files:app:1.0.0" for maven in MAVENS))
        for maven, jar in jars.items():
            assert user.fetched(f"{group_of(maven)}.files", "app", "1.0.0", "app-1.0.0.jar") == jar.read_bytes()


@pytest.mark.shows("publish", "install")
@pytest.mark.parametrize("maven", MAVENS)
def test_build_of_several_modules_is_deployed_and_used(
    repository: MavenRepository, make_bench: MakeBench, maven: str
) -> None:
    bench, version = make_bench(), f"2.0-{maven.replace('.', '-')}"
    bench.deploy(maven, bench.project(version))
    for artifact in ("parent", "library", "app", "team-maven-plugin"):
        assert version in repository.versions(f"com/example/team/{artifact}")
    user = make_bench(auth=None)
    app = user.project(version) / "app"
    (app.parent / "pom.xml").unlink()  # the parent is resolved, not read from the folder above
    user.run(maven, "compile", COPY, f"-DoutputDirectory={user.folder}", cwd=app)
    library = f"library-{version}.jar"
    assert (user.folder / library).read_bytes() == repository.get(f"com/example/team/library/{version}/{library}")


def test_newest_release_is_found_by_range_and_by_word(make_bench: MakeBench) -> None:
    bench = make_bench()
    for version in ("1.9", "1.10", "1.9.5"):
        bench.deploy_file("maven-3.9", f"com.example.ranges:app:{version}", bench.jar(version))
    for maven in MAVENS:
        user = make_bench()
        user.fetch(maven, "com.example.ranges:app:RELEASE")
        assert user.fetched("com.example.ranges", "app", "1.10", "app-1.10.jar") == bench.jar("1.10").read_bytes()
        jars = user.dependencies(maven, "com.example.ranges:app:[1.0,1.10)")
        assert jars == {"app-1.9.5.jar": bench.jar("1.9.5").read_bytes()}


@pytest.mark.shows("private")
@pytest.mark.parametrize("maven", MAVENS)
def test_private_repository_is_used_with_credentials_only(
    open_repository: OpenRepository, make_bench: MakeBench, maven: str
) -> None:
    repository, group = open_repository("private"), group_of(maven) + ".secret"
    bench = make_bench(repository.url)
    bench.deploy_file(maven, f"{group}:app:1", bench.jar("secret"))
    user = make_bench(repository.url)
    user.fetch(maven, f"{group}:app:1")
    assert user.fetched(group, "app", "1", "app-1.jar") == bench.jar("secret").read_bytes()
    shown = make_bench(repository.url, auth=None).fetch(maven, f"{group}:app:1", status=1)
    assert "401" in shown
    assert "deny" not in shown.lower()


@pytest.mark.parametrize("maven", ["maven-3.9", "maven-4"])
def test_checksums_come_with_files_so_that_none_is_asked_for(
    server: ServerProcess, repository: MavenRepository, make_bench: MakeBench, maven: str
) -> None:
    bench = make_bench()
    bench.deploy_file("maven-3.9", "com.example.headers:app:1", bench.jar("x"))
    with TcpProxy(address_of(repository)).running() as line:
        user = make_bench(repository.url.replace(host_of(repository), line.host))
        user.fetch(maven, "com.example.headers:app:1")
        asked = [head.line.split()[1].rpartition("/")[2] for head in line.requests("GET ")]
        assert "app-1.jar" in asked
        assert not [name for name in asked if name.endswith((".sha1", ".md5"))]


@pytest.mark.parametrize("maven", ["maven-3.9", "maven-4"])
def test_algorithms_of_checksums_can_be_chosen(repository: MavenRepository, make_bench: MakeBench, maven: str) -> None:
    bench, group = make_bench(), group_of(maven) + ".algorithms"
    algorithms = "-Daether.checksums.algorithms=SHA-512,SHA-256,SHA-1,MD5"
    shown = bench.deploy_file(maven, f"{group}:app:1", bench.jar("x"), algorithms)
    assert "WARN" not in shown
    repository.check_checksums(f"{group.replace('.', '/')}/app/1/app-1.jar", bench.jar("x").read_bytes())


def test_ten_deploys_at_once_lose_no_version(repository: MavenRepository, bench: MavenBench) -> None:
    jars = {f"1.{number}": bench.jar(str(number)) for number in range(10)}
    bench.deploy_file("maven-3.9", "com.example.warm:app:1", bench.jar("warm"))  # fetches the plugins, once
    bench.deploy_together("maven-3.9", "com.example.many:app", jars)
    assert repository.versions("com/example/many/app") == [*jars]
    for version, jar in jars.items():
        repository.check_checksums(f"com/example/many/app/{version}/app-{version}.jar", jar.read_bytes())


def address_of(repository: MavenRepository) -> tuple[str, int]:
    """Return host and port of the server."""
    parts = repository.wire.parts
    assert parts.hostname is not None
    assert parts.port is not None
    return parts.hostname, parts.port


def host_of(repository: MavenRepository) -> str:
    return repository.wire.parts.netloc


# Maven 4 sends the password three times, and prints no status, or that of the limit (403) if the others came before.
TOLD = {
    "maven-3.8": ("401", "too many failed logins"),
    "maven-3.9": ("401", "too many failed logins"),
    "maven-4": ("too many authentication attempts", "HTTP Status: 403"),
}


@pytest.mark.shows("refusal")
@pytest.mark.parametrize("maven", MAVENS)
def test_wrong_password_is_told(make_bench: MakeBench, maven: str) -> None:
    bench = make_bench(auth=(maven, "wrong"))
    shown = bench.deploy_file(maven, "com.example.wrong:app:1", bench.jar("x"), status=1)
    assert any(each in shown for each in TOLD[maven]), shown


def test_plugin_runs_by_its_prefix_in_its_newest_version(repository: MavenRepository, make_bench: MakeBench) -> None:
    """Maven 3.8 with a current deploy plugin writes no metadata of the group, so the others deploy."""
    bench = make_bench()
    for maven, version in (("maven-3.9", "3.0"), ("maven-4", "3.1")):
        bench.deploy(maven, bench.project(version), "-pl", "tool", "--also-make")
        plugins = [
            [plugin.findtext(name) for name in ("prefix", "artifactId", "name")]
            for plugin in repository.metadata("com/example/team").iter("plugin")
        ]
        assert plugins == [["team", "team-maven-plugin", "Team plugin"]]
        assert repository.metadata("com/example/team/team-maven-plugin").findtext("versioning/release") == version
        for reader in MAVENS:
            assert f"hello from plugin {version}" in make_bench(auth=None).run(reader, "-Pplugins", "team:hello")


@pytest.mark.parametrize("maven", MAVENS)
def test_unknown_prefix_is_told_apart_from_a_failure(make_bench: MakeBench, maven: str) -> None:
    shown = make_bench().run(maven, "-Pplugins", "nonesuch:hello", status=1)
    assert "No plugin found for prefix 'nonesuch'" in shown
