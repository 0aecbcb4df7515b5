"""The management API keeps to its document, whatever it is asked and by whom; and what does not is found."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.lab.fuzz.api import ApiFuzzer, run

ANSWERS = {
    "/api/fine": (200, {"name": "a"}),
    "/api/broken": (500, {}),
    "/api/odd": (418, {}),
    "/api/shapeless": (200, {"name": 1}),
    "/api/open": (200, {"name": "a"}),
    "/api/text": (200, {"name": "a"}),
}
SCHEMA = {"$ref": "#/components/schemas/Named"}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def described(path: str) -> object:
    responses = {"200": {"description": "", "content": {"application/json": {"schema": SCHEMA}}}, "404": {}}
    permission = "admin." if path == "/open" else "none"
    return {"get": {"description": f"x\n\nRequired permission: {permission}", "parameters": [], "responses": responses}}


class Answering(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        paths = {path.removeprefix("/api"): described(path.removeprefix("/api")) for path in ANSWERS}
        document = {"paths": paths, "components": {"schemas": {"Named": NAMED}}}
        status, value = (200, document) if self.path == "/api/openapi.json" else ANSWERS.get(self.path, (404, {}))
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if self.path == "/api/text" else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def wrong_server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_what_is_not_as_the_document_says_is_told(wrong_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ApiFuzzer, "prepare", lambda _self: None)
    fuzzer = ApiFuzzer(wrong_server, 1)
    fuzzer.run(200)
    told = sorted((each.split()[1], each.partition(": ")[2].split(",")[0].split(" at ")[0]) for each in fuzzer.wrong)
    assert told == [
        ("/api/broken", "status 500"),
        ("/api/odd", "status 418"),
        ("/api/open", "it was done"),
        ("/api/shapeless", "its body does not fit the schema"),
        ("/api/text", "text/plain"),
    ]


def test_the_api_keeps_to_its_document(tmp_path: Path) -> None:
    fuzzer = run(tmp_path, 350, 20260901)  # about one of each operation
    assert fuzzer.wrong == [], fuzzer.seed
    assert fuzzer.counts[200] > 20, fuzzer.counts
