"""Repositories over a catalog in memory and a store on the disk, and registries without ports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest_twisted

from tests.support.images import Registry
from tests.support.inprocess_server import no_failures
from tests.support.memory_server import Stack
from tests.support.repositories import RepositoryServices, started_pools


@pytest_twisted.async_yield_fixture
async def pools() -> Any:
    """Running threads."""
    found = started_pools()
    yield found
    await found.stop()


@pytest_twisted.async_yield_fixture
async def world(tmp_path: Path, pools: Any) -> Any:
    """A storage with one repository, ``main/py``."""
    found = RepositoryServices(tmp_path / "store", pools)
    await found.start()
    yield found
    if found.follower.running:
        following = found.follower.stopService()
        if following is not None:
            await following


@pytest_twisted.async_yield_fixture
async def make_registry(tmp_path: Path) -> Any:
    """Starts registries with one repository, main/images, one after the other on the same folder."""
    stacks: list[Stack] = []

    async def make(*, fresh: bool = True, rules: Any = None, **policy: Any) -> Registry:
        stack = Stack(tmp_path)
        stacks.append(stack)
        await stack.start()
        if fresh:
            config = {"type": "Hosted", "policy": policy, "push_rules": rules or {}}
            await stack.add_repository("images", format="docker", config=config)
        return Registry(stack)

    with no_failures():
        yield make
        for stack in stacks:
            await stack.stop()


@pytest_twisted.async_yield_fixture
async def registry(make_registry: Any) -> Any:
    """A registry with one repository, main/images."""
    yield await make_registry()
