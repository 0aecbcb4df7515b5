"""Backups of a running server, their check by a restore, and restored servers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pkgrepo.storage.secret_box import SecretBox
from tests.support import server_databases
from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder, pkgrepo, wait_for
from tests.support.first_publishes import Publisher
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_publish
from tests.support.postgresql import as_url
from tests.support.postgresql_catalogs import Databases
from tests.support.python_index import PASSWORD, USER
from tests.support.receivers import Receiver
from tests.support.s3_servers import BUCKET, KEY, s3_server
from tests.support.server_process import restarts

pytestmark = pytest.mark.server

CREDENTIALS = {"AWS_ACCESS_KEY_ID": KEY.id, "AWS_SECRET_ACCESS_KEY": KEY.secret}


def backups(folder: Path, **others: object) -> str:
    """The settings of a server that makes backups into a folder."""
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in others.items())
    return f'[backup]\ndestination = "{folder}"\n{lines}'


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run a receiver of webhooks."""
    receiver = Receiver()
    try:
        yield receiver
    finally:
        receiver.close()


def flip(path: Path) -> None:
    """Change one bit of a file, whose size stays."""
    path.chmod(0o600)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def copies(folder: Path, magic: bytes) -> list[Path]:
    """The copies in a backup that begin with these bytes."""
    found = [each for each in (folder / "content" / "blobs").rglob("*.*") if each.is_file()]
    return [each for each in found if each.read_bytes().startswith(magic)]


def check_failures_leave_nothing(new: DataFolder, place: Path) -> None:
    """Restores that end before a blob is restored, into a folder that is there, and into one below a new one."""
    wrong, there = new.folder.parent / "wrong.key", new.folder.parent / "there"
    SecretBox.load(wrong)
    (there / "spool").mkdir(parents=True)
    empty = new.folder.parent / "empty"
    empty.mkdir()
    for options, said in (
        ([str(place), "--backup", "zzz"], "backup 'zzz' does not exist"),
        ([str(place), "--key-file", str(wrong)], f"{wrong} is not the key of the server"),
        ([str(place), "--key-file", __file__], f"{__file__} is not the key of the server"),
        ([str(empty)], "does not exist"),
        ([f"{place}.missing"], "does not exist"),
    ):
        for target in (there, new.folder / "below"):
            failed = pkgrepo(new, "restore", *options, "--into", str(target))
            assert (failed.returncode != 0, said in failed.stderr) == (True, True), failed
            assert not new.folder.exists(), failed
            assert [each.name for each in there.rglob("*")] == ["spool"], failed


@pytest.mark.folder("restores a folder")
def test_every_format_is_proved_and_restored(tmp_path: Path) -> None:
    data, new, place = DataFolder(tmp_path / "data"), DataFolder(tmp_path / "new"), tmp_path / "backups"
    with restarts(tmp_path) as start:
        server = start()
        publisher = Publisher(server.url, (USER, PASSWORD))
        published = list(publisher.publish_all())
        made = pkgrepo(data, "backup", str(place))
        assert (made.returncode, "1 backups are kept" in made.stdout) == (0, True), made
        server.stop()
        key = str(data.folder / "credentials.key")

        proved = pkgrepo(new, "restore", str(place), "--check", "--json", "--scratch", str(tmp_path / "scratch"))
        assert proved.returncode == 0, proved.stderr
        proof = json.loads(proved.stdout)
        assert (proof["problems"], len(proof["formats"])) == ([], len(published))
        assert proof["fetched"] >= len(published)
        assert list((tmp_path / "scratch").iterdir()) == []

        if server_databases.SERVER:
            server_databases.drop_database(server_databases.SERVER[0], new.folder)
        refused = pkgrepo(new, "restore", str(place), "--into", str(tmp_path))
        assert (refused.returncode, "is not empty" in refused.stderr) == (5, True)
        check_failures_leave_nothing(new, place)
        if not server_databases.SERVER:
            restored = pkgrepo(new, "restore", str(place), "--into", str(new.folder), "--key-file", key)
            assert (restored.returncode, "1 storages" in restored.stdout) == (0, True), restored
            data.folder.rename(tmp_path / "old")
            new.folder.rename(data.folder)
            server = start()
            for each in published:
                Publisher(server.url, (USER, PASSWORD)).check(each)
            wait_for(data.is_in_step, server)
            assert pkgrepo(data, "verify").returncode == 0


@pytest.mark.folder("damages a folder")
@pytest.mark.skipif("config.getoption('--postgresql')", reason="the backup is the same")
def test_the_job_turns_red_when_a_byte_of_the_backup_has_changed(tmp_path: Path) -> None:
    place = tmp_path / "backups"
    settings = backups(place, keep=2) + '[webhooks]\nallow_private = ["127.0.0.1"]\n' + hosted("npm", "npm")
    with receiving() as receiver, restarts(tmp_path, settings) as start:
        server = start()
        http = HttpClient(server.url, (USER, PASSWORD))
        hook = {"name": "all", "url": receiver.url, "events": ["backup.*"]}
        assert http.post("/api/system/webhooks", json.dumps(hook).encode()).status == 201
        npm = HttpClient(f"{server.url}/repositories/main/npm", (USER, PASSWORD))
        assert npm.put("/demo", make_publish("demo", "1.0.0")).status == 201

        def back_up() -> int:
            return http.post("/api/system/backup?wait=true", b"").status

        def state():
            return http.get("/api/system/backup").json

        def health() -> str:
            return http.get("/readyz").json["checks"]["backup"]

        assert (state()["made_at"], health()) == (None, "ok")
        assert back_up() == 200
        first = state()
        assert (first["problem"], first["damage"], first["blobs"], first["fetched"]) == ("", [], 1, 1)
        assert first["proved_at"] == first["checked_at"]

        (tarball,) = copies(place, b"\x1f\x8b")
        flip(tarball)
        assert back_up() == 503
        assert "its bytes have changed" in state()["problem"]
        assert state()["proved_at"] == first["proved_at"]
        assert health() == state()["problem"]
        assert b"pkgrepo_backup_sound 0.0" in http.get("/metrics").body
        page = http.get("/ui/admin/health").body
        assert (b"its bytes have changed" in page, b"Restore checked" in page) == (True, True)
        job = http.get("/api/job?kind=backup&limit=1").json["items"][0]
        assert (job["state"], "its bytes have changed" in job["errors"][0]) == ("failed", True)

        wait_for(lambda: len(receiver.messages) == 2, server)
        told = [each.json["data"] for each in receiver.messages]
        assert [each["state"] for each in told] == ["done", "failed"]
        assert "its bytes have changed" in told[1]["error"]
        server.stop()

        for each in copies(place, b"SQLite format 3"):
            flip(each)
        for options in (["--check"], ["--into", str(tmp_path / "new")]):
            damaged = pkgrepo(DataFolder(tmp_path / "data"), "restore", str(place), *options)
            assert (damaged.returncode, "the catalog of the backup is damaged" in damaged.stderr) == (2, True), damaged
        assert not (tmp_path / "new").exists()


@pytest.mark.folder("has a bucket of its own")
@pytest.mark.skipif("config.getoption('--postgresql')", reason="it chooses its databases itself")
def test_postgresql_and_a_bucket(tmp_path: Path, databases: Databases) -> None:
    """The catalog is in PostgreSQL, the blobs are in a bucket, and the backups in another part of it."""
    data, new = DataFolder(tmp_path / "data"), DataFolder(tmp_path / "new")
    with (
        s3_server() as s3,
        databases.another(empty=True) as database,
        databases.another(empty=True) as other,
        restarts(tmp_path, environ=CREDENTIALS) as start,
    ):
        url, empty = as_url(database), as_url(other)
        settings = f"""
            database.url = "{url}"
            backup = {{ destination = "s3://{BUCKET}/backups", endpoint = "{s3.endpoint}", check = false }}
            [[bootstrap.storages]]
            name = "far"
            type = "S3"
            settings = {{ endpoint = "{s3.endpoint}", bucket = "{BUCKET}", prefix = "storage" }}
        """ + hosted("npm", npm='storage = "far"')
        server = start(settings)
        npm = HttpClient(f"{server.url}/repositories/far/npm", (USER, PASSWORD))
        http = HttpClient(server.url, (USER, PASSWORD))
        assert npm.put("/demo", make_publish("demo", "1.0.0")).status == 201
        made = http.post("/api/system/backup?wait=true", b"")
        assert (made.status, made.json["copied"]) == (200, 1), made.body
        assert npm.put("/demo", make_publish("demo", "2.0.0")).status == 201
        made = http.post("/api/system/backup?wait=true", b"")
        assert (made.status, made.json["copied"], made.json["backups"]) == (200, 1, 2), made.body
        server.stop()

        bucket = {"PKGREPO_BACKUP__ENDPOINT": s3.endpoint, **CREDENTIALS}
        place = f"s3://{BUCKET}/backups"
        environ = {**bucket, "PKGREPO_DATABASE__URL": url}
        refused = pkgrepo(data, "restore", place, "--into", str(new.folder), environ=environ)
        assert (refused.returncode, "has tables already" in refused.stderr) == (1, True), refused
        environ["PKGREPO_DATABASE__URL"] = empty
        key = str(data.folder / "credentials.key")
        restored = pkgrepo(data, "restore", place, "--into", str(new.folder), "--key-file", key, environ=environ)
        assert (restored.returncode, "2 storages, 2 blobs" in restored.stdout) == (0, True), restored
        data.folder.rename(tmp_path / "old")
        new.folder.rename(data.folder)
        server = start(f'database.url = "{empty}"\n')
        npm = HttpClient(f"{server.url}/repositories/far/npm", (USER, PASSWORD))
        assert list(npm.get("/demo").json["versions"]) == ["1.0.0", "2.0.0"]
        assert npm.get("/demo/-/demo-2.0.0.tgz").status == 200
        assert npm.put("/demo", make_publish("demo", "3.0.0")).status == 201, "numbers go on"

        for each in (each for each in (s3.objects / "backups" / "content" / "blobs").rglob("*") if each.is_file()):
            if each.read_bytes().startswith(b"\x1f\x8b"):
                flip(each)
        checked = pkgrepo(data, "restore", place, "--check", environ=bucket)
        assert (checked.returncode, checked.stderr.count("its bytes have changed")) == (1, 2), checked
