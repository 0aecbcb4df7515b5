"""The load generators detect refusals."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.bench.clients.load import LoadFailed, Post, Prober, Target, basic, get, percentile, post_all, write_turns
from tests.bench.contestants.python import form_post
from tests.bench.packages.wheels import Wheel


class Recorder(BaseHTTPRequestHandler):
    """Answers 200, or the status in the path; records paths, clients and body sizes."""

    protocol_version = "HTTP/1.1"
    seen: Counter[tuple[str, str]] = Counter()
    received: list[bytes] = []

    def do_GET(self) -> None:
        self.seen[self.path, self.headers.get("User-Agent", "")] += 1
        self._answer()

    def do_POST(self) -> None:
        self.received.append(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer()

    def _answer(self) -> None:
        self.send_response(int(self.path.strip("/") or "200"))
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test's output clean."""


@pytest.fixture
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    Recorder.seen, Recorder.received = Counter(), []
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_uploads_arrive_whole_from_every_client(url: str) -> None:
    posts = [form_post(Wheel("bench-a", f"1.0.{number}")) for number in range(10)]
    assert len(post_all(Target(url, basic("a", "b")), posts, 4)) == 10
    assert sorted(Recorder.received) == sorted(b"".join(post.parts) for post in posts)


def test_a_form_has_its_length_and_contains_the_wheel() -> None:
    wheel = Wheel("bench-a", "1.0.0", 3 << 20)
    post = form_post(wheel)
    body = b"".join(post.parts)
    assert post.size == len(body)
    assert wheel.read() in body


def test_a_refused_upload_stops_the_measurement(url: str) -> None:
    with pytest.raises(LoadFailed, match="403"):
        post_all(Target(f"{url}/403"), [Post({}, [b"x"], 1)], 1)


def test_a_prober_measures_until_it_is_stopped(url: str) -> None:
    prober = Prober(url, {"User-Agent": "prober"}, 500)
    prober.start()
    while Recorder.seen["/", "prober"] < 5:
        get(url, {})
    assert len(prober.finish()) >= 5


def test_a_refused_prober_fails(url: str) -> None:
    prober = Prober(f"{url}/503", {"User-Agent": "prober"}, 500)
    prober.start()
    while not Recorder.seen["/503", "prober"]:
        get(url, {})
    with pytest.raises(LoadFailed):
        prober.finish()


def test_turns_name_each_address_for_each_client(tmp_path: Path) -> None:
    turns = write_turns(tmp_path / "turns", ["http://h:1/a/", "http://h:1/b/?c=d"], ["pip/1", "uv/2"])
    assert turns.read_text().splitlines() == ["/a/\tpip/1", "/b/?c=d\tpip/1", "/a/\tuv/2", "/b/?c=d\tuv/2"]


@pytest.mark.parametrize(("percent", "value"), [(50, 5), (99, 10), (0, 1), (100, 10)])
def test_percentiles_are_values_that_occurred(percent: float, value: int) -> None:
    assert percentile(list(range(10, 0, -1)), percent) == value
