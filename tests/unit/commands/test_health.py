"""The answer of a server is asked for at the address in its settings."""

from __future__ import annotations

import json
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pkgrepo import cli
from tests.support.certificates import write_certificate


@pytest.fixture(autouse=True)
def without_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("PKGREPO_"):
            monkeypatch.delenv(name)


class Readiness(BaseHTTPRequestHandler):
    status = "ok"
    code = 200

    def do_GET(self) -> None:
        body = json.dumps({"status": self.status, "path": self.path}).encode()
        self.send_response(self.code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass

    def address_string(self) -> str:
        return "client"  # a Unix socket has no address


class UnixServer(HTTPServer):
    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        self.socket.bind(self.server_address)

    def get_request(self) -> tuple[socket.socket, Any]:
        return self.socket.accept()[0], ("client", 0)


@pytest.fixture(params=["tcp", "unix", "tls"])
def place(request: Any, tmp_path: Path) -> Iterator[tuple[type[Readiness], list[str]]]:
    handler = type("Handler", (Readiness,), {})
    options = []
    if request.param == "unix":
        server: HTTPServer = UnixServer(str(tmp_path / "s"), handler)  # type: ignore[arg-type]
        options.append(f"server.listen=unix:{tmp_path / 's'}")
    else:
        server = HTTPServer(("127.0.0.1", 0), handler)
        options.append(f"server.listen=tcp:{server.server_port}:interface=127.0.0.1")
    if request.param == "tls":
        certificate, key = write_certificate(tmp_path)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        options += [f"tls.cert={certificate}", f"tls.key={key}"]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield handler, options
    server.shutdown()
    thread.join()
    server.server_close()


def ask(options: list[str]) -> Any:
    return CliRunner().invoke(cli.main, [*(word for each in options for word in ("--set", each)), "health"])


def test_a_server_that_is_ready(place: tuple[type[Readiness], list[str]]) -> None:
    found = ask(place[1])
    assert (found.exit_code, found.stdout) == (0, "ok\n"), found.stderr


def test_a_server_that_is_not(place: tuple[type[Readiness], list[str]]) -> None:
    place[0].status, place[0].code = "unavailable", 503
    found = ask(place[1])
    assert (found.exit_code, found.stdout) == (1, "unavailable\n")


@pytest.mark.parametrize("listen", ["tcp:1:interface=127.0.0.1", "unix:/nowhere/s", "systemd:domain=INET:index=0"])
def test_nothing_answers(listen: str) -> None:
    found = ask([f"server.listen={listen}"])
    assert found.exit_code == 1
    assert found.stderr.startswith(f"pkgrepo: the server does not answer at {listen}: ")
