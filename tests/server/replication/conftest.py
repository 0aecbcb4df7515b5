"""Two servers: one that publishes, and one that follows it, of which each test has repositories of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from attrs import define, field

from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, restarts
from tests.support.timeouts import polled

READER, READER_PASSWORD = "reader", "a password of 24 letters"


def wait_for(true: Callable[[], Any]) -> Any:
    """Ask until an answer is true, and return it."""
    return polled(true)


@define
class Site:
    """A server with clients of it; ``start`` starts it, also after it was stopped."""

    start: Callable[[], ServerProcess]
    process: ServerProcess = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.process = self.start()

    def again(self) -> None:
        """Start it anew."""
        self.process = self.start()

    @property
    def client(self) -> HttpClient:
        """A client with the admin's credentials."""
        return HttpClient(self.process.url, (USER, PASSWORD))

    def api(self, method: str, path: str, body: Any = None) -> Any:
        """The answer of the API, which must be a success."""
        reply = (
            self.client.post_json(f"/api{path}", body, method)
            if body is not None
            else self.client.ask(method, f"/api{path}")
        )
        assert reply.status < 300, (method, path, reply.status, reply.body)
        return reply.json if reply.body else None

    def upload(self, repository: str, filename: str, data: bytes, **fields: str) -> None:
        """Publish a file by the form of its repository."""
        form = [*fields.items(), ("file", filename, data)]
        reply = self.client.post_form(f"/api/repository/main%2F{repository}/upload", form)
        assert reply.status == 200, reply.body

    def get(self, path: str, **headers: str) -> bytes:
        """What readers without credentials get; empty for what is not there."""
        reply = self.client.as_user().get(path, **headers)
        return reply.body if reply.status == 200 else b""


@define
class Sites:
    """The server that publishes, and the one that follows."""

    there: Site
    here: Site

    def pair(self, name: str, format: str, **replicate: Any) -> None:
        """A hosted repository there, which ``READER`` may read, and one here that follows it."""
        config: dict[str, Any] = {"type": "Hosted"}
        if format == "python":
            config["conda"] = {"from_wheels": False}
        hosted = {"name": name, "storage": "main", "format": format, "visibility": "private", "config": config}
        self.there.api("POST", "/repository", hosted)
        self.there.api("PUT", f"/users/{READER}/permissions/main%2F{name}", {"actions": ["read"]})
        self.follow(name, format, name, **replicate)

    def follow(self, name: str, format: str, source: str, **replicate: Any) -> None:
        """A repository here that follows one there."""
        part = f"v2/main/{source}" if format == "docker" else f"repositories/main/{source}"
        route = {
            "url": f"{self.there.process.url}/{part}",
            "name": "there",
            "auth": {"username": READER, "password": READER_PASSWORD},
        }
        config = {"type": "Proxy", "proxy": {"routes": [route]}, "replicate": replicate, "cache_ttl": "1d"}
        body = {"name": name, "storage": "main", "format": format, "visibility": "public", "config": config}
        self.here.api("POST", "/repository", body)

    def status(self, name: str) -> Any:
        """How far the repository here is."""
        return self.here.api("GET", f"/repository/main%2F{name}/replication")

    def settled(self, name: str) -> Any:
        """Wait until it follows and has nothing left to do."""
        return wait_for(lambda: (found := self.status(name))["lag_seconds"] == 0 and found)


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    with ExitStack() as stack:
        there, here = (
            Site(
                stack.enter_context(
                    restarts(tmp_path_factory.mktemp(name), environ={"PKGREPO_PROXY__ALLOW_PRIVATE": '["127.0.0.1"]'})
                )
            )
            for name in ("there", "here")
        )
        there.api("POST", "/users", {"username": READER, "password": READER_PASSWORD})
        yield Sites(there, here)
