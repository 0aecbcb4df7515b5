"""Servers without ports, in front of a registry that the tests fill."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from tests.support.inprocess_server import Turns, until, value_of
from tests.support.memory_server import Reply, Stack, running_stacks
from tests.support.upstreams.npm import NpmUpstream


class Mirror:
    """A proxy repository ``main/mirror`` of an npm registry, whose route is called ``up``."""

    def __init__(self, stack: Stack, upstream: NpmUpstream) -> None:
        self.stack = stack
        self.upstream = upstream

    async def create(self, *urls: str, **settings: Any) -> Any:
        """Add the repository; the routes of further ``urls`` are called up2, up3 and so on."""
        routes = [
            {"url": url, "name": f"up{number}" if number > 1 else "up"}
            for number, url in enumerate((self.upstream.url, *urls), 1)
        ]
        config = {"type": "Proxy", "proxy": {"routes": routes}, **settings}
        return await self.stack.add_repository("mirror", format="npm", config=config)

    async def get(self, path: str, **fields: str) -> Reply:
        """Read from the repository without credentials."""
        return await self.stack.call("GET", f"/repositories/main/mirror{path}", who=None, headers=fields)

    async def install(self, name: str, version: str = "1.0.0") -> None:
        """Read a package and a tarball, as clients do, and wait until both are kept."""
        await self.look_up(name)
        path = self.upstream.tarball_path(name, version)
        reply = await self.get(path)
        assert (reply.status, reply.body) == (200, self.upstream.tarballs[name, version])
        await self._kept("SELECT COUNT(*) FROM file WHERE path = ?", path[1:])
        await until(lambda: not len(self.stack.assembly._proxies.transfers))

    async def look_up(self, name: str) -> None:
        """Read the document of a package, and wait until it is kept."""
        assert (await self.get(f"/{name.replace('/', '%2f')}")).status == 200
        await self._kept("SELECT COUNT(*) FROM upstream_document WHERE package_key = ? AND route <> ''", name)

    async def _kept(self, sql: str, value: str) -> None:
        turns = Turns()
        while not await value_of(self.stack.assembly.core.catalog, sql, value):
            await turns()

    async def api(self, method: str, path: str, body: Any = None, **rest: Any) -> Any:
        """The answer of the API below the repository."""
        return await self.stack.ok(method, f"/repository/main%2Fmirror/{path}", body, **rest)

    async def package(self, name: str) -> Any:
        return await self.stack.ok("GET", f"/package/main%2Fmirror/{name.replace('/', '%2f')}")

    async def names(self) -> list[str]:
        """The names of the packages that are kept."""
        return [each["name"] for each in (await self.api("GET", "packages"))["items"]]

    async def flush(self) -> None:
        """Write the counts that are only in memory."""
        await self.stack.assembly.core.downloads.flush()
        await self.stack.assembly._proxies.counters.flush()

    def advance(self, *, days: float) -> None:
        """Advance the server's clock."""
        clock = self.stack.assembly.core.clock
        now = clock.now_ms
        clock.now_ms = lambda: now() + round(days * 86_400_000)  # type: ignore[method-assign]


@pytest.fixture
def upstream() -> Iterator[NpmUpstream]:
    """A registry without packages."""
    with NpmUpstream() as registry:
        yield registry


@pytest_twisted.async_yield_fixture
async def stack(tmp_path: Path) -> Any:
    """A server without ports."""
    async with running_stacks(tmp_path) as make:
        yield await make(proxy__allow_private=["127.0.0.1"])


@pytest.fixture
def mirror(stack: Stack, upstream: NpmUpstream) -> Mirror:
    """A proxy of the registry, which each test creates."""
    return Mirror(stack, upstream)
