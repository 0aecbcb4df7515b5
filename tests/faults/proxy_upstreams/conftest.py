"""
Proxy repositories whose upstream misbehaves.

Clients get an error that tells them to try again, never "not found" and never wrong bytes; what is in the cache is
served all the same; and as soon as the upstream behaves again, everything works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.data_folder import DataFolder, wait_for
from tests.support.proxied import KINDS, Proxied
from tests.support.proxy_faults import CONFIGURATION, NUMBERS
from tests.support.server_process import ServerProcess, restarts

AT_ONCE = 8  # cases of a test that mostly wait; few enough that none waits for the processor


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("proxies")


@pytest.fixture(scope="module")
def server(folder):
    """One server for all tests; each has upstreams and repositories of its own."""
    with restarts(folder, CONFIGURATION) as start:
        server = start()
        yield server
        data = DataFolder(folder / "data")
        assert data.damaged() == []
        wait_for(lambda: not data.unfinished(), server)


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def make(server, kind):
    """Make proxy repositories of one format, with upstreams of their own."""
    with proxies(server, kind) as make:
        yield make


@pytest.fixture(scope="module")
def begun() -> Iterator[tuple[ThreadPoolExecutor, dict[str, Future[None]]]]:
    """Threads for cases, and those that have begun by the names of their tests."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield pool, {}
        pool.shutdown(cancel_futures=True)


@pytest.fixture
def at_once(request: pytest.FixtureRequest, server: ServerProcess, begun: Any) -> Callable[[Callable[..., None]], None]:
    """
    Run this case of a test, and all others of it at the same time, since they mostly wait.

    It is called with a function of ``make`` and of the parameters of the test but ``kind``.
    """
    pool, cases = begun
    node: Any = request.node

    def run(case: Callable[..., None]) -> None:
        if node.nodeid not in cases:
            for each in node.session.items:
                if (each.path, each.originalname) == (node.path, node.originalname):
                    cases[each.nodeid] = pool.submit(_run, case, server, **each.callspec.params)
        cases[node.nodeid].result()

    return run


@contextmanager
def proxies(server: ServerProcess, kind: str) -> Iterator[Callable[..., Proxied[Any]]]:
    """Yield what makes proxy repositories of one format, with upstreams of their own."""
    upstreams = []

    def make(**settings: Any) -> Proxied[Any]:
        upstream_class, proxied_class = KINDS[kind]
        upstreams.append(upstream_class(**settings.pop("upstream", {})).start())
        return proxied_class(upstreams[-1], server.url, f"{kind}-{next(NUMBERS)}", **settings)

    try:
        yield make
    finally:
        for each in upstreams:
            each.stop()


def _run(case: Callable[..., None], server: ServerProcess, *, kind: str, **parameters: Any) -> None:
    with proxies(server, kind) as make:
        case(make, **parameters)
