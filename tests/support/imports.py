"""Imports through the API, as a client of it starts them."""

from __future__ import annotations

import http.server
import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from tests.support.http_client import HttpClient


def take(client: HttpClient, kind: str, source: object, into: str, **more: Any) -> dict[str, Any]:
    """The result of an import, once it is done."""
    reply = client.post_json("/api/import?wait=300", {"kind": kind, "source": str(source), "into": into, **more})
    assert reply.status == 200, reply.text
    return reply.json


def counts(result: dict[str, Any]) -> tuple[int, int, int]:
    """The numbers of files that were taken in, that were there already, and of what was left out."""
    return result["files"], result["present"], result["left_out_count"]


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files by path, which are some years old, and return the folder."""
    for path, data in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)
        os.utime(folder / path, (1_400_000_000, 1_400_000_000))
    return folder


class _Quiet(http.server.SimpleHTTPRequestHandler):
    lists = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def list_directory(self, path: Any) -> Any:
        if self.lists:
            return super().list_directory(path)
        self.send_error(404)
        return None


@contextmanager
def static(folder: Path, *, lists: bool = True) -> Iterator[str]:
    """Serve a folder, with or without listings, and return its address."""
    kind = type("Handler", (_Quiet,), {"lists": lists})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(kind, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def stub(answers: Mapping[str, Any], *, secret: str = "") -> Iterator[str]:
    """
    Serve a table of paths, with queries, and return its address. JSON values may have ``{url}`` in their texts.

    Bytes are sent as they are, and pairs are header fields and bytes. With a ``secret`` every request needs it. A POST
    has the answer of its path and its body, with a space between.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self, question: str = "") -> None:
            found = answers.get(self.path + question)
            if secret and self.headers.get("Authorization") != secret:
                self.send_error(401)
                return
            if found is None:
                self.send_error(404)
                return
            fields, body = found if isinstance(found, tuple) else ({}, found)
            if not isinstance(body, bytes):
                body = json.dumps(body).replace("{url}", url).encode()
            self.send_response(200)
            for name, value in {**fields, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_POST(self) -> None:
            self.do_GET(f" {self.rfile.read(int(self.headers['Content-Length'])).decode()}")

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
