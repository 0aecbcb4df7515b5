"""A server with a hosted repository of each format, a proxy of it, and virtual repositories around both."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import frozen

from tests.support.format_cases import CASES
from tests.support.http_client import HttpClient
from tests.support.proxied import PRIVATE
from tests.support.server_process import running

AUTH = ("admin", "correct horse battery")
KINDS = ("own", "mirror", "all", "around")


@frozen
class World:
    """The server; ``at`` is a client of a repository, as ``npm-mirror``. ``imports`` is a folder that it may read."""

    url: str
    imports: Path

    @property
    def api(self) -> HttpClient:
        return HttpClient(f"{self.url}/api", AUTH)

    def at(self, name: str) -> HttpClient:
        return HttpClient(f"{self.url}/repositories/main/{name}", AUTH)

    def ok(self, method: str, path: str, value: object = None, status: int = 200) -> Any:
        reply = self.api.ask(method, path) if value is None else self.api.post_json(path, value, method)
        assert reply.status == status, (reply.status, reply.text)
        return json.loads(reply.body) if reply.body else None

    def add(self, format: str, name: str, config: Mapping[str, Any], **more: Any) -> None:
        """Add a repository, which is public unless it is said otherwise."""
        self.ok("POST", "/repository", {**settings(format, name, config), **more}, 201)

    def block(self, repository: str, package: str, **more: Any) -> str:
        given = {"repository": f"main/{repository}", "package": package, "reason": "malware", **more}
        return str(self.ok("POST", "/policy/blocks", given, 201)["id"])

    def unblock(self, uid: str) -> None:
        self.ok("DELETE", f"/policy/blocks/{uid}", status=204)

    def set_rules(self, repository: str, *rules: Mapping[str, Any]) -> None:
        policy = {"rules": list(rules)}
        self.ok("PUT", f"/repository/main%2F{repository}/config/policy", policy if rules else {})

    def route(self, format: str) -> dict[str, str]:
        """The route of a proxy to the hosted repository of a format."""
        return {"url": f"{self.url}/repositories/main/{format}-own{CASES[format].upstream}", "name": "up"}


def settings(format: str, name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "storage": "main", "format": format, "visibility": "public", "config": config}


@contextmanager
def format_repositories(folder: Path) -> Iterator[World]:
    """Run the server, with two versions of ``demo`` in each format."""
    imports = folder / "imports"
    imports.mkdir()
    lines = f'imports.folders = ["{imports}"]\nimports.keys = ["{folder / "key.pem"}"]\n'
    with running(folder, f"{lines}{PRIVATE}") as process:
        made = World(process.url, imports)
        (folder / "key.pem").write_text(made.ok("GET", "/system/twin-key")["key"])
        for case in CASES.values():
            for name, config in (
                ("own", {"type": "Hosted"}),
                ("mirror", {"type": "Proxy", "proxy": {"routes": [made.route(case.format)]}, "cache_ttl": "1d"}),
                ("all", {"type": "Virtual", "members": [f"main/{case.format}-mirror"]}),
                ("around", {"type": "Virtual", "members": [f"main/{case.format}-own"]}),
            ):
                made.add(case.format, f"{case.format}-{name}", config)
            case.publish_by(made.at(f"{case.format}-own"))
        yield made
