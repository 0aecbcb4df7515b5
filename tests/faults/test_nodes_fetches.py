"""Files of upstreams whose clients are connected to two nodes, and the node that fetches them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pytest

from pkgrepo.proxy.transfers.following import SILENT_S
from tests.faults.test_nodes import paused
from tests.faults.test_shared_fetches import JAR, PATH, SIZE, Download, Origins, serve
from tests.support.configurations import proxy
from tests.support.nodes import Nodes, two_nodes
from tests.support.postgresql import PostgresServer
from tests.support.upstreams.messages import Answer, Fault
from tests.support.upstreams.npm import NpmUpstream
from tests.support.upstreams.server import ScriptedUpstream
from tests.support.workers import Connection

pytestmark = pytest.mark.faults


@pytest.fixture
def origins() -> Iterator[Origins]:
    with ScriptedUpstream() as maven, NpmUpstream() as npm:
        yield maven, npm


@pytest.fixture
def nodes(primary: PostgresServer, tmp_path: Path, origins: Origins, request: pytest.FixtureRequest) -> Iterator[Nodes]:
    """Two nodes with proxies; of one worker each, unless the test says another number."""
    workers = getattr(request, "param", "1")
    configuration = proxy("maven", "maven", origins[0].url) + proxy("npm", "npm", origins[1].url)
    configuration = 'proxy.allow_private = ["127.0.0.1"]\n' + configuration
    with two_nodes(tmp_path, primary.address, configuration, {"PKGREPO_SERVER__WORKERS": workers}) as nodes:
        yield nodes


def begin_at_both(nodes: Nodes, origin: ScriptedUpstream) -> list[Download]:
    """Clients of both nodes; that of the first one has half of the file, which its node fetches."""
    first = Download(Connection(nodes.url(0)), PATH)
    origin.wait_paused(JAR)
    first.wait_for(SIZE // 4)
    return [first, Download(Connection(nodes.url(1)), PATH)]


@pytest.mark.parametrize("nodes", ["1", "2"], indirect=True, ids=["one worker each", "two workers each"])
def test_clients_of_both_nodes_cost_one_fetch(nodes: Nodes, origins: Origins) -> None:
    body = serve(origins[0], pause_at=SIZE // 2)
    downloads = begin_at_both(nodes, origins[0])
    downloads += [Download(Connection(nodes.url(number % 2)), PATH) for number in range(14)]
    sleep(2 * SILENT_S)  # the upstream is slow; its node lives
    assert origins[0].count(JAR) == 1
    origins[0].release(JAR)
    assert [each.finish() for each in downloads] == [(200, body)] * 16
    assert (origins[0].count(JAR), origins[0].sent(JAR)) == (1, SIZE)


def test_a_node_fetches_the_file_of_one_that_is_killed(nodes: Nodes, origins: Origins) -> None:
    body = serve(origins[0], pause_at=SIZE // 2)
    [_, second] = begin_at_both(nodes, origins[0])
    nodes.kill(0)
    assert second.finish() == (200, body)
    assert Download(Connection(nodes.url(1)), PATH).finish() == (200, body)


def test_a_node_fetches_the_file_of_one_that_is_paused(nodes: Nodes, origins: Origins) -> None:
    body = serve(origins[0], pause_at=SIZE // 2)
    [first, second] = begin_at_both(nodes, origins[0])
    with paused(nodes.processes[0].pid):
        assert second.finish() == (200, body)
    assert origins[0].count(JAR) == 2
    origins[0].release(JAR)
    assert first.finish() == (200, body)
    for number in (0, 1):
        assert Download(Connection(nodes.url(number)), PATH).finish() == (200, body)
    assert origins[0].count(JAR) == 2


def test_a_failure_of_the_upstream_is_that_of_both_nodes(nodes: Nodes, origins: Origins) -> None:
    origins[0].misbehave(JAR, Answer(404, b"", fault=Fault(latency_s=1)), repeat=True)
    downloads = [Download(Connection(nodes.url(number)), PATH) for number in (0, 1)]
    assert [each.finish()[0] for each in downloads] == [404, 404]


def test_a_document_that_both_nodes_want_is_asked_for_once(nodes: Nodes, origins: Origins) -> None:
    npm = origins[1]
    npm.add("slow")
    npm.misbehave("/slow", Fault(latency_s=1))
    downloads = [Download(Connection(nodes.url(number)), "/repositories/main/npm/slow") for number in (0, 1)]
    assert [each.finish()[0] for each in downloads] == [200, 200]
    assert npm.count("/slow") == 1
