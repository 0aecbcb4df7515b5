"""Two nodes with a storage in a bucket, whose server is killed or paused, as nodes are, while clients upload."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from pkgrepo.repositories.publish.upload_leases import LEASE_S
from pkgrepo.s3.requests import ANSWER_S
from tests.faults.test_nodes import await_count, begin_uploads, paused
from tests.faults.test_workers_kill import UPLOADS, Digests, check, make_uploads
from tests.support.nodes import Nodes, two_nodes
from tests.support.postgresql import PostgresServer
from tests.support.s3_servers import S3Server, s3_server
from tests.support.timeouts import TIMEOUT_S
from tests.support.uploader import Upload
from tests.support.workers import Connection

pytestmark = pytest.mark.faults

REPOSITORY = "cloud/npm"


@pytest.fixture
def bucket() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture
def nodes(primary: PostgresServer, tmp_path: Path, bucket: S3Server) -> Iterator[Nodes]:
    with two_nodes(tmp_path, primary.address) as nodes:
        nodes.failing = True
        one = Connection(nodes.url(0))
        one.ask_json("POST", "/api/storage", {"name": "cloud", "type": "S3", "settings": bucket.settings("packages")})
        made = {"name": "npm", "storage": "cloud", "format": "npm", "visibility": "public"}
        one.ask_json("POST", "/api/repository", {**made, "config": {"type": "Hosted"}})
        one.close()
        yield nodes


class Race:
    """Clients that upload to both nodes, in threads of their own."""

    def __init__(self, nodes: Nodes) -> None:
        self.seed = random.randrange(2**32)
        self.acknowledged: set[Any] = set()
        self._nodes = nodes
        self._digests: Digests
        uploads: list[Upload]
        uploads, self._digests = make_uploads(random.Random(self.seed), REPOSITORY)
        self._threads = begin_uploads(nodes, uploads, self.acknowledged)

    def reach(self, share: float) -> None:
        """Return when this share of the uploads is acknowledged."""
        await_count(self.acknowledged, int(UPLOADS * share), self.seed)

    def end(self) -> None:
        """Everything can be uploaded, and all that was acknowledged is served by both nodes."""
        for each in self._threads:
            each.join(TIMEOUT_S)
        assert self.acknowledged == set(self._digests), self.seed
        for each in (0, 1):
            check(self._nodes.url(each), self.acknowledged, self._digests, self.seed, REPOSITORY)


def test_a_bucket_whose_server_is_killed_loses_no_acknowledged_publish(nodes: Nodes, bucket: S3Server) -> None:
    race = Race(nodes)
    for share in (0.2, 0.5):
        race.reach(share)
        bucket.kill()
        sleep(1)
        bucket.start()
    race.end()


def test_a_bucket_whose_server_is_paused_loses_no_acknowledged_publish(nodes: Nodes, bucket: S3Server) -> None:
    race = Race(nodes)
    race.reach(0.2)
    with bucket.paused():
        sleep(ANSWER_S + 1)  # so that a first try ends without an answer, and others go on
        for each in (0, 1):  # what is in memory is served meanwhile
            assert Connection(nodes.url(each)).ask("GET", "/healthz").status == 200
    race.end()


def test_a_node_that_is_paused_or_killed_loses_no_acknowledged_publish(nodes: Nodes) -> None:
    race = Race(nodes)
    race.reach(0.2)
    with paused(nodes.processes[0].pid):
        sleep(LEASE_S + 1)  # what it had leased is taken over
    race.reach(0.4)
    nodes.kill(1)
    race.reach(0.6)
    nodes.start(1)
    race.end()
