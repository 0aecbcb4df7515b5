"""A folder with a Maven repository is taken in: checked, counted, and continued after a crash."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.configurations import config, hosted, proxy
from tests.support.data_folder import DataFolder, environment_of, pkgrepo
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import restarts

pytestmark = pytest.mark.server

POM = b"<project><artifactId>app</artifactId><licenses><license><name>MIT</name></license></licenses></project>"
PLUGINS = b"""<metadata><plugins>
<plugin><name>Demo</name><prefix>demo</prefix><artifactId>demo-maven-plugin</artifactId></plugin>
</plugins></metadata>"""
VERSIONS = b"""<metadata><groupId>com.example</groupId><artifactId>app</artifactId><versioning><release>9</release>
<versions><version>1.0</version><version>9</version></versions></versioning></metadata>"""
JAR = "com/example/app/1.0/app-1.0.jar"
BUILD = "1.1-20240102.030405-6"

FILES = {
    "com/example/app/1.0/app-1.0.pom": POM,
    JAR: b"jar" * 100_000,
    "com/example/app/1.0/app-1.0.jar.asc": b"signature",
    f"com/example/app/1.1-SNAPSHOT/app-{BUILD}.jar": b"snapshot",
    f"com/example/app/1.1-SNAPSHOT/app-{BUILD}.pom": POM,
    "archetype-catalog.xml": b"<archetype-catalog/>",
}


def write(root: Path, files) -> None:
    for path, data in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    write(root, FILES)
    sums = {f"{path}.sha1": hashlib.sha1(data).hexdigest().encode() for path, data in FILES.items()}
    write(root, sums)
    upper = hashlib.md5(FILES[JAR]).hexdigest().upper()
    write(root, {f"{JAR}.md5": f"{upper}  app-1.0.jar\n".encode()})
    write(root, {"com/example/maven-metadata.xml": PLUGINS, "com/example/app/maven-metadata.xml": VERSIONS})
    write(root, {"com/example/app/1.0/_remote.repositories": b"#", ".index/x": b"#"})
    return root


@pytest.fixture
def server(tmp_path: Path):
    """A running server, its data folder, and a client of its repository."""
    more = hosted("maven", "mvn", releases=config(push_rules='push_policy = "RELEASES"')) + hosted("python", "py")
    with restarts(tmp_path, more + proxy("npm", "npm", "http://127.0.0.1:1")) as run:
        started = run()
        yield started, DataFolder(tmp_path / "data"), HttpClient(started.url, (USER, PASSWORD))


def take(folder: DataFolder, source: Path, into="main/mvn", *options):
    return pkgrepo(folder, "import", "maven", str(source), "--into", into, *options)


def test_every_file_is_taken_in_and_a_second_run_takes_nothing(server, source) -> None:
    _, folder, client = server
    done = take(folder, source)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("took in 6 files (")
    for path, data in FILES.items():
        reply = client.get(f"/repositories/main/mvn/{path}")
        assert (reply.status, reply.body) == (200, data)
        sums = client.get(f"/repositories/main/mvn/{path}.sha512").text
        assert sums == hashlib.sha512(data).hexdigest()
    record = client.get("/api/package/main%2Fmvn/com.example:app/versions/1.0").json
    assert (record["license"], len(record["files"]), record["publisher"]) == ("MIT", 3, "system")
    metadata = client.get("/repositories/main/mvn/com/example/app/maven-metadata.xml").text
    assert "<version>1.0</version>" in metadata
    assert "<version>1.1-SNAPSHOT</version>" in metadata
    assert "<version>9</version>" not in metadata  # there are no files of it
    assert "<prefix>demo</prefix>" in client.get("/repositories/main/mvn/com/example/maven-metadata.xml").text
    snapshot = client.get("/repositories/main/mvn/com/example/app/1.1-SNAPSHOT/maven-metadata.xml").text
    assert f"<value>{BUILD}</value>" in snapshot
    assert client.get("/repositories/main/mvn/com/example/app/1.0/_remote.repositories").status == 404
    events = folder.rows("SELECT COUNT(*) FROM event")
    again = take(folder, source)
    assert again.returncode == 0
    assert again.stdout.startswith("took in 0 files (0 bytes) of 5 packages, of which 5 have not changed")
    compared = take(folder, source, "main/mvn", "--again")
    assert "6 files there already" in compared.stdout
    assert folder.rows("SELECT COUNT(*) FROM event") == events


def test_bad_files_are_reported_and_the_others_are_taken_in(server, source) -> None:
    _, folder, client = server
    assert client.put("/repositories/main/mvn/com/example/app/1.0/app-1.0.jar.asc", b"another").status == 201
    write(source, {
        "com/example/app/1.0/app-1.0.jar.sha1": b"0" * 40,
        "com/example/bad/1.0/bad-1.0.pom": b"<project>",
        "com/example/bad/1.0/bad-1.0.jar": b"x",
        "com/example/bad/1.0/bad-1.0.jar.md5": b"no checksum",
        "com/example/bad/maven-metadata.xml": b"<metadata",
    })  # fmt: skip
    (source / "com/example/bad/1.0/bad-1.0-link.jar").symlink_to("/etc/passwd")
    done = take(folder, source)
    assert done.returncode == 1
    assert "7 problems were found" in done.stderr
    told = done.stderr
    for sentence in (
        "com/example/app/1.0/app-1.0.jar: ", "app-1.0.jar.asc", "bad-1.0.jar: this is no md5 checksum",
        "bad-1.0-link.jar: symbolic links", "bad/maven-metadata.xml: ",
    ):  # fmt: skip
        assert sentence in told
    assert "Traceback" not in told
    get = lambda path: client.get(f"/repositories/main/mvn/com/example/{path}")  # noqa: E731
    assert get("app/1.0/app-1.0.jar").status == 404
    assert get("app/1.0/app-1.0.jar.asc").body == b"another"
    assert get("app/1.0/app-1.0.pom").status == 404  # a version is taken in whole or not at all
    assert get("bad/1.0/bad-1.0.pom").status == 404
    write(source, {f"{JAR}.sha1": hashlib.sha1(FILES[JAR]).hexdigest().encode()})
    assert "took in 2 files" in take(folder, source).stdout
    assert get("app/1.0/app-1.0.jar").status == 200
    assert get("app/1.0/app-1.0.pom").body == POM


def test_push_policy_applies(server, source) -> None:
    _, folder, client = server
    done = take(folder, source, "main/releases")
    assert done.returncode == 1
    assert "Repository accepts only RELEASES; 1.1-SNAPSHOT refused" in done.stderr
    assert client.get("/repositories/main/releases/com/example/app/1.0/app-1.0.pom").status == 200
    assert client.get("/repositories/main/releases/com/example/app/1.1-SNAPSHOT/").status == 404


def test_only_a_hosted_maven_repository_takes_a_folder(server, source) -> None:
    for into, code in (("main/none", 3), ("none/mvn", 3), ("main/py", 2), ("main/npm", 2), ("", 3)):
        done = take(server[1], source, into)
        assert (into, done.returncode, done.stdout) == (into, code, "")
        assert "Traceback" not in done.stderr


def test_a_run_that_was_killed_is_continued(server, tmp_path) -> None:
    _, folder, client = server
    root = tmp_path / "many"
    files = {
        f"com/many/m{n}/{v}/m{n}-{v}.{kind}": os.urandom(2000)
        for n in range(30) for v in range(4) for kind in ("jar", "module", "txt")
    }  # fmt: skip
    write(root, files)
    command = [sys.executable, "-c", "from pkgrepo.cli import main; main()", "import", "maven", str(root), "--into"]
    environ = environment_of(folder)
    counts = "SELECT COUNT(*) FROM file"
    for goal in (30, 200):
        process = subprocess.Popen([*command, "main/mvn"], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        while process.poll() is None and int(folder.rows(counts)[0][0]) < goal:
            pass
        process.kill()
        process.communicate()
        for name, taken in folder.rows(
            "SELECT v.package_id, COUNT(*) FROM file f JOIN version v ON v.id = f.version_id GROUP BY v.id"
        ):
            assert taken == 3, name  # a version is there whole or not at all
    done = take(folder, root)
    assert done.returncode == 0, done.stderr
    assert f"{len(files)} files" not in done.stdout
    assert int(folder.rows(counts)[0][0]) == len(files)
    for path, data in list(files.items())[::17]:
        assert client.get(f"/repositories/main/mvn/{path}").body == data
    assert "took in 0 files" in take(folder, root).stdout
