"""What is answered before it is stored (``proxy.store_delay``), when the server is killed or its disk is full."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.configurations import proxy
from tests.support.data_folder import DataFolder, pkgrepo, wait_for
from tests.support.full_disk import file_system, filled
from tests.support.http_client import HttpClient, Reply
from tests.support.proxied import PRIVATE
from tests.support.python_index import PASSWORD, USER
from tests.support.server_process import ServerProcess, restarts
from tests.support.upstreams.npm import NpmUpstream

pytestmark = pytest.mark.faults

COUNT = 30
SIZES = (0, 30_000, 90_000)  # the last one is staged in a file, the others are in memory
CONFIGURATION = PRIVATE + 'store_delay = "2s"\n'

Tarballs = Mapping[str, bytes]

MOMENTS = {
    "answered": lambda _: True,
    "copied": lambda data: bool(data.copies()),
    "recorded": lambda data: data.rows("SELECT COUNT(*) FROM file") > [(0,)],
}


def fill(upstream: NpmUpstream) -> Tarballs:
    return {f"batched-{number}": upstream.add(f"batched-{number}", pad=SIZES[number % 3]) for number in range(COUNT)}


def ask(server: ServerProcess, path: str) -> Reply:
    return HttpClient(f"{server.url}/repositories/main/mirror", (USER, PASSWORD)).get(path)


def fetch(server: ServerProcess, tarballs: Tarballs) -> int:
    """Fetch all; those that can be had are right. Returns how many that are."""

    def fetch_one(name: str) -> bool:
        document, tarball = ask(server, f"/{name}"), ask(server, f"/{name}/-/{name}-1.0.0.tgz")
        for each in (document, tarball):
            assert each.status in (200, 502, 503, 507), each
        assert document.status != 200 or list(document.json["versions"]) == ["1.0.0"]
        assert tarball.status != 200 or tarball.body == tarballs[name]
        return (document.status, tarball.status) == (200, 200)

    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(fetch_one, tarballs))


@pytest.mark.parametrize("moment", list(MOMENTS))
def test_a_kill_loses_answers_as_a_whole_or_not_at_all(run, data, moment):
    with NpmUpstream() as upstream:
        tarballs = fill(upstream)
        configuration = CONFIGURATION + proxy("npm", "mirror", upstream.url)
        server = run(configuration)
        assert fetch(server, tarballs) == COUNT
        wait_for(lambda: MOMENTS[moment](data), server)
        server.kill()

        upstream.stop()
        server = run(configuration)
        fetch(server, tarballs)
        assert server.stop() in (0, -15)
        upstream.start()
        server = run(configuration)
        assert fetch(server, tarballs) == COUNT
        wait_for(lambda: data.rows("SELECT COUNT(*) FROM file") == [(COUNT,)], server)
        wait_for(data.is_tidy, server)
        assert data.damaged() == []
        wait_for(data.is_in_step, server)
        assert server.stop() in (0, -15)
    checked = pkgrepo(data, "verify")
    assert (checked.returncode, checked.stderr.count("differs")) == (0, 0), checked.stderr


def test_on_a_full_disk_answers_are_lost_as_a_whole(tmp_path):
    with NpmUpstream() as upstream, file_system(tmp_path / "data", "24m") as folder:
        tarballs = fill(upstream)
        configuration = CONFIGURATION + proxy("npm", "mirror", upstream.url) + '\n[data]\nlow_water = "256KiB"\n'
        with restarts(tmp_path, configuration) as start:
            server, data = start(), DataFolder(folder)
            assert fetch(server, tarballs) == COUNT
            with filled(folder):
                fetch(server, tarballs)
                server.stop()  # stores what still waits, as far as it can
            upstream.stop()
            server = start()
            fetch(server, tarballs)
            assert data.damaged() == []
            server.stop()
            upstream.start()
            server = start()
            assert fetch(server, tarballs) == COUNT
            wait_for(lambda: data.rows("SELECT COUNT(*) FROM file") == [(COUNT,)], server)
            assert data.damaged() == []
