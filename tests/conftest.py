"""Servers for tests, in this process and beside it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from hypothesis import HealthCheck, settings

from tests.support import server_process
from tests.support.delayed_catalog import delay_catalogs
from tests.support.inprocess_server import RunningServer, assert_reactor_rests, no_failures, server_config, watched
from tests.support.server_process import ServerProcess, twistd_process

# What an example takes is no property of ours: on a busy machine any of them may be late, and making them may be slow.
settings.register_profile("pkgrepo", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# What lets a change land looks at the same examples each time; the runs before it look for new ones.
settings.register_profile("landing", parent=settings.get_profile("pkgrepo"), derandomize=True)
settings.load_profile(os.environ.get("PKGREPO_HYPOTHESIS", "pkgrepo"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--catalog-delay 0.2`` runs every server, in this process and beside it, on a catalog that is so slow."""
    parser.addoption("--catalog-delay", type=float, metavar="SECONDS", help="delay every answer of servers' catalogs")


def pytest_configure(config: pytest.Config) -> None:
    """Put the delay into the servers."""
    delay_s = config.getoption("--catalog-delay")
    if delay_s is not None:
        delay_catalogs(delay_s)
        server_process.TWISTD[:] = [sys.executable, "-m", "tests.support.delayed_twistd", str(delay_s)]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name archives by their argument: their bytes hold the time, and each process must collect the same tests."""
    return argname if isinstance(val, bytes) and len(val) > 16 and not val.isascii() else None


def pytest_collection_finish() -> None:
    """Exclude imported modules from the garbage collections that tests ask for; those took half of many tests' time."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """The same for what a module's tests left in caches."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest_twisted.async_yield_fixture
async def make_server(tmp_path: Path) -> Any:
    """
    Starts whole servers in this process: ``await make_server(section__key=value)``.

    Afterwards they are stopped, and nothing may be left in the reactor or have failed in the log.
    """
    before = watched()
    servers: list[RunningServer] = []

    async def make(**overrides: object) -> RunningServer:
        server = RunningServer(server_config(tmp_path, **overrides))
        servers.append(server)
        await server.start()
        return server

    with no_failures():
        yield make
        for server in servers:
            await server.stop()
        await assert_reactor_rests(before)


@pytest_twisted.async_yield_fixture
async def server(make_server: Any) -> Any:
    """A whole server in this process, with the default configuration."""
    yield await make_server()


@pytest.fixture
def run_twistd(tmp_path: Path) -> Iterator[Callable[..., ServerProcess]]:
    """Starts ``twistd -n pkgrepo`` in processes of their own; see ``twistd_process``."""
    processes: list[ServerProcess] = []

    def run(*options: str, **arguments: Any) -> ServerProcess:
        processes.append(twistd_process(tmp_path, *options, **arguments))
        return processes[-1]

    yield run
    for process in processes:
        process.kill()
