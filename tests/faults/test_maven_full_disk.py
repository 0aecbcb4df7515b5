"""Artifacts and bundles for a full disk: 507 with a sentence that mvn prints, nothing kept, and reads go on."""

import os

import pytest

from tests.support.full_disk import file_system, filled, small_storage
from tests.support.http_client import HttpClient
from tests.support.maven_bundles import artifact, make_zip
from tests.support.maven_files import JAR, sums
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import restarts

pytestmark = pytest.mark.faults

MIB = 1024 * 1024
ZIP = {"Content-Type": "application/zip", "Accept": "application/json"}


@pytest.fixture
def small(tmp_path):
    """A file system of 16 MiB."""
    with file_system(tmp_path / "small", "16m") as place:
        yield place


@pytest.fixture
def mvn(tmp_path, small):
    with restarts(tmp_path, small_storage(small / "store", "maven", "mvn")) as start:
        yield HttpClient(f"{start().url}/repositories/small/mvn", (USER, PASSWORD))


def test_a_file_that_does_not_fit_leaves_nothing(mvn, small):
    path = "/com/example/app/{0}/app-{0}.jar"
    assert mvn.put(path.format("1.0"), JAR).status == 201
    blobs = small / "store" / "blobs"
    before = sum(each.is_file() for each in blobs.rglob("*"))
    for body in (b"x" * 17 * MIB, iter([b"x" * MIB] * 17)):  # with its size, and without
        reply = mvn.ask("PUT", path.format("1.1"), body)
        assert (reply.status, "no room left" in reply.reason) == (507, True)
    with mvn.connect() as connection:
        connection.sendall(mvn.head_lines("PUT", "/big.txt", Content_Length=str(64 * MIB), Expect="100-continue"))
        assert connection.recv(1000).startswith(b"HTTP/1.1 507 ")
    assert sum(each.is_file() for each in blobs.rglob("*")) == before
    assert list((small / "store" / "uploads").iterdir()) == []
    assert mvn.get(path.format("1.1")).status == 404
    assert mvn.get(path.format("1.0")).body == JAR
    assert mvn.get(path.format("1.0") + ".sha1").text == sums(JAR)["sha1"]
    assert mvn.put(path.format("1.2"), JAR).status == 201


def build(count, size):
    """Modules with jars that cannot be compressed."""
    found = {}
    for number in range(count):
        found |= artifact("com.example", f"m{number}", "1.0", jar=os.urandom(size))
    return found


def test_a_bundle_that_does_not_fit_publishes_nothing(mvn, small):
    too_large = make_zip(build(1, 20 * MIB))
    reply = mvn.ask("POST", "/deploy?wait=true", too_large, ZIP)
    assert (reply.status, "no room left" in reply.reason) == (507, True)
    members = build(10, MIB)  # the bundle fits, but not its files beside it
    reply = mvn.ask("POST", "/deploy?wait=true", make_zip(members), ZIP)
    assert (reply.status, reply.json["state"]) == (507, "FAILED")
    assert "no room left" in reply.json["errors"][""][0]
    assert {mvn.get(f"/{path}").status for path in members} == {404}
    assert list((small / "store" / "uploads").iterdir()) == []
    assert [each for each in (small / "store" / "blobs").rglob("*") if each.is_file()] == []
    little = build(2, 1000)
    assert mvn.ask("POST", "/deploy?wait=true", make_zip(little), ZIP).status == 201
    assert {mvn.get(f"/{path}").status for path in little} == {200}


def test_a_full_disk_while_it_is_published_leaves_it_to_be_published_later(mvn, small, tmp_path):
    members = build(3, 1000)
    reply = mvn.ask("POST", "/deploy?wait=true&publishing_type=USER_MANAGED", make_zip(members), ZIP)
    uid = reply.json["deployment_id"]
    with filled(small):
        published = mvn.post(f"/deploy/{uid}/publish")  # its files are there already
        assert published.status == 200, published
    assert {mvn.get(f"/{path}").status for path in members} == {200}
