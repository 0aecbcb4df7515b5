"""Registries without ports for unit tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest_twisted

from tests.support.images import Registry
from tests.support.inprocess_server import no_failures
from tests.support.memory_server import Stack

Make = Callable[..., Awaitable[Registry]]


@pytest_twisted.async_yield_fixture
async def make_registry(tmp_path: Path) -> Any:
    """
    Starts registries: ``await make_registry(rules={...}, policy={...}, visibility=..., section__key=value)``.

    Those of one ``folder`` have the same data, one after the other. With ``fresh`` each has a repository, main/images.
    """
    stacks: list[Stack] = []

    async def make(
        *,
        rules: Any = None,
        policy: Any = None,
        visibility: str = "public",
        folder: str = "",
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
