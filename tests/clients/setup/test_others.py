"""cargo, Maven, Gradle, gem, Bundler, conda, go and helm work after ``pkgrepo setup --write`` as they are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cargo_clients import PLAIN
from tests.support.charts import make_chart
from tests.support.client_programs import CLIENTS
from tests.support.conda_packages import make_tar_bz2
from tests.support.container_clients import ADMIN, ok
from tests.support.gems import make_gem
from tests.support.go_modules import make_module, path
from tests.support.http_client import HttpClient
from tests.support.maven_clients import COPY, JAVA, MAVENS, MavenBench, maven_program
from tests.support.server_process import ServerProcess
from tests.support.setup_bench import SetupBench

pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]
NewUser = Callable[..., SetupBench]
RUSTUP = os.environ.get("RUSTUP_HOME") or str(Path.home() / ".rustup")


@pytest.mark.shows("setup", by=("cargo",))
@pytest.mark.parametrize("helper", [True, False], ids=["provider", "token in the file"])
def test_cargo(new_user: NewUser, helper: bool) -> None:
    bench = new_user("cargo", "rustc", RUSTUP_HOME=RUSTUP)
    if not helper:
        (bench.folder / "tools" / "cargo-credential-pkgrepo").unlink()
    name = f"crate-{'p' if helper else 't'}"
    bench.set_up("main/crates", "cargo")
    assert (bench.home / ".cargo" / "credentials.toml").exists() is not helper
    files = {"Cargo.toml": PLAIN.format(name=name, version="0.1.0"), "src/lib.rs": "pub fn answer() -> i32 { 42 }\n"}
    bench.run("cargo", "publish", "--no-verify", "--allow-dirty", cwd=bench.folder_of(name, files))
    app = bench.folder_of("app", {"Cargo.toml": PLAIN.format(name="app", version="0.1.0"), "src/lib.rs": "\n"})
    bench.run("cargo", "add", name, cwd=app)
    bench.run("cargo", "fetch", cwd=app)
    assert "cargo: ok: " in bench.check("main/crates", "cargo")
    bench.undo("main/crates")


POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>com.example.setup</groupId><artifactId>{name}</artifactId><version>1.0</version><packaging>pom</packaging>
  <build><plugins>
    <plugin><artifactId>maven-deploy-plugin</artifactId><version>3.1.4</version></plugin>
    <plugin><artifactId>maven-install-plugin</artifactId><version>3.1.4</version></plugin>
  </plugins></build>
  {more}
</project>
"""
TARGET = "<distributionManagement><repository><id>pkgrepo</id><url>{}</url></repository></distributionManagement>"
WANTED = (
    "<dependency><groupId>com.example.setup</groupId><artifactId>{}</artifactId><version>1.0</version>"
    "<type>pom</type></dependency>"
)
# of a user who takes plugins from elsewhere
SETTINGS = """<settings>
  <localRepository>{local}</localRepository>
  <mirrors>
    <mirror><id>central</id><mirrorOf>central</mirrorOf><url>{plugins}</url></mirror>
  </mirrors>
</settings>
"""


@pytest.mark.shows("setup")
@pytest.mark.parametrize("maven", MAVENS)
def test_maven(new_user: NewUser, maven: str) -> None:
    bench = new_user()
    mvn = str(maven_program(maven))
    (bench.folder / "tools" / "mvn").symlink_to(mvn)
    bench.environ["MAVEN_OPTS"] = f"-Duser.home={bench.home}"
    (bench.home / ".m2").mkdir()
    text = SETTINGS.format(local=bench.folder / "local", plugins=(JAVA / "plugins").as_uri())
    (bench.home / ".m2" / "settings.xml").write_text(text)
    bench.before = bench.files()
    bench.set_up("main/java", "maven")
    more = TARGET.format(f"{bench.url}/repositories/main/java")
    project = bench.folder_of("project", {"pom.xml": POM.format(name=maven, more=more)})
    bench.run(mvn, "-B", "deploy", cwd=project)
    consumer = POM.format(name="consumer", more=f"<dependencies>{WANTED.format(maven)}</dependencies>")
    (bench.folder / "local" / "com").rename(bench.folder / "what was installed")
    bench.run(mvn, "-B", COPY, cwd=bench.folder_of("consumer", {"pom.xml": consumer}))
    bench.undo("main/java")


GRADLE = """
apply plugin: 'maven-publish'
group = 'com.example.gradle'
version = '1.0'
publishing {{ publications {{ team(MavenPublication) {{ artifact(file('{jar}')) }} }} }}
configurations {{ wanted }}
dependencies {{ wanted 'com.example.gradle:setup:1.0' }}

// what Gradle gives to an init script
class Init {{
    Project project
    void settingsEvaluated(Closure made) {{
        made([pluginManagement: [repositories: project.buildscript.repositories],
              dependencyResolutionManagement: [repositories: project.repositories]])
    }}
    void allprojects(Closure made) {{ project.configure(project, made) }}
}}
apply from: '{init}', to: new Init(project: project)
tasks.register('show') {{ doLast {{ configurations.wanted.each {{ println "file: $it" }} }} }}
"""


@pytest.mark.shows("setup", by=("gradle",))
def test_gradle(new_user: NewUser, tmp_path: Path) -> None:
    bench = new_user()
    bench.set_up("main/java", "gradle")
    init = bench.home / ".gradle" / "init.d" / "pkgrepo.gradle"
    runner = MavenBench(tmp_path / "gradle", f"{bench.url}/repositories/main/java", None)
    jar = runner.jar("by gradle")
    (runner.folder / "build.gradle").write_text(GRADLE.format(init=init, jar=jar))
    runner.gradle("setup", "publishTeamPublicationToPkgrepoRepository")
    assert "setup-1.0.jar" in runner.gradle("consumer", "show")
    bench.undo("main/java")


@pytest.mark.shows("setup", by=("debian",))
def test_gem_and_bundler(new_user: NewUser) -> None:
    homes = {"GEM_HOME": "gems", "GEM_PATH": "gems"}
    bench = new_user("gem", "bundle", BUNDLE_SILENCE_ROOT_WARNING="1", BUNDLE_PATH="vendor")
    bench.environ |= {name: str(bench.folder / place) for name, place in homes.items()}
    bench.set_up("main/gems", "gem,bundler")
    (bench.folder / "by-setup-1.0.0.gem").write_bytes(make_gem("by-setup", "1.0.0"))
    bench.run("gem", "push", "by-setup-1.0.0.gem")
    bench.run("gem", "install", "by-setup", "--no-document")
    gemfile = f'source "{bench.url}/repositories/main/gems/"\ngem "by-setup"\n'
    bench.run("bundle", "install", cwd=bench.folder_of("project", {"Gemfile": gemfile}))
    assert "gem: ok: " in bench.check("main/gems", "gem")
    bench.undo("main/gems")


@pytest.mark.shows("setup", by=("rattler",))
def test_conda(new_user: NewUser, server: ServerProcess) -> None:
    python = CLIENTS / "conda" / "bin" / "python"
    if not python.exists():
        pytest.skip("conda is not installed (bin/test installs it where it finds Python 3.6)")
    channel = HttpClient(f"{server.url}/repositories/main/channel", ADMIN)
    ok(channel.put("/noarch/by-setup-1.0-0.tar.bz2", make_tar_bz2("by-setup", "1.0", "0")))
    bench = new_user()
    bench.set_up("main/channel", "conda")
    # what pip installs as conda refuses to run; the program behind it does not
    run = "import sys; from conda.cli.main import main; sys.argv[0] = 'conda'; sys.exit(main())"
    bench.environ["CONDA_DEFAULT_CHANNELS"] = ""
    assert "by-setup" in bench.run(str(python), "-c", run, "search", "by-setup")
    bench.undo("main/channel")


@pytest.mark.shows("setup", by=("go",))
def test_go(new_user: NewUser, server: ServerProcess) -> None:
    client = HttpClient(f"{server.url}/repositories/main/modules", ADMIN)
    module = "example.org/setup"
    ok(client.put(f"/{path(module, 'v1.0.0')}", make_module(module, "v1.0.0")))
    bench = new_user("go", GOTOOLCHAIN="local", GONOSUMDB="*", GOFLAGS="-modcacherw")
    bench.set_up("main/modules", "go")
    app = bench.folder_of("app", {"go.mod": "module example.org/main\n\ngo 1.20\n"})
    bench.run("go", "get", f"{module}@v1.0.0", cwd=app)
    assert "go: ok: " in bench.check("main/modules", "go")
    assert (bench.home / ".netrc").stat().st_mode & 0o077 == 0
    bench.undo("main/modules")


@pytest.mark.shows("setup")
@pytest.mark.parametrize("helm", ["helm", "helm-4"])
def test_helm(new_user: NewUser, server: ServerProcess, helm: str) -> None:
    name, data = f"by-{helm}", make_chart(f"by-{helm}", "1.0.0")
    ok(HttpClient(f"{server.url}/repositories/main/charts", ADMIN).post("/api/charts", data))
    bench = new_user(helm)
    bench.set_up("main/charts", "helm")
    bench.run("helm", "repo", "update")
    bench.run("helm", "pull", f"pkgrepo/{name}")
    assert (bench.folder / f"{name}-1.0.0.tgz").exists()
    assert "helm: ok: " in bench.check("main/charts", "helm")
    bench.undo("main/charts")
