"""A sample of the matrix of rules and roads over real sockets, with a second server as the upstream."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from tests.support.advisories import wait_for_advisories
from tests.support.http_client import HttpClient, Reply
from tests.support.matrix.checks import check_cell
from tests.support.matrix.kinds import RULES
from tests.support.matrix.specimens import READ, SIGSTORE, SPECIMENS, Specimen
from tests.support.matrix.world import advisories
from tests.support.osv_records import write_folder
from tests.support.proxied import PRIVATE
from tests.support.server_process import running

pytestmark = pytest.mark.server

AUTH = ("admin", "correct horse battery")
SAMPLE = {"licence": "cold", "advisory": "virtual", "digest": "listed", "spelling": "hosted", "install_scripts": "cold"}
CELLS = [
    pytest.param(specimen, kind, rule, id=f"{rule.name}-{specimen.id}-{kind}")
    for specimen in READ
    for rule in RULES
    if (kind := SAMPLE.get(rule.name)) in specimen.kinds and rule.applies(specimen)
]


@define(eq=False)
class SocketWorld:
    """The servers, with the same methods as those of the matrix without ports."""

    front: HttpClient
    upstream: str
    _numbers: Any = field(factory=count)

    async def repository(self, specimen: Specimen, kind: str) -> str:
        name = f"{specimen.format}-{kind}-{next(self._numbers)}"
        if kind == "hosted":
            self._add(specimen, name, {"type": "Hosted"})
            await specimen.publish(sender(self.front, name))
            return name
        url = f"{self.upstream}/repositories/main/{specimen.format}-own{specimen.upstream}"
        inner = f"{name}-proxy" if kind == "virtual" else name
        self._add(specimen, inner, {"type": "Proxy", "proxy": {"routes": [{"url": url, "name": "up"}]}})
        if inner != name:
            self._add(specimen, name, {"type": "Virtual", "members": [f"main/{inner}"]})
        return name

    def _add(self, specimen: Specimen, name: str, config: Mapping[str, Any]) -> None:
        add(self.front, specimen, name, config)

    async def ask(self, name: str, method: str, path: str, *, agent: str = "") -> Reply:
        headers = {"User-Agent": agent} if agent else {}
        return self.front.as_user().ask(method, f"/repositories/main/{name}{path}", headers=headers)

    async def set_rules(self, name: str, *rules: Any) -> None:
        path = f"/api/repository/main%2F{name}/config/policy"
        assert self.front.post_json(path, {"rules": list(rules)}, "PUT").status == 200

    async def settle(self) -> None:
        """Nothing: what is fetched is recorded at once (proxy.store_delay)."""


def add(client: HttpClient, specimen: Specimen, name: str, config: Mapping[str, Any]) -> None:
    given = {"name": name, "storage": "main", "format": specimen.format, "visibility": "public", "config": config}
    reply = client.post_json("/api/repository", given)
    assert reply.status == 201, reply.text


def sender(client: HttpClient, name: str) -> Any:
    async def send(method: str, path: str, body: bytes, media_type: str) -> None:
        reply = client.ask(method, f"/repositories/main/{name}{path}", body, {"Content-Type": media_type})
        assert reply.status in (200, 201), (path, reply.status, reply.body)

    return send


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SocketWorld]:
    source: Path = write_folder(tmp_path_factory.mktemp("osv"), advisories(SPECIMENS))
    # each rule is tried without the one that the server has of its own, which would refuse what others are to be asked
    given = f'advisories.source = "{source}"\nadvisories.block_malware = false\n{PRIVATE}store_delay = 0\n'
    root = tmp_path_factory.mktemp("root") / "trusted_root.json"
    root.write_bytes(SIGSTORE.root_text)
    trusted = f'auth.trusted_root = "{root}"\n'
    with (
        running(tmp_path_factory.mktemp("upstream"), trusted) as upstream,
        running(tmp_path_factory.mktemp("front"), trusted + given) as front,
    ):
        wait_for_advisories(HttpClient(f"{front.url}/api", AUTH))
        yield SocketWorld(HttpClient(front.url, AUTH), upstream.url)


@pytest.fixture(scope="module")
def filled(world: SocketWorld) -> SocketWorld:
    """The same with all specimens in the upstream."""
    upstream = HttpClient(world.upstream, AUTH)
    for each in SPECIMENS:
        add(upstream, each, f"{each.format}-own", {"type": "Hosted"})
        asyncio.run(each.publish(sender(upstream, f"{each.format}-own")))
    return world


@pytest.mark.parametrize(("specimen", "kind", "rule"), CELLS)
async def test_a_rule_holds_over_sockets(filled: SocketWorld, specimen: Specimen, kind: str, rule: Any) -> None:
    await check_cell(filled, specimen, kind, rule)
