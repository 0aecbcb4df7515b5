"""Fixtures that start servers in the test process and in processes of their own."""

from __future__ import annotations

import gc
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from hypothesis import HealthCheck, settings

from pkgrepo.composition.core import make_formats
from pkgrepo.config import Config
from tests.support import server_process
from tests.support.added_formats import add_formats
from tests.support.delayed_catalog import delay_catalogs
from tests.support.failures_at_once import FailuresAtOnce
from tests.support.inprocess_server import RunningServer, assert_reactor_rests, no_failures, server_config, watched
from tests.support.postgresql import PostgresServer, postgresql_server, replica_of
from tests.support.postgresql_catalogs import Databases
from tests.support.running_order import mixed
from tests.support.s3_servers import s3_server
from tests.support.server_buckets import use_s3
from tests.support.server_databases import databases_with_schema, use_postgresql
from tests.support.server_process import ServerProcess, twistd_process
from tests.support.time_limits import limit_waits
from tests.support.unit_filters import launcher

# No deadline per example: on a busy machine any example may be slow, and so may their generation.
settings.register_profile("pkgrepo", deadline=None, suppress_health_check=[HealthCheck.too_slow])
# The profile "landing" runs the same examples every time, so that no change is refused by chance.
settings.register_profile("landing", parent=settings.get_profile("pkgrepo"), derandomize=True)
settings.load_profile(os.environ.get("PKGREPO_HYPOTHESIS", "pkgrepo"))

SERVERS = pytest.StashKey[ExitStack]()
MODULES = pytest.StashKey[int]()  # how many were imported when objects were excluded from collections


def pytest_addoption(parser: pytest.Parser) -> None:
    """
    Options about the catalogs and storages of all servers, in this and in other processes.

    ``--catalog-delay 0.2`` delays every operation. ``--postgresql`` keeps them on a PostgreSQL server, which is started
    once for each process that runs tests. ``--s3`` keeps their default storages in a bucket, in the same way. With
    ``--nodes`` the server of each module of tests/clients is two nodes, of which each request goes to the other one
    than the request before. ``--workers 2`` makes every server in a process of its own two workers, unless its test
    says how many it has. ``--confined`` runs servers in processes of their own under the filters of the systemd unit.
    """
    parser.addoption("--catalog-delay", type=float, metavar="SECONDS", help="delay every answer of servers' catalogs")
    parser.addoption("--postgresql", action="store_true", help="keep servers' catalogs in PostgreSQL")
    parser.addoption("--s3", action="store_true", help="keep servers' default storages in a bucket")
    parser.addoption("--nodes", action="store_true", help="run the scenarios of clients against two nodes in turn")
    parser.addoption("--workers", type=int, metavar="N", help="run servers with N worker processes")
    parser.addoption("--confined", action="store_true", help="run servers under the filters of the systemd unit")


add_formats()
make_formats(Config())  # rights ask about formats also in tests that have no server


def pytest_configure(config: pytest.Config) -> None:
    """Apply ``--catalog-delay``, ``--postgresql``, ``--s3`` and ``--workers``, and time limits to waits."""
    limit_waits()
    delay_s, workers = config.getoption("--catalog-delay"), config.getoption("--workers")
    if workers is not None:
        if delay_s is not None or config.getoption("--postgresql") or config.getoption("--s3"):
            raise pytest.UsageError("--workers: the catalogs and storages of workers cannot be replaced")
        server_process.WORKERS[:] = [str(workers)]
    if config.getoption("--confined"):
        server_process.LAUNCHER[:] = launcher()
    if delay_s is not None:
        delay_catalogs(delay_s)
        server_process.PATCHES.extend(("delay", str(delay_s)))
    runs_tests = hasattr(config, "workerinput") or not config.getoption("numprocesses", None)
    servers = config.stash[SERVERS] = ExitStack()
    if config.getoption("--postgresql") and runs_tests:
        address = servers.enter_context(databases_with_schema())
        use_postgresql(address)
        server_process.PATCHES.extend(("postgresql", address))
    if config.getoption("--s3") and runs_tests:
        bucket = servers.enter_context(s3_server())
        use_s3(bucket.endpoint, bucket.objects)
        server_process.PATCHES.extend(("s3", bucket.endpoint))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Tell failures at once; the reporter of the terminal is there from now on."""
    if terminal := session.config.pluginmanager.get_plugin("terminalreporter"):
        session.config.pluginmanager.register(FailuresAtOnce(terminal))


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the servers of ``--postgresql`` and ``--s3``."""
    config.stash.get(SERVERS, ExitStack()).close()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip what is not for the servers that the options ask for. Where several processes run, order the files."""
    for option, name in (("--s3", "folder"), ("--postgresql", "sqlite"), ("--workers", "one_process")):
        for item in items if config.getoption(option) else ():
            for mark in item.iter_markers(name):
                item.add_marker(pytest.mark.skip(reason=f"needs {name}: {mark.args[0]}"))
    if hasattr(config, "workerinput"):
        files: dict[Path, list[pytest.Item]] = {}
        for item in items:
            files.setdefault(item.path, []).append(item)
        items[:] = [item for each in mixed(files) for item in files[each]]


def pytest_itemcollected(item: pytest.Item) -> None:
    """Run tests that are coroutines in the reactor."""
    if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.obj):
        item.obj = pytest_twisted.ensureDeferred(item.obj)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name archives and signed texts without their content, which differs: all processes must collect equal ids."""
    binary = isinstance(val, bytes) and len(val) > 16 and not val.isascii()
    return argname if binary or (isinstance(val, str) and len(val) > 200) else None


def pytest_collection() -> None:
    """Look for no garbage among modules and tests, which took half the time until the first test."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Exclude imported modules from explicit garbage collections, which took half the time of many tests."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def primary() -> Iterator[PostgresServer]:
    """A PostgreSQL server that the tests of a process share."""
    with postgresql_server() as server:
        yield server


@pytest.fixture(scope="session")
def databases(primary: PostgresServer) -> Iterator[Databases]:
    """Databases of that server; each has the present schema unless it is to be empty."""
    with Databases(primary.address) as found:
        yield found


@pytest.fixture(scope="session")
def replica(primary: PostgresServer) -> Iterator[PostgresServer]:
    """A streaming replica of that server, which the tests of a process share as well."""
    with replica_of(primary) as server:
        yield server


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Exclude objects in caches as well, once after each module's tests, and the program when it has been imported."""
    stash = item.config.stash
    if nextitem is None or nextitem.path != item.path or len(sys.modules) > stash.get(MODULES, 0) + 100:
        gc.collect()
        gc.freeze()
        stash[MODULES] = len(sys.modules)


@pytest_twisted.async_yield_fixture
async def make_server(tmp_path: Path) -> Any:
    """
    Start whole servers in this process: ``await make_server(section__key=value)``.

    They are stopped at the end. Anything left in the reactor, or a failure in the log, fails the test.
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
    """Start ``twistd -n pkgrepo`` in other processes; see ``twistd_process``."""
    processes: list[ServerProcess] = []

    def run(*options: str, **arguments: Any) -> ServerProcess:
        processes.append(twistd_process(tmp_path, *options, **arguments))
        return processes[-1]

    yield run
    for process in processes:
        process.kill()
