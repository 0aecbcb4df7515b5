"""A client of a Maven repository, and folders to run Maven, Ivy, Gradle and coursier in."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

import pytest
from defusedxml import ElementTree

from tests.support.client_programs import CLIENTS, ROOT, absent, client_environment, program, run_client
from tests.support.http_client import HttpClient, Reply
from tests.support.java_programs import OPTIONS, compiled, joined, shared_classes
from tests.support.python_index import PASSWORD, USER
from tests.support.resident_java import ResidentProgram, resident_gradle, resident_maven

ADMIN = (USER, PASSWORD)
MAVENS = ("maven-3.8", "maven-3.9", "maven-4")  # the first is the machine's
JAVA = CLIENTS / "java"
PROJECT = ROOT / "tests" / "clients" / "maven" / "project"
DEPLOY = "org.apache.maven.plugins:maven-deploy-plugin:3.1.4:deploy-file"
GET = "org.apache.maven.plugins:maven-dependency-plugin:3.9.0:get"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy-dependencies"

SETTINGS = """<settings>
  <localRepository>{local}</localRepository>
  <interactiveMode>false</interactiveMode>
  <mirrors>
    <mirror><id>central</id><mirrorOf>central</mirrorOf><url>{plugins}</url></mirror>
  </mirrors>
  <pluginGroups><pluginGroup>com.example.team</pluginGroup></pluginGroups>
  {servers}
  <profiles>
    <profile>
      <id>lab</id>
      <repositories><repository>{repository}</repository></repositories>
    </profile>
    <profile>
      <id>plugins</id>
      <pluginRepositories><pluginRepository>{repository}</pluginRepository></pluginRepositories>
    </profile>
  </profiles>
  <activeProfiles><activeProfile>lab</activeProfile></activeProfiles>
</settings>
"""
SERVER = "<servers><server><id>lab</id><username>{}</username><password>{}</password></server></servers>"
CONSUMER = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example</groupId>
  <artifactId>consumer</artifactId>
  <version>1</version>
  <dependencies>{}</dependencies>
</project>
"""
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
ALWAYS = "<enabled>true</enabled><updatePolicy>always</updatePolicy>"


def java_client(name: str) -> Path:
    """Return the folder of a client of the JVM; if it is not installed, as in ``client_programs.client``."""
    if not (JAVA / ".installed").exists() or not (JAVA / name).exists():
        absent(f"the client {name} is not installed (bin/test installs it)")
    return JAVA / name


def maven_program(name: str) -> Path:
    """Return the path of one of ``MAVENS``."""
    java_client("plugins")
    return program("mvn") if name == MAVENS[0] else java_client(name) / "bin" / "mvn"


class MavenRepository:
    """The repository at a path of a server, seen with plain HTTP as the admin; ``url`` has no slash at its end."""

    def __init__(self, server_url: str, path: str, auth: tuple[str, str] | None = ADMIN) -> None:
        self.url = f"{server_url}/repositories/{path}"
        self.wire = HttpClient(self.url, auth)

    def get(self, path: str) -> bytes:
        """Return the bytes at a path, which must be there."""
        reply = self.wire.get(f"/{path}")
        assert reply.status == 200, (path, reply.status, reply.text)
        return reply.body

    def put(self, path: str, body: bytes) -> Reply:
        """PUT bytes, which must succeed."""
        reply = self.wire.put(f"/{path}", body)
        assert reply.status in (200, 201, 204), (path, reply.status, reply.reason)
        return reply

    def metadata(self, directory: str) -> Element:
        """Return the metadata of a directory without namespaces, after a check of all its checksums."""
        path = f"{directory}/maven-metadata.xml"
        content = self.get(path)
        self.check_checksums(path, content)
        root = ElementTree.fromstring(content)
        for element in root.iter():
            element.tag = element.tag.rpartition("}")[2]
        return root

    def versions(self, directory: str) -> list[str]:
        """Return the versions that the metadata of an artifact's directory lists."""
        return [each.text or "" for each in self.metadata(directory).iter("version")]

    def check_checksums(self, path: str, content: bytes) -> None:
        """Check that the four checksum files of a path fit its content."""
        for algorithm in ("md5", "sha1", "sha256", "sha512"):
            assert self.get(f"{path}.{algorithm}").decode() == hashlib.new(algorithm, content).hexdigest()


class MavenBench:
    """
    A folder with an empty local repository, and settings with the server ``lab``: the repository at ``url``.

    Without ``auth`` requests are anonymous. Plugins come from files, so that clients talk to ``url`` only, or with
    ``plugins`` from the repository at that URL.
    """

    def __init__(
        self, folder: Path, url: str, auth: tuple[str, str] | None = ADMIN, plugins: str | None = None
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.url = url
        self.plugins = plugins or (JAVA / "plugins").as_uri()
        self.home = folder / "home"
        self.local = folder / "local"
        self.settings = folder / "settings.xml"
        self.jvm = (f"-Duser.home={self.home}", *OPTIONS)
        self.environ = client_environment(self.home, MAVEN_OPTS=" ".join(self.jvm))
        self.log_in(auth)

    def log_in(self, auth: tuple[str, str] | None) -> None:
        """Use other credentials from now on, or none."""
        policies = f"<releases>{ALWAYS}</releases><snapshots>{ALWAYS}</snapshots>"
        self.settings.write_text(
            SETTINGS.format(
                local=self.local,
                plugins=self.plugins,
                servers="" if auth is None else SERVER.format(*auth),
                repository=f"<id>lab</id><url>{self.url}</url>{policies}",
            )
        )

    def run(self, maven: str, *arguments: str | Path, cwd: Path | None = None, status: int | None = 0) -> str:
        """Run a Maven with strict checksums in its resident process, and return its output; see ``run_client``."""
        return self._run(maven, [*self._options, *arguments], cwd=cwd, status=status)

    def _run(
        self, maven: str, arguments: Sequence[str | Path], *, cwd: Path | None = None, status: int | None = 0
    ) -> str:
        return self._ask(resident_maven(maven_program(maven)), maven, arguments, cwd=cwd, status=status)

    def gradle(self, *arguments: str, status: int | None = 0) -> str:
        """Run tasks of the build script of this folder, see Gradle.java, and return the output."""
        resident = resident_gradle(java_client("gradle"))
        return self._ask(resident, "gradle", [self.home, *arguments], status=status)

    def _ask(
        self,
        resident: ResidentProgram,
        name: str,
        arguments: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        status: int | None = 0,
    ) -> str:
        words = [str(each) for each in arguments]
        ended, output = resident.run(cwd or self.folder, words)
        if status is not None and ended != status:
            pytest.fail(f"{name} {' '.join(words)} exited with {ended}, not {status}:\n{output}")
        return output

    @property
    def _options(self) -> tuple[str | Path, ...]:
        return ("--batch-mode", "--no-transfer-progress", "--strict-checksums", "--settings", self.settings)

    def jar(self, text: str) -> Path:
        """Make a jar whose only entry has this text."""
        path = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.jar"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(zipfile.ZipInfo("text"), text)  # with a fixed time: the same text makes the same bytes
        return path

    def _deployment(self, coordinates: str, jar: Path, *options: str | Path) -> list[str | Path]:
        """Return the arguments of ``deploy_file``."""
        group, artifact, version = coordinates.split(":")
        names = (f"-DgroupId={group}", f"-DartifactId={artifact}", f"-Dversion={version}", "-Dpackaging=jar")
        target = (f"-Dfile={jar}", "-DrepositoryId=lab", f"-Durl={self.url}")
        return [*self._options, DEPLOY, *names, *target, *options]

    def deploy_file(self, maven: str, coordinates: str, jar: Path, *options: str | Path, status: int | None = 0) -> str:
        """Deploy a jar as ``group:artifact:version`` with a generated POM, and return the output."""
        return self._run(maven, self._deployment(coordinates, jar, *options), status=status)

    def deploy_together(self, maven: str, artifact: str, jars: dict[str, Path]) -> None:
        """
        Deploy jars as versions of ``group:artifact`` at the same time.

        Each is a run of Maven's own program, and has a local repository of its own, since Maven 3.9 locks nothing
        between processes.
        """
        processes = []
        for version, jar in jars.items():
            local = self.folder / f"local-{version}"
            shutil.copytree(self.local, local, dirs_exist_ok=True)
            arguments = self._deployment(f"{artifact}:{version}", jar, f"-Dmaven.repo.local={local}")
            processes.append(
                subprocess.Popen(
                    [maven_program(maven), *arguments],
                    env=self.environ,
                    cwd=self.folder,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    text=True,
                )
            )
        outputs = [process.communicate()[0] for process in processes]
        failed = [output for process, output in zip(processes, outputs, strict=True) if process.returncode]
        assert not failed, failed[0]

    def fetch(self, maven: str, coordinates: str, *options: str, status: int | None = 0) -> str:
        """Fetch ``group:artifact:version[:packaging[:classifier]]`` into the local repository."""
        where = f"-DremoteRepositories=lab::::{self.url}"
        return self.run(maven, GET, f"-Dartifact={coordinates}", where, "-Dtransitive=false", *options, status=status)

    def dependencies(self, maven: str, *coordinates: str) -> dict[str, bytes]:
        """Resolve a project with these dependencies (``group:artifact:version``); the jars by name."""
        folder = self.folder / "consumer"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        wanted = "".join(DEPENDENCY.format(*each.split(":")) for each in coordinates)
        (folder / "pom.xml").write_text(CONSUMER.format(wanted))
        self.run(maven, COPY, f"-DoutputDirectory={folder / 'jars'}", cwd=folder)
        return {path.name: path.read_bytes() for path in (folder / "jars").iterdir()}

    def fetched(self, group: str, artifact: str, version: str, filename: str) -> bytes:
        """Return the bytes of a file in the local repository."""
        return (self.local / group.replace(".", "/") / artifact / version / filename).read_bytes()

    def project(self, version: str) -> Path:
        """Make a copy of the build of several modules with this version, and return its folder."""
        place = self.folder / f"project-{version}"
        shutil.copytree(PROJECT, place)
        for path in (*place.rglob("pom.xml"), *place.rglob("*.java")):
            path.write_text(path.read_text().replace("1.0-SNAPSHOT", version))
        return place

    def deploy(self, maven: str, project: Path, *options: str, status: int | None = 0) -> str:
        """Build and deploy a project, and return the output."""
        target = f"-DaltDeploymentRepository=lab::default::{self.url}"
        return self.run(maven, "clean", "deploy", target, *options, cwd=project, status=status)

    def java(self, classes: Sequence[Path], *arguments: str | Path, status: int | None = 0) -> str:
        """Run Java with these archives as class path, and return the output."""
        command = [program("java"), *self.jvm, "-cp", joined(classes), *arguments]
        return run_client(command, environ=self.environ, folder=self.folder, status=status).stdout

    def java_program(
        self,
        main: str | Path,
        classes: Sequence[Path],
        *arguments: str | Path,
        options: Sequence[str] = (),
        status: int = 0,
    ) -> str:
        """Run a class of these archives, or a program of one Java file that uses them, and return the output."""
        if isinstance(main, Path):
            main, classes = main.stem, [compiled(main, classes), *classes]
        with shared_classes(main, classes) as shared:
            return self.java(classes, shared, *options, main, *arguments, status=status)


def printed(output: str) -> str:
    """Return the output of a client as one line, without the words that Maven puts before each."""
    return " ".join(re.sub(r"\[(ERROR|WARNING|INFO)\]", "", output).split())
