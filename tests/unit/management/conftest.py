"""Servers without ports for the tests of the management API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest_twisted

from tests.support.memory_server import running_stacks


@pytest_twisted.async_yield_fixture
async def make_stack(tmp_path: Path) -> Any:
    """See L{running_stacks}."""
    async with running_stacks(tmp_path) as make:
        yield make


@pytest_twisted.async_yield_fixture
async def stack(make_stack: Any) -> Any:
    """A server without ports, with the default configuration."""
    yield await make_stack()
