"""Starts upstreams and servers in front of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.container_proxy import Make


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as each:
        yield each


@pytest.fixture
def make(tmp_path: Path, stack: ExitStack) -> Make:
    return Make(tmp_path, stack)
