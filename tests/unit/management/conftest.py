"""Servers without ports for the tests of the management API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest_twisted

from tests.support.management import Stack
from tests.support.server import no_failures


@pytest_twisted.async_yield_fixture
async def make_stack(tmp_path: Path) -> Any:
    """Starts servers without ports: ``await make_stack(section__key=value)``; nothing may fail in the log."""
    stacks: list[Stack] = []

    async def make(**overrides: Any) -> Stack:
        stacks.append(Stack(tmp_path / str(len(stacks)), **overrides))
        await stacks[-1].start()
        return stacks[-1]

    with no_failures():
        yield make
        for stack in stacks:
            await stack.stop()


@pytest_twisted.async_yield_fixture
async def stack(make_stack: Any) -> Any:
    """A server without ports, with the default configuration."""
    yield await make_stack()
