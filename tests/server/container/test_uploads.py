"""Uploads of layers over real sockets: interrupted, continued by another process, and killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.configurations import MOVING, hosted
from tests.support.http_client import HttpClient, Reply, read_reply
from tests.support.images import OCI_IMAGE, digest_of, make_image
from tests.support.server_process import ServerProcess, restarts
from tests.support.timeouts import polled

ADMIN = ("admin", "correct horse battery")
DATA = bytes(range(256)) * 4096  # 1 MiB; more than the server buffers before it writes to the disk
DIGEST = digest_of(DATA)
UPLOADS = "/v2/main/images/app/blobs/uploads/"

Run = Callable[[], ServerProcess]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Start servers on one data folder."""
    with restarts(tmp_path, hosted("docker", images=MOVING)) as start:
        yield start


def wire(process: ServerProcess) -> HttpClient:
    return HttpClient(process.url, ADMIN)


def until_received(server: HttpClient, path: str, count: int) -> Reply:
    """The state of an upload, once it has so many bytes: a broken connection is noticed a little later."""

    def received() -> Reply | None:
        reply = server.get(path)
        assert reply.status == 204
        return reply if reply.headers["range"] == f"0-{count - 1}" else None

    return polled(received)


def test_bytes_received_before_a_disconnect_are_kept(run: Run) -> None:
    server = wire(run())
    path = server.post(UPLOADS).headers["location"]
    sent = 600_000
    with server.connect() as connection:
        connection.sendall(server.head_lines("PATCH", path, Content_Length=str(len(DATA))) + DATA[:sent])
    until_received(server, path, sent)
    late = server.ask("PATCH", path, DATA[:10], {"Content-Range": "0-9"})
    assert (late.status, late.headers["range"]) == (416, f"0-{sent - 1}")
    rest = {"Content-Range": f"{sent}-{len(DATA) - 1}"}
    assert server.ask("PATCH", path, DATA[sent:], rest).status == 202
    assert server.ask("PUT", f"{path}?digest={DIGEST}").status == 201
    assert server.get(f"/v2/main/images/app/blobs/{DIGEST}").body == DATA


def test_chunks_without_a_length_are_taken(run: Run) -> None:
    server = wire(run())
    path = server.post(UPLOADS).headers["location"]
    patched = server.ask("PATCH", path, iter([DATA[:300_000], DATA[300_000:]]))
    assert (patched.status, patched.headers["range"]) == (202, f"0-{len(DATA) - 1}")
    assert server.ask("PUT", f"{path}?digest={DIGEST}").status == 201


def test_a_refused_push_gets_no_100_continue(run: Run) -> None:
    server = wire(run())
    path = server.post(UPLOADS).headers["location"]
    nobody = server.as_user()
    with nobody.connect() as connection:
        head = nobody.head_lines("PATCH", path, Content_Length=str(len(DATA)), Expect="100-continue")
        connection.sendall(head)
        assert read_reply(connection).status == 401


def test_a_second_writer_waits_for_the_first(run: Run) -> None:
    server = wire(run())
    path = server.post(UPLOADS).headers["location"]
    with server.connect() as first, server.connect() as second:
        fields = {"Content_Length": str(len(DATA)), "Content_Range": f"0-{len(DATA) - 1}", "Expect": "100-continue"}
        first.sendall(server.head_lines("PATCH", path, **fields))
        assert read_reply(first).status == 100  # it has the upload now
        second.sendall(server.head_lines("PATCH", path, Content_Length="10", Content_Range="0-9") + b"intruding!")
        first.sendall(DATA)
        assert read_reply(first).status == 202
        assert read_reply(second).status == 416
    assert server.ask("PUT", f"{path}?digest={DIGEST}").status == 201


def test_an_upload_moves_between_processes_and_all_see_a_moved_tag(run: Run) -> None:
    one, other = wire(run()), wire(run())
    path = one.post(UPLOADS).headers["location"]
    assert other.ask("PATCH", path, DATA[:1000]).status == 202
    assert one.ask("PATCH", path, DATA[1000:]).status == 202
    assert other.ask("PUT", f"{path}?digest={DIGEST}").status == 201
    assert one.get(f"/v2/main/images/app/blobs/{DIGEST}").body == DATA
    for text, server in (("a", one), ("b", other), ("c", one)):
        image = make_image(text)
        for blob in image.blobs:
            assert server.post(f"{UPLOADS}?digest={digest_of(blob)}", blob).status == 201
        assert server.put("/v2/main/images/app/manifests/latest", image.manifest, Content_Type=OCI_IMAGE).status == 201
        for reader in (one, other, one, other):
            assert reader.get("/v2/main/images/app/manifests/latest").body == image.manifest


def test_acknowledged_bytes_survive_a_kill(run: Run) -> None:
    process = run()
    server = wire(process)
    path = server.post(UPLOADS).headers["location"]
    assert server.ask("PATCH", path, DATA[:500_000]).status == 202
    process.kill()
    server = wire(run())
    assert server.get(path).headers["range"] == "0-499999"
    assert server.ask("PUT", f"{path}?digest={DIGEST}", DATA[500_000:]).status == 201
    assert server.get(f"/v2/main/images/app/blobs/{DIGEST}").body == DATA
