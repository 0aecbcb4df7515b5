"""Ivy, coursier and sbt, which choose credentials by realm and write no metadata."""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pkgrepo.formats.maven.setup import ID, snippets
from tests.clients.maven.conftest import MakeBench, OpenRepository
from tests.support.client_programs import ROOT, program, run_client
from tests.support.maven_clients import MAVENS, MavenBench, MavenRepository, java_client
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess

COURSIER = ROOT / "tests" / "clients" / "java" / "Coursier.java"
SBT_PROJECT = ROOT / "tests" / "clients" / "maven" / "sbt-project"

IVY_SETTINGS = """<ivysettings>
  <settings defaultResolver="lab"/>
  <credentials host="{host}" realm="pkgrepo" username="{user}" passwd="{password}"/>
  <resolvers>
    <ibiblio name="lab" m2compatible="true" root="{url}/" useMavenMetadata="{metadata}" checksums="sha1,md5"/>
  </resolvers>
</ivysettings>
"""
IVY_MODULE = """<ivy-module version="2.0">
  <info organisation="com.example.ivy" module="{name}" revision="{version}" status="release"/>
  <publications>
    <artifact name="{name}" type="jar" ext="jar"/>
    <artifact name="{name}" type="pom" ext="pom"/>
  </publications>
</ivy-module>
"""
POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example.ivy</groupId>
  <artifactId>{name}</artifactId>
  <version>{version}</version>
</project>
"""


class Ivy:
    """Runs Ivy in a bench."""

    def __init__(self, bench: MavenBench, *, metadata: bool = True) -> None:
        self._bench = bench
        self._settings = bench.folder / "ivysettings.xml"
        self._settings.write_text(
            IVY_SETTINGS.format(
                host=urlsplit(bench.url).hostname,
                user=USER,
                password=PASSWORD,
                url=bench.url,
                metadata=str(metadata).lower(),
            )
        )
        (snippet,) = [each for each in snippets(bench.url, publishes=True) if each["title"] == "Publish with Ivy"]
        self._publishing = bench.folder / "publishing.xml"
        self._publishing.write_text(snippet["text"].replace("USERNAME", USER).replace("TOKEN", PASSWORD))

    def publish(self, name: str, version: str, jar: Path, *options: str, status: int = 0) -> str:
        """Publish a jar with a POM as ``com.example.ivy:name:version``."""
        folder = self._bench.folder
        (folder / "ivy.xml").write_text(IVY_MODULE.format(name=name, version=version))
        (folder / f"{name}-{version}.pom").write_text(POM.format(name=name, version=version))
        shutil.copy(jar, folder / f"{name}-{version}.jar")
        pattern = f"{folder}/[artifact]-[revision].[ext]"
        return self._run(
            "-ivy",
            "ivy.xml",
            "-publish",
            f"{ID}-publish",
            "-publishpattern",
            pattern,
            "-revision",
            version,
            *options,
            settings=self._publishing,
            status=status,
        )

    def fetch(self, name: str, version: str) -> list[bytes]:
        """Fetch ``com.example.ivy:name:version``, and return the bytes of its jars."""
        got = self._bench.folder / "got"
        shutil.rmtree(got, ignore_errors=True)
        self._run(
            "-dependency",
            "com.example.ivy",
            name,
            version,
            "-confs",
            "default",
            "-retrieve",
            f"{got}/[artifact]-[revision].[ext]",
        )
        return [path.read_bytes() for path in sorted(got.glob("*.jar"))]

    def _run(self, *arguments: str, settings: Path | None = None, status: int = 0) -> str:
        classes = sorted(java_client("ivy").glob("*.jar"))
        cache = self._bench.folder / "ivy-cache"
        options = ["-settings", settings or self._settings, "-cache", cache]
        return self._bench.java_program("org.apache.ivy.Main", classes, *options, *arguments, status=status)


def coursier(bench: MavenBench, coordinates: str, *login: str, status: int = 0) -> list[bytes] | str:
    """Fetch an artifact, and return the bytes of its files; of a failure, return the output."""
    bench.environ["COURSIER_CACHE"] = str(bench.folder / "coursier-cache")
    bench.environ["COURSIER_TTL"] = "0s"
    user, password = login or ("", "")
    classes = sorted(java_client("coursier").glob("*.jar"))
    shown = bench.java_program(COURSIER, classes, bench.url, user, password, coordinates, status=status)
    if status:
        return shown
    return [Path(line).read_bytes() for line in shown.splitlines() if line.endswith(".jar")]


@pytest.mark.shows("publish", "install", by=("ivy",))
@pytest.mark.parametrize("metadata", [True, False])
def test_ivy_publishes_and_fetches_the_latest_release(
    repository: MavenRepository, make_bench: MakeBench, metadata: bool
) -> None:
    bench, name = make_bench(), f"app-{metadata}".lower()
    publisher = Ivy(bench)
    for version in ("1.9", "1.10"):
        publisher.publish(name, version, bench.jar(version))
    assert repository.versions(f"com/example/ivy/{name}") == ["1.9", "1.10"]
    assert Ivy(make_bench(), metadata=metadata).fetch(name, "latest.release") == [bench.jar("1.10").read_bytes()]
    for maven in MAVENS:
        user = make_bench()
        user.fetch(maven, f"com.example.ivy:{name}:1.9")
        assert user.fetched("com.example.ivy", name, "1.9", f"{name}-1.9.jar") == bench.jar("1.9").read_bytes()


@pytest.mark.shows("private", by=("ivy",))
def test_ivy_logs_in_by_realm(open_repository: OpenRepository, make_bench: MakeBench) -> None:
    bench = make_bench(open_repository("private").url)
    Ivy(bench).publish("secret", "1.0", bench.jar("secret"))
    assert Ivy(make_bench(bench.url)).fetch("secret", "1.0") == [bench.jar("secret").read_bytes()]


@pytest.mark.shows("refusal", by=("ivy",))
def test_ivy_tells_a_refusal(open_repository: OpenRepository, make_bench: MakeBench) -> None:
    bench = make_bench(open_repository("once").url)
    ivy = Ivy(bench)
    ivy.publish("refused", "1.0", bench.jar("first"))
    assert "overwriting is disabled" in ivy.publish("refused", "1.0", bench.jar("second"), "-overwrite", status=1)


@pytest.mark.shows("install", by=("coursier",))
def test_coursier_fetches_releases_and_snapshots(make_bench: MakeBench) -> None:
    bench = make_bench()
    for version, text in (("1.0", "one"), ("1.1-SNAPSHOT", "first"), ("1.1-SNAPSHOT", "second")):
        bench.deploy_file("maven-3.9", f"com.example.coursier:app:{version}", bench.jar(text))
        assert coursier(make_bench(), f"com.example.coursier:app:{version}") == [bench.jar(text).read_bytes()]
    assert coursier(make_bench(), "com.example.coursier:app:latest.release") == [bench.jar("one").read_bytes()]
    assert coursier(make_bench(), "com.example.coursier:app:[1.0,1.1)") == [bench.jar("one").read_bytes()]


@pytest.mark.shows("private", by=("coursier",))
def test_coursier_logs_in(open_repository: OpenRepository, make_bench: MakeBench) -> None:
    bench = make_bench(open_repository("private").url)
    bench.deploy_file("maven-3.9", "com.example.coursier:secret:1.0", bench.jar("secret"))
    assert coursier(make_bench(bench.url), "com.example.coursier:secret:1.0", USER, PASSWORD) == [
        bench.jar("secret").read_bytes()
    ]
    assert "unauthorized" in coursier(make_bench(bench.url), "com.example.coursier:secret:1.0", status=1)


class Sbt:
    """Runs sbt in a bench, with copies of what it needs to build."""

    def __init__(self, bench: MavenBench) -> None:
        self._launcher = next(java_client("sbt").glob("*.jar"))
        self._bench = bench
        self._project = bench.folder / "sbt-project"
        shutil.copytree(SBT_PROJECT, self._project)
        shutil.copytree(self._launcher.parent / "coursier", bench.folder / "coursier")

    def run(self, version: str, *commands: str, dependency: str = "", status: int = 0) -> str:
        """Run commands in the project of this version."""
        folder = self._bench.folder
        environ = {**self._bench.environ, "LAB_URL": self._bench.url, "LAB_VERSION": version, "LAB_PASSWORD": PASSWORD}
        if dependency:
            environ |= {"LAB_DEPENDENCY": dependency, "LAB_NAME": "consumer"}
        options = (
            f"-Dsbt.boot.directory={self._launcher.parent / 'boot'}",
            f"-Dsbt.coursier.home={folder / 'coursier'}",
            f"-Dsbt.global.base={folder / 'sbt-base'}",
            f"-Dsbt.ivy.home={folder / 'ivy'}",
            "-Dsbt.color=false",
            "-Dsbt.supershell=false",
        )
        command = [program("java"), *self._bench.jvm, *options, "-jar", self._launcher, *commands]
        return run_client(command, environ=environ, folder=self._project, status=status).stdout


@pytest.mark.shows("publish", "install", by=("sbt",))
def test_sbt_publishes_and_fetches(
    server: ServerProcess, open_repository: OpenRepository, make_bench: MakeBench
) -> None:
    """Releases once, and the same snapshot again and again, into a private repository by its realm."""
    repository = open_repository("private")
    sbt = Sbt(make_bench(repository.url))
    sbt.run("0.1-SNAPSHOT", "publish", "publish", 'set version := "0.2"', "publish")  # a start takes ten seconds
    snapshot = "PUT /repositories/main/private/com/example/sbt/app/0.1-SNAPSHOT/app-0.1-SNAPSHOT.jar 20"
    assert len(server.lines(snapshot, 2)) == 2
    assert repository.versions("com/example/sbt/app") == ["0.1-SNAPSHOT", "0.2"]
    show, other = (
        "export Compile/dependencyClasspath",
        'set libraryDependencies := Seq("com.example.sbt" % "app" % "0.2")',
    )
    shown = sbt.run("9", show, other, show, dependency="com.example.sbt:app:0.1-SNAPSHOT")
    for version in ("0.1-SNAPSHOT", "0.2"):
        jar = f"app-{version}.jar"
        repository.check_checksums(path := f"com/example/sbt/app/{version}/{jar}", repository.get(path))
        assert jar in shown
