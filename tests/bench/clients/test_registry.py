"""Synthetic images, and the client that pushes them."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.bench.clients.load import LoadFailed
from tests.bench.clients.registry import Pusher, Registry
from tests.bench.packages.images import Blob, make_image


class Memory(BaseHTTPRequestHandler):
    """A registry with one upload at a time, which takes it for another one if the client forgets ``_state``."""

    protocol_version = "HTTP/1.1"
    upload = b""
    stored: dict[str, bytes] = {}

    def do_POST(self) -> None:
        Memory.upload = b""
        self._answer(202, f"{self.path}1?_state=0")

    def do_PATCH(self) -> None:
        Memory.upload += self._body()
        self._answer(202, f"{urlsplit(self.path).path}?_state={len(Memory.upload)}")

    def do_PUT(self) -> None:
        url = urlsplit(self.path)
        query = parse_qs(url.query)
        data = Memory.upload + self._body()
        if "manifests" in url.path:
            self.stored[url.path.rpartition("/")[2]] = data
        elif int(query["_state"][0]) != len(Memory.upload) or "digest" not in query:
            self._answer(400, "")
            return
        else:
            self.stored[query["digest"][0]] = data
        Memory.upload = b""
        self._answer(201, "/somewhere")

    def _body(self) -> bytes:
        assert self.headers["Authorization"] == "Bearer t"
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        data = b""
        while size := int(self.rfile.readline(), 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _answer(self, status: int, location: str) -> None:
        self.send_response(status)
        self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def pusher() -> Iterator[Pusher]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Memory)
    Memory.stored = {}
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    pusher = Pusher(Registry(url, "some/image", {"Authorization": "Bearer t"}))
    yield pusher
    pusher.close()
    server.shutdown()
    server.server_close()
    thread.join()


def test_an_image_is_pushed_with_all_blobs_of_its_manifest(pusher: Pusher) -> None:
    image = make_image("bench-a", 3, 1024)
    pusher.push_image(image, "one", "two")
    assert Memory.stored["one"] == Memory.stored["two"] == image.manifest
    manifest = json.loads(image.manifest)
    for each in (manifest["config"], *manifest["layers"]):
        data = Memory.stored[each["digest"]]
        assert each["digest"] == f"sha256:{hashlib.sha256(data).hexdigest()}"
        assert each["size"] == len(data)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_a_large_blob_is_sent_in_one_patch_and_ended_at_the_returned_location(pusher: Pusher, tmp_path: Path) -> None:
    blob = Blob("bench-b", 3 << 20)
    pusher.push_blob(blob, blob.ensure(tmp_path))
    assert Memory.stored[blob.digest] == blob.read()


def test_a_refused_push_stops_the_measurement(pusher: Pusher) -> None:
    with pytest.raises(LoadFailed, match="501"):
        pusher._ask("OPTIONS", "http://127.0.0.1/", b"")


def test_blobs_of_one_image_differ() -> None:
    assert len({layer.digest for layer in make_image("bench-a", 8, 1024).layers}) == 8
    assert Blob("bench-b", 1024).size == len(Blob("bench-b", 1024).read())
