"""The disk becomes full while files of an upstream are transferred."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from twisted.internet.defer import gatherResults

from tests.support.caching_proxy import fetch
from tests.support.full_disk import MIB, file_system
from tests.support.upstreams.messages import Answer, Fault

pytestmark = [pytest.mark.server, pytest.mark.faults]


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    with file_system(tmp_path / "small", "4m") as place:
        yield place / "store"


@pytest.mark.parametrize("fault", [Fault(), Fault(chunked=True)])
async def test_file_that_does_not_fit_is_refused_and_the_next_one_fits(proxy: Any, origin: Any, fault: Fault) -> None:
    large, small = os.urandom(6 * MIB), os.urandom(2 * MIB)
    origin.serve("/large", Answer(body=large))
    origin.serve("/small", Answer(body=small))
    origin.misbehave("/large", fault, repeat=True)
    fetched = await gatherResults([fetch(proxy.server.url, "large") for _ in range(3)])
    assert [each.status for each in fetched] == [507] * 3
    assert proxy.services.copies() == []
    assert (await fetch(proxy.server.url, "small")).body == small


async def test_disk_that_is_full_in_the_middle_aborts_the_readers(
    proxy: Any, origin: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The space for a file of known size is reserved, where the file system can do that.
    monkeypatch.setattr("pkgrepo.storage.blobs.upload_file.reserve", lambda *_: None)
    monkeypatch.setattr(proxy.services.store, "capacity", lambda: (64 * MIB, 64 * MIB))
    origin.serve("/large", Answer(body=os.urandom(6 * MIB)))
    fetched = await fetch(proxy.server.url, "large")
    assert (fetched.status, fetched.complete) == (200, False)
    assert proxy.services.copies() == []
