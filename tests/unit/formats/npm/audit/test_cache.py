"""The advisories of the server, which are never taken for none while they cannot be read."""

from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from pkgrepo.formats.npm.audit.export import CHECK_EVERY_MS, AdvisoriesUnreadable, AdvisoryCache
from pkgrepo.storage.pools import Pools
from tests.support.proxy_world import ManualClock
from tests.support.repositories import started_pools

RECORD = """{"id": "GHSA-1", "affected": [{"package": {"ecosystem": "npm", "name": "x"}, "versions": ["1.0.0"]}]}"""


@pytest_twisted.async_yield_fixture
async def pools() -> Any:
    started = started_pools()
    yield started
    await started.stop()


async def test_export_that_was_never_read_is_an_error(tmp_path: Path, pools: Pools) -> None:
    clock = ManualClock()
    cache = AdvisoryCache(tmp_path / "osv.zip")
    for content in (None, b"this is no zip"):
        if content is not None:
            (tmp_path / "osv.zip").write_bytes(content)
        with pytest.raises(AdvisoriesUnreadable):
            await cache.index(pools, clock)
        clock.advance(CHECK_EVERY_MS / 1000)


async def test_advisories_that_were_read_stay_when_the_export_is_lost(tmp_path: Path, pools: Pools) -> None:
    clock = ManualClock()
    (tmp_path / "osv").mkdir()
    (tmp_path / "osv" / "one.json").write_text(RECORD)
    cache = AdvisoryCache(tmp_path / "osv")
    assert len((await cache.index(pools, clock)).of("x")) == 1
    (tmp_path / "osv").rename(tmp_path / "elsewhere")
    clock.advance(CHECK_EVERY_MS / 1000)
    assert len((await cache.index(pools, clock)).of("x")) == 1
