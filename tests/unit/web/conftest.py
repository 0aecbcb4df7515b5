"""Servers without ports, and browsers, for the tests of the console."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest_twisted

from tests.support.browser import Browser
from tests.support.memory_server import running_stacks


@pytest_twisted.async_yield_fixture
async def make_stack(tmp_path: Path) -> Any:
    """See L{running_stacks}."""
    async with running_stacks(tmp_path) as make:
        yield make


@pytest_twisted.async_yield_fixture
async def browser(make_stack: Any) -> Any:
    """A browser that has not logged in, at a server with the default configuration."""
    yield Browser(await make_stack())
