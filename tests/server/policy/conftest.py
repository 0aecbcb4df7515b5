"""A server with a hosted repository of each format, a proxy of it, and a virtual repository around the proxy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from attrs import frozen

from tests.support.format_cases import CASES
from tests.support.http_client import HttpClient, Reply
from tests.support.proxied import PRIVATE
from tests.support.server_process import running

FORMATS = tuple(CASES)
AUTH = ("admin", "correct horse battery")
KINDS = ("own", "mirror", "all", "around")


@frozen
class World:
    """The server; ``at`` is a client of a repository, as ``npm-mirror``."""

    url: str

    @property
    def api(self) -> HttpClient:
        return HttpClient(f"{self.url}/api", AUTH)

    def at(self, name: str) -> HttpClient:
        return HttpClient(f"{self.url}/repositories/main/{name}", AUTH)

    def ok(self, method: str, path: str, value: object = None, status: int = 200) -> Any:
        reply = self.api.ask(method, path) if value is None else self.api.post_json(path, value, method)
        assert reply.status == status, (reply.status, reply.text)
        return json.loads(reply.body) if reply.body else None

    def block(self, repository: str, package: str, **more: Any) -> str:
        given = {"repository": f"main/{repository}", "package": package, "reason": "malware", **more}
        return str(self.ok("POST", "/policy/blocks", given, 201)["id"])

    def unblock(self, uid: str) -> None:
        self.ok("DELETE", f"/policy/blocks/{uid}", status=204)

    def set_rules(self, repository: str, *rules: Mapping[str, Any]) -> None:
        policy = {"rules": list(rules)}
        self.ok("PUT", f"/repository/main%2F{repository}/config/policy", policy if rules else {})


def settings(format: str, name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "storage": "main", "format": format, "visibility": "public", "config": config}


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The server with two versions of ``demo`` in each format."""
    with running(tmp_path_factory.mktemp("policy"), PRIVATE) as process:
        made = World(process.url)
        for kind, case in CASES.items():
            for name, config in (
                ("own", {"type": "Hosted"}),
                ("mirror", {"type": "Proxy", "proxy": {"routes": [_upstream(made.url, kind)]}, "cache_ttl": "1d"}),
                ("all", {"type": "Virtual", "members": [f"main/{kind}-mirror"]}),
                ("around", {"type": "Virtual", "members": [f"main/{kind}-own"]}),
            ):
                made.ok("POST", "/repository", settings(kind, f"{kind}-{name}", config), 201)
            client = made.at(f"{kind}-own")

            async def send(
                method: str, path: str, body: bytes, kind: str = "application/octet-stream", client: HttpClient = client
            ) -> Reply:
                reply = client.ask(method, path, body, {"Content-Type": kind})
                assert reply.status in (200, 201), (path, reply.text)
                return reply

            asyncio.run(case.publish(send))  # type: ignore[arg-type]
        yield made


def _upstream(url: str, format: str) -> dict[str, str]:
    return {"url": f"{url}/repositories/main/{format}-own{CASES[format].upstream}", "name": "up"}
