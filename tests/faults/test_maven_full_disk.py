"""Uploads of artifacts to a full disk: 507 with a sentence that mvn prints, nothing kept, and reads go on."""

import pytest

from tests.support.full_disk import file_system
from tests.support.http_client import HttpClient
from tests.support.maven_files import JAR, sums
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import restarts

pytestmark = pytest.mark.faults

MIB = 1024 * 1024
STORAGE = """
[[bootstrap.storages]]
name = "small"
path = "{path}"

[[bootstrap.repositories]]
name = "mvn"
storage = "small"
format = "maven"
"""


@pytest.fixture
def small(tmp_path):
    """A file system of 8 MiB."""
    with file_system(tmp_path / "small", "8m") as place:
        yield place


@pytest.fixture
def mvn(tmp_path, small):
    with restarts(tmp_path, STORAGE.format(path=small / "store")) as start:
        yield HttpClient(f"{start().url}/repositories/small/mvn", (USER, PASSWORD))


def test_a_file_that_does_not_fit_leaves_nothing(mvn, small):
    path = "/com/example/app/{0}/app-{0}.jar"
    assert mvn.put(path.format("1.0"), JAR).status == 201
    blobs = small / "store" / "blobs"
    before = sum(each.is_file() for each in blobs.rglob("*"))
    for body in (b"x" * 9 * MIB, iter([b"x" * MIB] * 9)):  # with its size, and without
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
