"""Gradle 8 publishes with maven-publish, and resolves changing and dynamic versions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.clients.maven.conftest import MakeBench, OpenRepository
from tests.support.container_clients import ok
from tests.support.http_client import HttpClient
from tests.support.maven_clients import MAVENS, MavenBench, MavenRepository
from tests.support.tcp_proxy import TcpProxy

PUBLISH = "publishTeamPublicationToLabRepository"

REPOSITORY = """maven {{
    name = 'lab'
    url = '{url}'
    allowInsecureProtocol = true
    {credentials}
}}"""

PUBLISHER = """
apply plugin: 'maven-publish'
group = 'com.example.gradle'
version = '{version}'
def api = configurations.create('api') {{
    canBeResolved = false
    attributes {{ attribute(Usage.USAGE_ATTRIBUTE, objects.named(Usage, Usage.JAVA_API)) }}
    outgoing.artifact(file('{jar}'))
}}
def component = services.get(org.gradle.api.component.SoftwareComponentFactory).adhoc('team')
component.addVariantsFromConfiguration(api) {{ mapToMavenScope('compile') }}
publishing {{
    publications {{ team(MavenPublication) {{
        from component
        artifact(file('{jar}')) {{ classifier = 'sources' }}
    }} }}
    repositories {{ {repository} }}
}}
"""

CONSUMER = """
repositories {{ {repository} }}
configurations {{ wanted {{
    attributes {{ attribute(Usage.USAGE_ATTRIBUTE, objects.named(Usage, Usage.JAVA_API)) }}
    resolutionStrategy {{ cacheChangingModulesFor 0, 'seconds'; cacheDynamicVersionsFor 0, 'seconds' }}
}} }}
dependencies {{ wanted '{wanted}' }}
tasks.register('show') {{ doLast {{
    configurations.wanted.resolvedConfiguration.resolvedArtifacts.each {{ println "file: ${{it.file}}" }}
}} }}
"""


class Gradle:
    """Runs build scripts in a bench; ``credentials`` are lines of the repository's section."""

    def __init__(self, bench: MavenBench, credentials: str = "") -> None:
        self._bench = bench
        self._repository = REPOSITORY.format(url=bench.url, credentials=credentials)

    def publish(self, artifact: str, version: str, jar: Path, *options: str, status: int = 0) -> str:
        """Publish a jar as ``com.example.gradle:artifact:version``, and return the output."""
        return self._run(
            PUBLISHER.format(version=version, jar=jar, repository=self._repository),
            *options,
            artifact,
            PUBLISH,
            status=status,
        )

    def fetch(self, wanted: str, *options: str) -> list[bytes]:
        """Resolve a dependency, and return the bytes of its files."""
        shown = self._run(CONSUMER.format(wanted=wanted, repository=self._repository), *options, "consumer", "show")
        return [
            Path(line.removeprefix("file: ")).read_bytes() for line in shown.splitlines() if line.startswith("file: ")
        ]

    def _run(self, script: str, *arguments: str, status: int = 0) -> str:
        (self._bench.folder / "build.gradle").write_text(script)
        return self._bench.gradle(*arguments, status=status)


CREDENTIALS = "credentials { username = 'admin'; password = 'correct horse battery' }"


@pytest.mark.shows("publish", "install", by=("gradle",))
def test_publishes_a_module_that_all_clients_fetch(repository: MavenRepository, make_bench: MakeBench) -> None:
    bench = make_bench()
    gradle = Gradle(bench, CREDENTIALS)
    shown = gradle.publish("module", "1.0", bench.jar("one"))
    assert "Cannot upload checksum" not in shown
    directory = "com/example/gradle/module"
    for ending in (".jar", ".pom", ".module", "-sources.jar"):
        path = f"{directory}/1.0/module-1.0{ending}"
        repository.check_checksums(path, repository.get(path))
    assert json.loads(repository.get(f"{directory}/1.0/module-1.0.module"))["component"]["module"] == "module"
    assert repository.metadata(directory).findtext("versioning/release") == "1.0"
    assert Gradle(make_bench()).fetch("com.example.gradle:module:1.0") == [bench.jar("one").read_bytes()]
    for maven in MAVENS:
        user = make_bench()
        user.fetch(maven, "com.example.gradle:module:1.0")
        assert user.fetched("com.example.gradle", "module", "1.0", "module-1.0.jar") == bench.jar("one").read_bytes()


def test_newest_of_a_dynamic_version_is_fetched(repository: MavenRepository, make_bench: MakeBench) -> None:
    bench, user = make_bench(), Gradle(make_bench())
    for version in ("1.9", "1.10", "2.0"):
        bench.deploy_file("maven-3.9", f"com.example.gradle:dynamic:{version}", bench.jar(version))
    assert user.fetch("com.example.gradle:dynamic:1.+") == [bench.jar("1.10").read_bytes()]
    assert user.fetch("com.example.gradle:dynamic:latest.release") == [bench.jar("2.0").read_bytes()]


def test_newest_build_of_a_snapshot_is_fetched(repository: MavenRepository, make_bench: MakeBench) -> None:
    bench, user = make_bench(), Gradle(make_bench())
    publisher = Gradle(bench, CREDENTIALS)
    for number, text in enumerate(("first", "second"), 1):
        publisher.publish("changing", "1.0-SNAPSHOT", bench.jar(text))
        metadata = repository.metadata("com/example/gradle/changing/1.0-SNAPSHOT")
        assert metadata.findtext("versioning/snapshot/buildNumber") == str(number)
        assert user.fetch("com.example.gradle:changing:1.0-SNAPSHOT") == [bench.jar(text).read_bytes()]
    bench.deploy_file("maven-3.9", "com.example.gradle:changing:1.0-SNAPSHOT", bench.jar("third"))
    # The module file of the second build is not of the third; Gradle reads the POM of the newest.
    assert user.fetch("com.example.gradle:changing:1.0-SNAPSHOT") == [bench.jar("third").read_bytes()]


def test_refresh_fetches_no_unchanged_file_again(repository: MavenRepository, make_bench: MakeBench) -> None:
    bench = make_bench()
    bench.deploy_file("maven-3.9", "com.example.gradle:refreshed:1.0", bench.jar("one"))
    host, port = repository.wire.parts.hostname, repository.wire.parts.port
    with TcpProxy((host or "", port or 0)).running() as line:
        user = Gradle(make_bench(repository.url.replace(f"{host}:{port}", line.host)))
        assert user.fetch("com.example.gradle:refreshed:1.0") == [bench.jar("one").read_bytes()]
        before = [head.line for head in line.requests("GET ")]
        assert [each for each in before if ".jar " in each]
        assert user.fetch("com.example.gradle:refreshed:1.0", "--refresh-dependencies") == [
            bench.jar("one").read_bytes()
        ]
        assert [head.line for head in line.requests("HEAD ") if ".jar " in head.line]
        assert not [
            head.line for head in line.requests("GET ")[len(before) :] if ".jar " in head.line or ".pom " in head.line
        ]


@pytest.mark.shows("refusal", by=("gradle",))
@pytest.mark.parametrize("name", ["once", "releases"])
def test_refusal_is_told(open_repository: OpenRepository, make_bench: MakeBench, name: str) -> None:
    bench = make_bench(open_repository(name).url)
    gradle = Gradle(bench, CREDENTIALS)
    gradle.publish("refused", "1.0", bench.jar("one"))
    version = {"once": "1.0", "releases": "1.1-SNAPSHOT"}[name]
    shown = gradle.publish("refused", version, bench.jar("two"), status=1)
    assert "Received status code 409 from server" in shown
    assert {"once": "overwriting is disabled", "releases": "Repository accepts only RELEASES"}[name] in shown


@pytest.mark.shows("private", by=("gradle",))
def test_header_credentials_are_tokens(
    open_repository: OpenRepository, make_bench: MakeBench, wire: HttpClient
) -> None:
    repository = open_repository("private")
    token = ok(wire.post_json("/api/user/token", {"name": "gradle"})).json["token"]
    for header, value in (("Authorization", f"Bearer {token}"),):
        bench = make_bench(repository.url)
        lines = (
            f"credentials(HttpHeaderCredentials) {{ name = '{header}'; value = '{value}' }}\n"
            "authentication { header(HttpHeaderAuthentication) }"
        )
        gradle = Gradle(bench, lines)
        gradle.publish("headers", "1.0", bench.jar("one"))
        assert gradle.fetch("com.example.gradle:headers:1.0") == [bench.jar("one").read_bytes()]
