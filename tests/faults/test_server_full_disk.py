"""Disks that are full: the upload is refused in a sentence, and everything else goes on."""

import os
import subprocess

import pytest

from tests.support.forms import uv
from tests.support.index import PASSWORD, USER
from tests.support.processes import twistd_process
from tests.support.pyprojects import make_wheel
from tests.support.wire import Wire

pytestmark = pytest.mark.faults

MIB = 1024 * 1024
STORAGE = """
[[bootstrap.storages]]
name = "small"
path = "{path}"

[[bootstrap.repositories]]
name = "py"
storage = "small"
format = "python"
"""


@pytest.fixture
def small(tmp_path):
    """A file system of 8 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root may mount file systems")
    place = tmp_path / "small"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "pkgrepo-test", str(place)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"this machine does not mount: {done.stderr.decode().strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def server(tmp_path, small):
    (tmp_path / "pkgrepo.toml").write_text(STORAGE.format(path=small / "store"))
    process = twistd_process(tmp_path, "--config", str(tmp_path / "pkgrepo.toml"))
    process.wait_ready()
    yield process
    process.kill()


def assert_full(reply):
    assert (reply.status, "no room left" in reply.reason) == (507, True), reply
    assert "no room left" in reply.text


def test_an_upload_that_does_not_fit_is_refused_and_the_server_goes_on(server, small):
    py = Wire(f"{server.url}/repositories/small/py", (USER, PASSWORD))
    first, data = make_wheel("first", "1.0", pad=4 * MIB)
    assert py.put(f"/first/1.0/{first}", data).status == 201
    second, more = make_wheel("second", "1.0", pad=4 * MIB + 1)
    blobs = small / "store" / "blobs"
    before = sum(each.is_file() for each in blobs.rglob("*"))
    assert_full(py.put(f"/second/1.0/{second}", more))
    assert_full(py.ask("PUT", f"/second/1.0/{second}", iter([more])))  # says nothing of its size beforehand
    assert_full(py.post_form("/legacy/", uv("second", "1.0", second, more)))
    assert sum(each.is_file() for each in blobs.rglob("*")) == before
    assert list((small / "store" / "uploads").iterdir()) == []
    assert py.get("/simple/second/").status == 404
    assert py.get(f"/packages/{first}").body == data
    third, little = make_wheel("third", "1.0")
    assert py.put(f"/third/1.0/{third}", little).status == 201
    assert py.get("/simple/third/").status == 200


def test_a_refusal_for_want_of_room_comes_before_the_body(server):
    py = Wire(f"{server.url}/repositories/small/py", (USER, PASSWORD))
    with py.connect() as connection:
        head = py.head_lines("PUT", "/big/1.0/big-1.0.tar.gz", Content_Length=str(64 * MIB), Expect="100-continue")
        connection.sendall(head)
        assert connection.recv(1000).startswith(b"HTTP/1.1 507 ")
