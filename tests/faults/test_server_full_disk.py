"""
A server on a full disk: requests that need disk space get 507 with a message, everything else works.

Downloads, logins, bearer tokens and a start need no space. The log has one event when the disk becomes full, and one
when it no longer is.
"""

import os
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.configurations import PRIVATE, hosted
from tests.support.data_folder import wait_for
from tests.support.format_cases.workload import check_releases, make_releases, repositories
from tests.support.full_disk import file_system, filled, small_storage
from tests.support.http_client import HttpClient
from tests.support.images import digest_of, make_image
from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_wheel
from tests.support.server_process import restarts
from tests.support.timeouts import polled
from tests.support.upload_forms import uv

pytestmark = pytest.mark.faults

MIB = 1024 * 1024


@pytest.fixture
def small(tmp_path):
    """A file system of 8 MiB."""
    with file_system(tmp_path / "small", "8m") as place:
        yield place


@pytest.fixture
def data(tmp_path):
    """A file system of 16 MiB for the data folder."""
    with file_system(tmp_path / "data", "16m") as place:
        yield place


@pytest.fixture
def server(tmp_path, small):
    with restarts(tmp_path, small_storage(small / "store", "python", "py")) as start:
        yield start()


def open_files(pid):
    """The names of the files that a process has open."""
    names = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            names.append(os.readlink(each))
    return names


def assert_full(reply):
    assert (reply.status, "no room left" in reply.reason) == (507, True), reply
    assert "no room left" in reply.text


@pytest.mark.sqlite("fills the disk that the file is on")
@pytest.mark.folder("fills the disk that the blobs are on")
def test_a_chunk_that_does_not_fit_leaves_those_before_it(tmp_path, data):
    chunks = [os.urandom(MIB), os.urandom(2 * MIB)]
    with restarts(tmp_path, hosted("docker", "images")) as start:
        server = start()
        wire = HttpClient(server.url, (USER, PASSWORD))
        place = wire.post("/v2/main/images/app/blobs/uploads/").headers["location"]
        assert wire.ask("PATCH", place, chunks[0]).status == 202
        digest = digest_of(b"".join(chunks))
        with wire.connect() as connection:
            connection.sendall(wire.head_lines("PATCH", place, Content_Length=str(2 * MIB)) + chunks[1][:1000])
            wait_for(lambda: "/uploads/" in "".join(open_files(server.pid)), server)
            with filled(data):
                connection.sendall(chunks[1][1000:])
                assert connection.recv(1000).startswith(b"HTTP/1.1 507 ")
                status = wire.get(place)
                assert (status.status, status.headers["range"]) == (204, f"0-{MIB - 1}")

        def fits() -> bool:
            status = wire.ask("PATCH", place, chunks[1]).status
            assert status in (202, 507)  # storages look once a second
            return status == 202

        polled(fits)
        assert wire.put(f"{place}?digest={digest}", b"").status == 201
        assert wire.get(f"/v2/main/images/app/blobs/{digest}").body == b"".join(chunks)


def test_an_upload_that_does_not_fit_is_refused_and_the_server_goes_on(server, small):
    py = HttpClient(f"{server.url}/repositories/small/py", (USER, PASSWORD))
    first, data = make_wheel("first", "1.0", pad=4 * MIB)
    assert py.put(f"/first/1.0/{first}", data).status == 201
    second, more = make_wheel("second", "1.0", pad=4 * MIB + 1)
    blobs = small / "store" / "blobs"
    before = sum(each.is_file() for each in blobs.rglob("*"))
    assert_full(py.put(f"/second/1.0/{second}", more))
    assert_full(py.ask("PUT", f"/second/1.0/{second}", iter([more])))  # chunked, without a size
    assert_full(py.post_form("/legacy/", uv("second", "1.0", second, more)))
    assert sum(each.is_file() for each in blobs.rglob("*")) == before
    assert list((small / "store" / "uploads").iterdir()) == []
    assert py.get("/simple/second/").status == 404
    assert py.get(f"/packages/{first}").body == data
    third, little = make_wheel("third", "1.0")
    assert py.put(f"/third/1.0/{third}", little).status == 201
    assert py.get("/simple/third/").status == 200


def test_an_upload_without_disk_space_is_refused_before_its_body(server):
    py = HttpClient(f"{server.url}/repositories/small/py", (USER, PASSWORD))
    with py.connect() as connection:
        head = py.head_lines("PUT", "/big/1.0/big-1.0.tar.gz", Content_Length=str(64 * MIB), Expect="100-continue")
        connection.sendall(head)
        assert connection.recv(1000).startswith(b"HTTP/1.1 507 ")


EVERYTHING = '[data]\nlow_water = "256KiB"\n' + repositories(PRIVATE) + hosted("docker", images=PRIVATE)
IMAGE = make_image()
RELEASES = make_releases(1, ["demo"])
PUBLISHED = {each.key for release in RELEASES for each in release.uploads}
LATER = make_releases(1, ["late"])


def repository_of(server, case):
    return HttpClient(f"{server.url}/repositories/main/{case.format}", (USER, PASSWORD))


def publish_all(server):
    wire = HttpClient(server.url, (USER, PASSWORD))
    for release in RELEASES:
        release.case.put_by(repository_of(server, release.case), release.name, release.version)
    for blob in IMAGE.blobs:
        place = wire.post("/v2/main/images/app/blobs/uploads/").headers["location"]
        assert wire.put(f"{place}?digest={digest_of(blob)}", blob).status == 201
    pushed = wire.put("/v2/main/images/app/manifests/1", IMAGE.manifest, Content_Type=IMAGE.media_type)
    assert pushed.status == 201


def assert_readable(server):
    """Check downloads of every format and logins, with credentials that are in no cache."""
    wire = HttpClient(server.url, (USER, PASSWORD))
    for _ in range(3):
        query = "/token?service=pkgrepo&scope=repository:main/images/app:pull&offline_token=true"
        reply = wire.get(f"/api/auth{query}")
        assert reply.status == 200, reply
        bearer = {"Authorization": f"Bearer {reply.json['token']}"}
        assert wire.ask("GET", "/v2/main/images/app/manifests/1", headers=bearer).body == IMAGE.manifest
        for blob in IMAGE.blobs:
            place = f"/v2/main/images/app/blobs/{digest_of(blob)}"
            assert wire.ask("GET", place, headers=bearer).body == blob
        assert check_releases(wire, RELEASES, PUBLISHED) == PUBLISHED
        assert wire.get("/repositories/main/npm/demo").json["dist-tags"] == {"latest": "1.0.0"}
        assert wire.get("/api/user/me").status == 200
        assert wire.as_user(USER, "wrong").get("/api/user/me").status == 401


def health(server):
    reply = HttpClient(server.url, (USER, PASSWORD)).get("/readyz")
    return reply.status, reply.json["status"], reply.json["checks"]


def without_space(found):
    """Return the names of the health checks that report too little space."""
    return {name for name, said in found[2].items() if "are free; " in said}


@pytest.mark.sqlite("fills the disk that the file is on")
def test_a_full_disk_stops_neither_reading_nor_logins_nor_a_start(tmp_path, data):
    with restarts(tmp_path, EVERYTHING) as start:
        server = start()
        publish_all(server)
        assert health(server)[:2] == (200, "ok")
        server.stop()
        with filled(data) as fill:
            server = start()
            assert_readable(server)
            while without_space(checks := health(server)) != {
                "database",
                "storage main",
            }:  # storages look once a second
                pass
            assert checks[:2] == (200, "degraded")
            refused = HttpClient(server.url, (USER, PASSWORD)).post_json("/api/user/token", {"name": "ci"})
            assert refused.status == 507
            for each in LATER:
                reply = each.case.replies(repository_of(server, each.case), each.name, each.version)[-1]
                assert (reply.status, "no room left" in reply.text) == (507, True), (str(each), reply)
            server.stop()
            logs = [server.output]
            fill()
            server = start()
            assert_readable(server)
            server.kill()
            fill()
            logs.append(server.output)
            server = start()
            assert_readable(server)
        wire = HttpClient(server.url, (USER, PASSWORD))
        polled(lambda wire=wire: wire.post_json("/api/user/token", {"name": "ci"}).status == 201)
        polled(lambda server=server: health(server)[1] == "ok")
        assert check_releases(wire, LATER, set()) == set()
        for each in LATER:
            each.case.put_by(repository_of(server, each.case), each.name, each.version)
        keys = {upload.key for each in LATER for upload in each.uploads}
        assert check_releases(wire, LATER, keys) == keys
        assert "login" in {line["action"] for line in wire.get("/api/audit").json["items"]}
        server.stop()
        logs.append(server.output)
    for log in logs:
        assert "Traceback" not in log, log
        assert log.count("no room left") <= 3, log  # of the channel, the catalog and the upkeep
