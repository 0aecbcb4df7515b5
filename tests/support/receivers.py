"""A receiver of webhooks in the test process, which answers as a test tells it to."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from attrs import frozen

Answer = tuple[int, dict[str, str]]


@frozen
class Message:
    """A request that came: its path, its header fields by lower-case name, and its body."""

    path: str
    fields: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def id(self) -> str:
        return self.fields["webhook-id"]

    def is_signed(self, secret: str) -> bool:
        """Whether one of the signatures is right, by the text of the Standard Webhooks specification."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = b"%s.%s.%s" % (self.id.encode(), self.fields["webhook-timestamp"].encode(), self.body)
        wanted = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        return wanted in self.fields["webhook-signature"].split(" ")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """A connection that is aborted is no error of the receiver."""


class Receiver:
    """
    Listens at ``url``; ``messages`` are those that came. ``answer`` returns status and header fields for a message.

    With ``hold`` set, requests wait until it is cleared, without an answer.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.answer: Callable[[Message], Answer] = lambda _: (200, {})
        self.released = threading.Event()
        self.released.set()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                message = Message(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                status, fields = receiver.answer(message)
                receiver.messages.append(message)
                receiver.released.wait()
                self.send_response(status)
                for name, value in fields.items():
                    self.send_header(name, value)
                self.send_header("content-length", "6")
                self.end_headers()
                self.wfile.write(b"thanks")

            def log_message(self, *_: object) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def of(self, path: str) -> list[Message]:
        """The messages for a path."""
        return [each for each in self.messages if each.path == path]

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
