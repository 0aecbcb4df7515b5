"""A container registry without ports that requires trusted signatures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from twisted.internet.task import Clock as ReactorClock

from pkgrepo.composition import core
from pkgrepo.gateway.responses.content import Files
from pkgrepo.repositories.clock import SystemClock
from tests.support.images import Image, Registry
from tests.support.memory_server import Reply
from tests.support.signing import Signer, sign_simply, signature_tag

RULES = {"require_content_trust": True, "allow_tag_overwrite": True}
READER = None
KEY = Signer()


class TrustingRegistry:
    """A registry with one repository, which trusts ``KEY`` by default, and its clock."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.core = registry.stack.assembly.core
        self.repository = self.core.registry.find("main", "images")
        (self.expiry,) = self.core.formats["docker"].background(self._services(), ReactorClock())

    def _services(self) -> Any:
        """The services that verification and expiry use."""
        core = self.core
        files = Files(registry=core.registry, stores=core.stores, first_reads=core.first_reads)
        return SimpleNamespace(
            catalog=core.catalog,
            clock=core.clock,
            files=files,
            pools=core.pools,
            content=core.content,
            registry=core.registry,
        )

    async def configure(self, *keys: Signer, rule: bool = True, window_s: int = 3600) -> None:
        config = {
            "type": "Hosted",
            "push_rules": {**RULES, "require_content_trust": rule},
            "trust": {"keys": [key.pem for key in keys], "window_s": window_s},
        }
        await self.registry.stack.ok("PUT", f"/repository/{self.repository.uid}/config", config)

    async def pull(self, reference: str, who: str | None = READER, method: str = "GET") -> Reply:
        return await self.registry.below(method, f"manifests/{reference}", who=who)

    async def seen(self, reference: str, who: str | None = READER) -> str | None:
        reply = await self.pull(reference, who)
        assert reply.status in (200, 404), reply.body
        return reply.headers["docker-content-digest"] if reply.status == 200 else None

    async def tags(self, who: str | None = READER) -> Any:
        return (await self.registry.below("GET", "tags/list", who=who)).json["tags"]

    async def catalog(self, who: str) -> Any:
        return (await self.registry.call("GET", "/_catalog", who=who)).json["repositories"]

    async def sign(self, image: Image, key: Signer = KEY) -> Reply:
        return await self.registry.push(sign_simply(key, image.digest), signature_tag(image.digest))

    async def later(self, seconds: float) -> None:
        """Advance the clock, and run the expiry once."""
        self.core.clock.ms += int(seconds * 1000)
        await self.expiry.run_once()


class SettableClock:
    """A clock that only tests advance."""

    def __init__(self, inner: Any) -> None:
        self._began_ms = int(inner.now_ms())
        self.ms = 0

    def now_ms(self) -> int:
        return self._began_ms + self.ms


def stop_clock(monkeypatch: pytest.MonkeyPatch) -> SettableClock:
    """Give servers that are made later a clock that only tests advance; returns it."""
    clock = SettableClock(SystemClock())
    monkeypatch.setattr(core, "clock_of", lambda _catalog: clock)
    return clock
