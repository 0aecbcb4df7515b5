"""A storage that moves from its folder to a bucket and back, while a server uses it."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder, environment_of, pkgrepo, wait_for
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_publish, make_tarball
from tests.support.python_index import PASSWORD, USER
from tests.support.s3_servers import BUCKET, KEY, S3Server, s3_server
from tests.support.server_process import ServerProcess, restarts

pytestmark = [pytest.mark.server, pytest.mark.folder("moves a folder to a bucket")]

SETTINGS = hosted("npm", "npm") + hosted("docker", "images")
LARGE = hashlib.shake_256(b"a layer").digest(17 * 1024 * 1024)  # three parts


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


def bucket(s3: S3Server, tmp_path: Path, prefix: str) -> list[str]:
    secret = tmp_path / "secret"
    secret.write_text(KEY.secret + "\n")
    options = {"--endpoint": s3.endpoint, "--bucket": BUCKET, "--prefix": prefix}
    options |= {"--access-key-id": KEY.id, "--secret-file": str(secret)}
    return [each for option in options.items() for each in option]


class Client:
    """Publishes to and reads from the repositories of a server."""

    def __init__(self, server: ServerProcess) -> None:
        self._npm = HttpClient(f"{server.url}/repositories/main/npm", (USER, PASSWORD))
        self._http = HttpClient(server.url, (USER, PASSWORD))

    def publish(self, version: str) -> None:
        reply = self._npm.put("/demo", make_publish("demo", version))
        assert reply.status == 201, reply.body

    def check(self, *versions: str) -> None:
        assert list(self._npm.get("/demo").json["versions"]) == list(versions)
        for version in versions:
            reply = self._npm.get(f"/demo/-/demo-{version}.tgz")
            assert (reply.status, reply.body) == (200, make_tarball("demo", version))

    def begin_push(self, data: bytes) -> str:
        """Send bytes of a blob in a chunk; returns where the upload goes on."""
        begun = self._http.post("/v2/main/images/app/blobs/uploads/", b"")
        assert begun.status == 202
        sent = self._http.ask("PATCH", path_of(begun.headers["location"]), data)
        assert sent.status == 202
        return path_of(sent.headers["location"])

    def end_push(self, place: str, data: bytes) -> None:
        mark = "&" if "?" in place else "?"
        assert self._http.put(f"{place}{mark}digest={digest_of(data)}", b"").status == 201

    def check_blob(self, data: bytes) -> None:
        reply = self._http.get(f"/v2/main/images/app/blobs/{digest_of(data)}")
        assert (reply.status, reply.body == data) == (200, True)


def path_of(url: str) -> str:
    return re.sub(r"^https?://[^/]*", "", url)


def digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def test_a_storage_moves_to_a_bucket_and_back_beside_a_server(tmp_path: Path, s3: S3Server) -> None:
    data = DataFolder(tmp_path / "data")
    target = bucket(s3, tmp_path, "there-and-back")
    with restarts(tmp_path, SETTINGS) as start:
        server = start()
        client = Client(server)
        client.publish("1.0.0")
        client.end_push(client.begin_push(LARGE), LARGE)
        pending = client.begin_push(b"suspended before the move")
        planned = pkgrepo(data, "migrate-storage", "main", *target, "--dry-run")
        assert re.fullmatch(r"would move \d+ blobs of \d+ bytes\n", planned.stdout), planned

        begun = pkgrepo(data, "migrate-storage", "main", *target)
        assert (begun.returncode, begun.stderr.count("Traceback")) == (0, 0), begun.stderr
        assert "main: 1 uploads began before the move; run this again when they have ended" in begun.stdout
        assert "main: moved 0 blobs" not in begun.stdout
        client.check("1.0.0")
        client.check_blob(LARGE)
        before = set(data.copies())
        client.publish("2.0.0")
        assert set(data.copies()) == before, "new bytes go to the bucket"
        client.end_push(pending, b"suspended before the move")
        client.check_blob(b"suspended before the move")

        refused = pkgrepo(data, "migrate-storage", "main", "--stopped")
        assert (refused.returncode, refused.stderr) == (5, "pkgrepo: a server uses storage main: stop it first\n")
        waiting = pkgrepo(data, "migrate-storage", "main")
        assert "run this again after" in waiting.stdout, waiting
        elsewhere = pkgrepo(data, "migrate-storage", "main", "--to-folder", str(tmp_path / "elsewhere"))
        assert elsewhere.returncode == 5
        client.check("1.0.0", "2.0.0")
        server.stop()

        ended = pkgrepo(data, "migrate-storage", "main", "--stopped")
        assert "the new place has all" in ended.stdout, ended
        for path in data.copies():
            (data.blobs / path).unlink()
        server = start()
        client = Client(server)
        client.check("1.0.0", "2.0.0")
        client.check_blob(LARGE)
        assert pkgrepo(data, "verify").returncode == 0
        client.publish("3.0.0")

        back = pkgrepo(data, "migrate-storage", "main", "--to-folder", str(tmp_path / "back"))
        assert back.returncode == 0, back.stderr
        client.check("1.0.0", "2.0.0", "3.0.0")
        server.stop()
        returned = pkgrepo(data, "migrate-storage", "main", "--stopped")
        assert "the new place has all" in returned.stdout, returned
        server = start()
        client = Client(server)
        client.publish("4.0.0")
        client.check("1.0.0", "2.0.0", "3.0.0", "4.0.0")
        client.check_blob(LARGE)
        wait_for(data.is_in_step, server)
        assert (tmp_path / "back" / "repositories" / "npm").exists(), "the readable layout is made again"
        server.stop()
        checked = pkgrepo(data, "verify")
        assert checked.returncode == 0, checked.stderr


def test_a_killed_move_goes_on_where_it_was(tmp_path: Path, s3: S3Server) -> None:
    data = DataFolder(tmp_path / "data")
    with restarts(tmp_path, SETTINGS) as start:
        server = start()
        client = Client(server)
        client.publish("1.0.0")
        blobs = [hashlib.shake_256(b"%d" % n).digest(6 * 1024 * 1024) for n in range(12)]
        for each in blobs:
            client.end_push(client.begin_push(each), each)
        command = [sys.executable, "-c", "from pkgrepo.cli import main; main()", "migrate-storage", "main"]
        target = bucket(s3, tmp_path, "killed")
        process = subprocess.Popen([*command, *target], env=environment_of(data), stderr=subprocess.DEVNULL)
        try:
            old = set(data.copies())
            wait_for(lambda: bool(data.named() - old) or process.poll() is not None, server)
        finally:
            process.kill()
            process.wait()
        client.check("1.0.0")
        for each in blobs:
            client.check_blob(each)
        server.stop()
        ended = pkgrepo(data, "migrate-storage", "main", "--stopped")
        assert "the new place has all" in ended.stdout, ended
        client = Client(start())
        client.check("1.0.0")
        for each in blobs:
            client.check_blob(each)


def test_a_damaged_copy_is_not_moved(tmp_path: Path, s3: S3Server) -> None:
    data = DataFolder(tmp_path / "data")
    with restarts(tmp_path, SETTINGS) as start:
        server = start()
        client = Client(server)
        client.end_push(client.begin_push(LARGE), LARGE)
        server.stop()
    for name in data.copies():
        path = data.blobs / name
        path.chmod(0o600)
        path.write_bytes(b"x" + path.read_bytes()[1:])
    refused = pkgrepo(data, "migrate-storage", "main", *bucket(s3, tmp_path, "damaged"), "--stopped")
    assert refused.returncode == 1, refused
    assert f"blob {digest_of(LARGE)[7:]} cannot be moved" in refused.stderr
    # Once a verification has said so, it does not hold up the others.
    assert pkgrepo(data, "verify").returncode == 1
    ended = pkgrepo(data, "migrate-storage", "main", "--stopped")
    assert "1 blobs are missing or damaged, as before" in ended.stdout, ended
    assert "the new place has all 0 blobs" in ended.stdout


REFUSED: list[tuple[list[str], int, str]] = [
    ([], 2, "say where to"),
    (["--bucket", "packages"], 2, "endpoint and bucket"),
    (["--bucket", "b", "--endpoint", "http://127.0.0.1:1"], 2, "--bucket: Expected"),
    (["--endpoint", "ftp://x", "--bucket", "packages"], 2, "--endpoint: Expected"),
    (["--secret-file", "/dev/null", "--bucket", "packages"], 2, "--access-key-id"),
    (["--to-folder", "elsewhere"], 5, "from a folder to a bucket"),
]


def test_a_place_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    data = DataFolder(tmp_path / "data")
    with restarts(tmp_path, SETTINGS) as start:
        start().stop()
    for options, code, sentence in REFUSED:
        refused = pkgrepo(data, "migrate-storage", "main", *options)
        assert (refused.returncode, sentence in refused.stderr) == (code, True), refused
    assert pkgrepo(data, "migrate-storage", "none").returncode == 3
    assert not data.rows("SELECT 1 FROM storage WHERE settings LIKE '%before%'")
