"""A scripted upstream, and a site that hands out and stores its files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted

from tests.support.blob_stores import open_descriptors
from tests.support.caching_proxy import CachingProxy
from tests.support.inprocess_server import until
from tests.support.repositories import RepositoryServices, started_pools
from tests.support.upstreams.server import ScriptedUpstream


@pytest.fixture
def origin() -> Iterator[ScriptedUpstream]:
    with ScriptedUpstream() as upstream:
        yield upstream


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of the storage."""
    return tmp_path / "store"


@pytest_twisted.async_yield_fixture
async def make_proxy(scene: Any, origin: ScriptedUpstream, root: Path) -> Any:
    """Makes a proxy of ``origin``. At the end no transfer, descriptor or unfinished upload may be left."""
    pools = started_pools()
    services = RepositoryServices(root, pools)
    await services.start()
    made: list[CachingProxy] = []

    def make(*, client: dict[str, Any] | None = None, **options: Any) -> CachingProxy:
        made.append(CachingProxy(services, scene.upstream(origin.url, **(client or {})), **options))
        return made[-1]

    yield make
    for each in made:
        await until(lambda each=each: not len(each.transfers))  # type: ignore[misc]
        await each.stop()
    await until(lambda: not open_descriptors())
    assert list((services.root / "uploads").iterdir()) == []
    await pools.stop()


@pytest.fixture
def proxy(make_proxy: Callable[..., CachingProxy]) -> CachingProxy:
    return make_proxy()
