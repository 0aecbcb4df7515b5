"""A server without ports with proxies of a scripted registry, and a clock that tests advance."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from attrs import evolve, frozen

from tests.support.images import make_artifact, make_image
from tests.support.memory_server import Reply, Stack, running_stacks
from tests.support.trust import SettableClock, stop_clock
from tests.support.upstreams.container import ContainerUpstream

DAY_MS = 86_400_000
ONE, TWO, THREE = (make_image(each) for each in ("one", "two", "three"))
SIGNED = make_image("x")
SIGNATURE = make_artifact(
    None,
    "application/vnd.dev.cosign.artifact.sig.v1+json",
    layers=[{**SIGNED.descriptor, "mediaType": "application/vnd.dev.cosign.simplesigning.v1+json"}],
)
SIGNATURE = evolve(SIGNATURE, blobs=(*SIGNATURE.blobs, SIGNED.manifest))


@frozen
class Mirrors:
    """The repository ``main/mirror`` in front of ``up``."""

    stack: Stack
    up: ContainerUpstream
    clock: SettableClock

    async def add(self, name: str = "mirror", **settings: Any) -> None:
        """Add a proxy with the route ``up``, or with ``members`` a virtual repository."""
        config: dict[str, Any] = {"type": "Virtual", **settings}
        if "members" not in settings:
            config = {"type": "Proxy", "proxy": {"routes": [{"url": self.up.url, "name": "up"}]}, **settings}
        await self.stack.add_repository(name, format="docker", config=config)

    async def get(self, path: str, name: str = "mirror", method: str = "GET") -> Reply:
        """Request something below the address of a repository."""
        return await self.stack.call(method, f"/v2/main/{name}/{path}")

    async def explain(self, image: str, version: str | None = None, name: str = "mirror", **query: str) -> Any:
        """The explanation of an image, as a stranger gets it."""
        asked = {"repository": f"main/{name}", "package": image, **({"version": version} if version else {}), **query}
        text = "&".join(f"{key}={value}" for key, value in asked.items())
        reply = await self.stack.call("GET", f"/api/explain?{text}", who=None)
        assert reply.status == 200, reply
        assert b"127.0.0.1" not in reply.body
        return reply.json

    def pass_days(self, days: float) -> None:
        """Let time pass."""
        self.clock.ms += round(days * DAY_MS)


@pytest.fixture
def up() -> Iterator[ContainerUpstream]:
    with ContainerUpstream() as started:
        yield started


@pytest_twisted.async_yield_fixture
async def mirrors(tmp_path: Path, up: ContainerUpstream, monkeypatch: pytest.MonkeyPatch) -> Any:
    clock = stop_clock(monkeypatch)
    async with running_stacks(tmp_path) as make:
        yield Mirrors(await make(proxy__allow_private=["127.0.0.1"]), up, clock)
