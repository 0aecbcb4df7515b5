"""Requests that people and scripts send with curl."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from tests.clients.maven.conftest import OpenRepository
from tests.support.client_programs import client_environment, program, run_client
from tests.support.maven_clients import MavenRepository
from tests.support.python_index import PASSWORD, USER

DATA = bytes(range(256)) * 8
POM = (
    "<project><modelVersion>4.0.0</modelVersion><groupId>com.example.curl</groupId>"
    "<artifactId>{name}</artifactId><version>{version}</version></project>"
)


class Curl:
    """Runs curl below the address of a repository."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.url = url
        self.environ = client_environment(folder / "home")

    def __call__(self, path: str, *options: str | Path, login: bool = True, status: int = 0) -> str:
        """Return what curl prints for a path; ``status`` is its exit status."""
        who = ["--user", f"{USER}:{PASSWORD}"] if login else []
        command = [program("curl"), "--silent", "--show-error", "--path-as-is", *who, *options, f"{self.url}/{path}"]
        return run_client(command, environ=self.environ, folder=self.folder, status=status).stdout

    def status(self, path: str, *options: str | Path, login: bool = True) -> int:
        """Return the HTTP status of the response."""
        output = () if "-o" in options else ("-o", "/dev/null")
        return int(self(path, *output, "--write-out", "%{http_code}", *options, login=login))


@pytest.fixture
def curl(tmp_path: Path, repository: MavenRepository) -> Curl:
    """curl for the public repository, with the admin's credentials."""
    (tmp_path / "data").write_bytes(DATA)
    return Curl(tmp_path, repository.url)


def test_any_text_is_stored_from_a_pipe(curl: Curl) -> None:
    (curl.folder / "test.txt").write_text("test\n")
    command = f"cat test.txt | curl -sS -u '{USER}:{PASSWORD}' -T - -w '%{{http_code}}' '{curl.url}/test/test.txt'"
    shown = run_client(["sh", "-c", command], environ=curl.environ, folder=curl.folder).stdout
    assert shown == "201"
    assert curl("test/test.txt", login=False) == "test\n"


def test_wrong_checksum_is_refused_and_changes_nothing(curl: Curl) -> None:
    path = "com/example/curl/summed/1/summed-1.jar"
    assert curl.status(path, "-T", "data") == 201
    (curl.folder / "bad.sha1").write_text("0" * 40)
    shown = curl(f"{path}.sha1", "-T", "bad.sha1", "--include")
    right = hashlib.sha1(DATA).hexdigest()
    assert f" 400 sha1 mismatch: server has {right}" in shown
    assert curl(f"{path}.sha1") == right
    (curl.folder / "good.sha1").write_text(f"{right.upper()}  summed-1.jar\n")
    assert curl.status(f"{path}.sha1", "-T", "good.sha1") == 201


def test_anonymous_upload_is_refused_before_its_body(curl: Curl) -> None:
    shown = curl("p.jar", "-T", "data", "-H", "Expect: 100-continue", "--verbose", login=False)
    assert "HTTP/1.1 401" in shown
    assert "100 Continue" not in shown
    assert 'www-authenticate: basic realm="pkgrepo"\n' in shown.lower().replace("\r", "")
    shown = curl("p.jar", "-T", "data", "-u", f"{USER}:wrong", "-w", "%{http_code}", login=False)
    assert "401" in shown


def test_ranges_and_conditions(curl: Curl) -> None:
    path = "com/example/curl/ranged/1/ranged-1.bin"
    assert curl.status(path, "-T", "data") == 201
    got = curl.folder / "got"
    for option, expected in (("100-199", DATA[100:200]), ("-10", DATA[-10:]), ("2000-", DATA[2000:])):
        assert curl.status(path, "-r", option, "-o", got) == 206
        assert got.read_bytes() == expected
    got.write_bytes(DATA[:1000])
    curl(path, "-C", "-", "-o", got)
    assert got.read_bytes() == DATA
    assert curl.status(path, "-z", got) == 304
    assert curl.status(path, "-r", "5000-") == 416
    shown = curl(path, "--compressed", "--dump-header", "headers", "-o", got)
    headers = (curl.folder / "headers").read_text().lower()
    assert shown == ""
    assert "content-encoding" not in headers
    assert got.read_bytes() == DATA
    wanted = {line for line in headers.splitlines() if not line.startswith(("date", "x-request-id"))}
    head = {line for line in curl(path, "--head").lower().splitlines() if not line.startswith(("date", "x-request-id"))}
    assert head == wanted
    etag = f'"{{sha1{{{hashlib.sha1(DATA).hexdigest()}}}}}"'
    assert f"etag: {etag}" in headers
    assert f"x-checksum-sha512: {hashlib.sha512(DATA).hexdigest()}" in headers


@pytest.mark.parametrize("path", ["../../etc/passwd", "a/%2e%2e/b", "a%2Fb/c", "a//b", "a/%00/b", "a/" + "x" * 300])
def test_hostile_paths_are_refused(curl: Curl, path: str) -> None:
    expected = (404, 400) if path.startswith("..") else (400,)  # the first leaves the repository's own address
    assert curl.status(path) in expected
    assert curl.status(path, "-T", "data") in (*expected, 405)


def test_deleting_changes_the_metadata(curl: Curl, repository: MavenRepository) -> None:
    for version in ("1.0", "1.1"):
        assert curl.status(f"com/example/curl/gone/{version}/gone-{version}.jar", "-T", "data") == 201
    assert repository.versions("com/example/curl/gone") == ["1.0", "1.1"]
    assert curl.status("com/example/curl/gone/1.1/", "-X", "DELETE") == 204
    assert repository.versions("com/example/curl/gone") == ["1.0"]
    assert curl.status("com/example/curl/gone/1.1/gone-1.1.jar") == 404
    assert curl.status("com/example/curl/gone", "-X", "DELETE") == 204
    assert curl.status("com/example/curl/gone/maven-metadata.xml") == 404


def test_listing_leads_to_each_file(curl: Curl) -> None:
    assert curl.status("com/example/curl/listed/1+b/listed-1+b.jar", "-T", "data") == 201
    assert curl.status("com/example/curl/listed", "-L", "-H", "Accept: text/html", login=False) == 200
    shown = curl("com/example/curl/listed/")
    assert 'href="maven-metadata.xml"' in shown
    assert ">1+b/</a>" in shown
    assert ">listed-1+b.jar.sha256</a>" in curl("com/example/curl/listed/1+b/")
    assert curl.status("com/example/curl/nothing/") == 404


def bundle(folder: Path, name: str, *artifacts: str, wrong: str = "") -> Path:
    """Make a bundle with version 1.0 of each artifact; the sha1 of the artifact ``wrong`` is wrong."""
    path = folder / name
    with zipfile.ZipFile(path, "w") as archive:
        for each in artifacts:
            stem = f"com/example/curl/{each}/1.0/{each}-1.0"
            archive.writestr(f"{stem}.pom", POM.format(name=each, version="1.0"))
            archive.writestr(f"{stem}.jar", DATA)
            archive.writestr(f"{stem}.jar.sha1", "0" * 40 if each == wrong else hashlib.sha1(DATA).hexdigest())
    return path


def test_bundle_publishes_all_or_nothing(curl: Curl, open_repository: OpenRepository) -> None:
    repository = open_repository("bundles")
    curl = Curl(curl.folder, repository.url)
    as_zip = ("-H", "Content-Type: application/zip", "-H", "Accept: application/json")
    bad = bundle(curl.folder, "bad.zip", "one", "two", wrong="two")
    shown = curl("deploy?wait=true", *as_zip, "--data-binary", f"@{bad}")
    assert "FAILED" in shown
    assert "com/example/curl/two/1.0/two-1.0.jar" in shown
    assert curl.status("com/example/curl/one/1.0/") == 404
    good = bundle(curl.folder, "good.zip", "one", "two")
    shown = curl("deploy?wait=true", *as_zip, "--data-binary", f"@{good}")
    assert "PUBLISHED" in shown
    for each in ("one", "two"):
        assert repository.versions(f"com/example/curl/{each}") == ["1.0"]
        repository.check_checksums(f"com/example/curl/{each}/1.0/{each}-1.0.jar", DATA)
