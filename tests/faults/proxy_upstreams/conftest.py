"""
Proxy repositories whose upstream misbehaves.

Clients get an error that tells them to try again, never "not found" and never wrong bytes; what is in the cache is
served all the same; and as soon as the upstream behaves again, everything works.
"""

from __future__ import annotations

import pytest

from tests.support.data_folder import DataFolder, wait_for
from tests.support.proxied import KINDS
from tests.support.proxy_faults import CONFIGURATION, NUMBERS
from tests.support.server_process import restarts


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
    upstreams = []

    def make(**settings):
        upstream_class, proxied_class = KINDS[kind]
        upstreams.append(upstream_class(**settings.pop("upstream", {})).start())
        return proxied_class(upstreams[-1], server.url, f"{kind}-{next(NUMBERS)}", **settings)

    yield make
    for each in upstreams:
        each.stop()
