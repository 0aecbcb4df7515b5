"""Repositories over a catalog in memory and a store on the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest_twisted

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
    await found.stop()
