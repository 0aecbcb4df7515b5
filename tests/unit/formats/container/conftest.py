"""A registry without ports for the tests of the container format."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from tests.support.images import Registry
from tests.support.inprocess_server import no_failures
from tests.support.memory_server import Stack
from tests.support.trust import KEY, SettableClock, TrustingRegistry

Make = Callable[..., Awaitable[Registry]]


@pytest_twisted.async_yield_fixture
async def make_registry(tmp_path: Path) -> Any:
    """Starts registries: ``await make_registry(rules={...}, policy={...}, visibility=..., section__key=value)``."""
    stacks: list[Stack] = []

    async def make(
        *,
        rules: Any = None,
        policy: Any = None,
        visibility: str = "public",
        folder: str = "data",
        fresh: bool = True,
        **overrides: Any,
    ) -> Registry:
        stack = Stack(tmp_path / folder, **overrides)
        stacks.append(stack)
        await stack.start()
        config = {"type": "Hosted", "push_rules": rules or {}, "policy": policy or {}}
        if fresh and stack.assembly.core.registry.find("main", "images") is None:
            await stack.add_repository("images", format="docker", visibility=visibility, config=config)
        return Registry(stack)

    with no_failures():
        yield make
        for stack in stacks:
            await stack.stop()


@pytest_twisted.async_yield_fixture
async def registry(make_registry: Make) -> Any:
    """A registry with one public repository, main/images."""
    yield await make_registry()


@pytest_twisted.async_yield_fixture
async def world(make_registry: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    from pkgrepo.composition import core

    inner = core.SystemClock
    monkeypatch.setattr(core, "SystemClock", lambda: SettableClock(inner()))
    world = TrustingRegistry(await make_registry(rules={}))
    await world.configure(KEY)
    await world.registry.stack.add_user("rita")
    await world.registry.stack.grant("rita", "main/images", "read")
    yield world
