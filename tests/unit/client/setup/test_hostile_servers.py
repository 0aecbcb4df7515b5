"""What a server says of itself is written into files of tools only if it is where the person has logged in."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from pkgrepo.client.setup.commands import _own
from pkgrepo.errors import Invalid
from tests.support.server_process import clean_environment
from tests.support.timeouts import TIMEOUT_S

SERVER = "https://packages.example/base"


@pytest.mark.parametrize("address", [f"{SERVER}/repositories/main/py", "https://packages.example:443/base/x"])
def test_an_address_on_the_server_is_taken(address: str) -> None:
    assert _own(SERVER, address) == address


@pytest.mark.parametrize(
    "address",
    [
        "https://evil.example/base/repositories/main/py",
        "https://packages.example.evil.example/base/x",
        "https://packages.example@evil.example/base/x",
        "https://packages.example:8443/base/x",
        "http://packages.example/base/x",
        "https://packages.example/elsewhere",
        "https://user:secret@packages.example/base/x",
        "packages.example/base/x",
        "//evil.example/base",
        "https://packages.example/base/x\nregistry=https://evil.example",
        "https://packages.example/base/'x",
        "",
    ],
)
def test_no_other_one_is(address: str) -> None:
    with pytest.raises(Invalid, match=r"elsewhere|no address"):
        _own(SERVER, address)


class Hostile(BaseHTTPRequestHandler):
    """A server that names what its ``record`` says."""

    record: dict[str, Any]

    def do_GET(self) -> None:
        body = json.dumps([{"client": "npm", "title": "Use"}] if self.path.endswith("setup") else self.record).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hostile() -> Iterator[tuple[str, dict[str, Any]]]:
    """The address of a server, and the record of its repository, which tests change."""
    record: dict[str, Any] = {"storage_name": "main", "name": "js", "has_images": False, "actions": ["read"]}
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Hostile,), {"record": record}))
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    record |= {"url": f"{url}/repositories/main/js", "registry_host": url.partition("//")[2]}
    yield url, record
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"url": "https://evil.example/repositories/main/js"}, "is elsewhere"),
        ({"name": "js\nregistry=https://evil.example/"}, "which is no name"),
        ({}, ""),
        ({"registry_host": "evil.example"}, ""),  # it is taken from the address
    ],
)
@pytest.mark.parametrize("verb", ["--write", "--check"])
def test_files_name_the_server_of_the_person(
    hostile: tuple[str, dict[str, Any]], tmp_path: Path, changed: dict[str, str], said: str, verb: str
) -> None:
    url, record = hostile
    record |= changed
    home = tmp_path / "home"
    home.mkdir()
    environ = clean_environment(HOME=str(home), PKGREPO_URL=url, PKGREPO_PROFILES=str(home / "profiles.json"))
    command = [sys.executable, "-c", "from pkgrepo.cli import main; main()", "setup", "main/js", verb, "--tool", "npm"]
    if verb == "--write":
        command.append("--yes")
    elif not said:
        pytest.skip("the check runs npm")
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    written = "".join(each.read_text() for each in home.rglob("*") if each.is_file())
    assert "evil.example" not in written
    if said:
        assert (done.returncode, said in done.stderr, written) == (2, True, ""), done.stderr
    else:
        assert f"registry={url}/repositories/main/js/" in written, done.stderr
