"""A server without ports, and a second one that is its upstream, with the specimens of all formats."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import treq
from attrs import define, field

from tests.support.inprocess_server import RunningServer, no_failures, server_config
from tests.support.matrix.clock import CLOCK
from tests.support.matrix.specimens import BAD, SIGSTORE, SOURCE_ARCHIVE, SOURCE_HOST, SPECIMENS, Specimen
from tests.support.memory_server import Reply, Stack
from tests.support.osv_records import affected, record, since, write_folder

ADVISORY = "GHSA-evil-evil-evil"
MALWARE = "MAL-2026-evil"
KINDS = ("hosted", "cold", "listed", "warm", "virtual", "around")
"""
What a repository is when its rules are set.

``hosted`` has the specimen. ``cold`` is a proxy of which files are asked for first, ``listed`` one of which documents
are, and ``warm`` one that has fetched all. ``virtual`` is around a cold proxy, and ``around`` around a hosted one.
"""


@define(eq=False)
class MatrixWorld:
    """The servers; ``hosted`` are the addresses of the specimens in the upstream, by format."""

    stack: Stack
    upstream: RunningServer
    _numbers: Any = field(factory=count)

    async def repository(self, specimen: Specimen, kind: str, *, empty: bool = False) -> str:
        """Add a repository of a kind with the specimen, unless it is to be empty. Returns its name."""
        name = f"{specimen.format}-{kind}-{next(self._numbers)}"
        if kind in ("hosted", "around"):
            inner = f"{name}-own" if kind == "around" else name
            await self.add(specimen, inner, {"type": "Hosted"})
            if not empty:
                await specimen.publish(self.sender(inner))
        else:
            inner = f"{name}-proxy" if kind == "virtual" else name
            url = f"{self.upstream.url}/repositories/main/{specimen.format}-own{specimen.upstream}"
            await self.add(specimen, inner, {"type": "Proxy", "proxy": {"routes": [{"url": url, "name": "up"}]}})
        if inner != name:
            await self.add(specimen, name, {"type": "Virtual", "members": [f"main/{inner}"]})
        return name

    async def add(self, specimen: Specimen, name: str, config: Mapping[str, Any]) -> None:
        await self.stack.add_repository(name, format=specimen.format, config=config)

    def sender(self, name: str, who: str | None = "admin") -> Any:
        """A function that publishes to a repository."""

        async def send(method: str, path: str, body: bytes, media_type: str) -> Reply:
            reply = await self.ask(name, method, path, body, media_type, who=who)
            assert reply.status in (200, 201), (path, reply.status, reply.body)
            return reply

        return send

    async def ask(
        self,
        name: str,
        method: str,
        path: str,
        body: bytes | None = None,
        media_type: str = "",
        *,
        who: str | None = None,
        agent: str = "",
    ) -> Reply:
        headers = {"Content-Type": media_type} if media_type else {}
        headers |= {"User-Agent": agent} if agent else {}
        return await self.stack.call(method, f"/repositories/main/{name}{path}", raw=body, headers=headers, who=who)

    async def set_rules(self, name: str, *rules: Mapping[str, Any]) -> None:
        await self.stack.ok("PUT", f"/repository/main%2F{name}/config/policy", {"rules": list(rules)})

    async def settle(self) -> None:
        """Have stored what proxies have served."""
        await self.stack.assembly._proxies.settle()

    async def load_advisories(self) -> None:
        while (reply := await self.stack.api("POST", "/advisories/refresh?wait=true")).status == 409:
            pass
        assert reply.status == 200, reply.body


def malware(specimen: Specimen, **fields: Any) -> dict[str, Any]:
    """A record that says that the bad version of a specimen is malware."""
    return record(f"{MALWARE}-{specimen.format}", _about(specimen), **fields)


def _about(each: Specimen) -> Mapping[str, Any]:
    return affected(each.ecosystem, each.name, *since(BAD), kind="SEMVER" if each.format == "npm" else "ECOSYSTEM")


def advisories(specimens: Sequence[Specimen]) -> list[dict[str, Any]]:
    """A record about the bad version of each specimen whose ecosystem has records, and one of malware."""
    found = [each for each in specimens if each.ecosystem]
    severe = {"database_specific": {"severity": "CRITICAL"}}
    return [record(f"{ADVISORY}-{each.format}", _about(each), **severe) for each in found] + list(map(malware, found))


@asynccontextmanager
async def matrix_world(folder: Path, *, block_malware: bool = False) -> AsyncIterator[MatrixWorld]:
    """Both servers, running; the upstream has all specimens. The one may ``block_malware`` by itself."""
    source = write_folder(folder / "osv", advisories(SPECIMENS))
    with no_failures(), CLOCK.installed():
        root = folder / "trusted_root.json"
        root.write_bytes(SIGSTORE.root_text)
        trusted = {"auth__trusted_root": str(root)}
        upstream = RunningServer(server_config(folder / "upstream", **trusted))
        given: dict[str, Any] = {
            "advisories__source": str(source),
            "advisories__block_malware": block_malware,
            **trusted,
        }
        await upstream.start()
        archives = {SOURCE_HOST: f"{upstream.url}/repositories/main/archives/{{owner}}/{{repo}}/{{tag}}.tar.gz"}
        given |= {"proxy__allow_private": ["127.0.0.1"], "proxy__source_archives": archives}
        stack = Stack(folder / "front", **given)
        await stack.start()
        try:
            world = MatrixWorld(stack, upstream)
            await _fill(upstream)
            await world.load_advisories()
            yield world
        finally:
            await stack.stop()
            await upstream.stop()


async def _fill(upstream: RunningServer) -> None:
    """Publish the specimens to the upstream, over its socket."""

    async def post(method: str, path: str, body: bytes, media_type: str) -> None:
        reply = await treq.request(
            method, f"{upstream.url}{path}", data=body, auth=upstream.admin, headers={"Content-Type": media_type}
        )
        text = await reply.content()
        assert reply.code in (200, 201), (path, reply.code, text)

    for name, kind in [("archives", "raw"), *((f"{each.format}-own", each.format) for each in SPECIMENS)]:
        settings = {
            "name": name,
            "storage": "main",
            "format": kind,
            "visibility": "public",
            "config": {"type": "Hosted"},
        }
        await post("POST", "/api/repository", json.dumps(settings).encode(), "application/json")
    path, archive = SOURCE_ARCHIVE
    await post("PUT", f"/repositories/main/archives/{path}", archive, "application/gzip")
    for each in SPECIMENS:

        async def send(method: str, path: str, body: bytes, media_type: str, each: Specimen = each) -> None:
            await post(method, f"/repositories/main/{each.format}-own{path}", body, media_type)

        await each.publish(send)
