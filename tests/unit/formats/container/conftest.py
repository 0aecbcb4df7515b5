"""A registry without ports in which images wait for signatures."""

from __future__ import annotations

from typing import Any

import pytest
import pytest_twisted

from tests.support.trust import KEY, TrustingRegistry, stop_clock


@pytest_twisted.async_yield_fixture
async def world(make_registry: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    stop_clock(monkeypatch)
    world = TrustingRegistry(await make_registry(rules={}))
    await world.configure(KEY)
    await world.registry.stack.add_user("rita")
    await world.registry.stack.grant("rita", "main/images", "read")
    yield world
