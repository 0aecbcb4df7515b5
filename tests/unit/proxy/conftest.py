"""Proxies over a real catalog, with real upstreams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest_twisted

from tests.support.inprocess_server import no_failures
from tests.support.proxy_world import ProxyWorld


@pytest_twisted.async_yield_fixture
async def world(tmp_path: Path) -> Any:
    """Repositories and upstreams that a test adds; a failure in the log fails the test."""
    with no_failures():
        made = ProxyWorld(tmp_path)
        await made.start()
        yield made
        await made.settle()
        await made.stop()
