"""Two nodes with a storage in a bucket: uploads and files at any of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.server.launch.test_workers import Pair
from tests.server.replication.conftest import wait_for
from tests.support.configurations import hosted
from tests.support.http_client import HttpClient
from tests.support.nodes import Nodes, two_nodes
from tests.support.npm_packages import make_publish, make_tarball
from tests.support.postgresql import PostgresServer
from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_wheel
from tests.support.s3_servers import s3_server
from tests.support.server_process import running
from tests.support.workers import Connection

pytestmark = pytest.mark.server

CHUNK = 3 * 1024 * 1024 + 1  # less than a part, which is 5 MiB at least
PLACE = "/v2/cloud/images/app"


@pytest.fixture(scope="module")
def nodes(primary: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with (
        s3_server() as s3,
        two_nodes(
            tmp_path_factory.mktemp("nodes"), primary.address, environ={"PKGREPO_PROXY__ALLOW_PRIVATE": '["127.0.0.1"]'}
        ) as nodes,
    ):
        settings = s3.settings("packages")
        one = Connection(nodes.url(0))
        one.ask_json("POST", "/api/storage", {"name": "cloud", "type": "S3", "settings": settings})
        for name, kind in (("py", "python"), ("images", "docker")):
            made = {"name": name, "storage": "cloud", "format": kind, "config": {"type": "Hosted"}}
            one.ask_json("POST", "/api/repository", made)
        one.close()
        yield nodes


@pytest.fixture
def pair(nodes: Nodes) -> Iterator[Pair]:
    """A connection to each node."""
    found = [Connection(nodes.url(number)) for number in range(2)]
    yield found
    for each in found:
        each.close()


def test_chunks_of_an_upload_go_to_the_nodes_in_turn(pair: Pair) -> None:
    chunks = [os.urandom(CHUNK) for _ in range(5)]
    digest = hashlib.sha256(b"".join(chunks)).hexdigest()
    place = pair[0].ask("POST", f"{PLACE}/blobs/uploads/").headers["location"]
    for n, chunk in enumerate(chunks):
        fields = {"Content-Type": "application/octet-stream", "Content-Range": f"{n * CHUNK}-{(n + 1) * CHUNK - 1}"}
        reply = pair[n % 2].ask("PATCH", place[place.index("/v2/") :], chunk, headers=fields)
        assert reply.status == 202, reply.text
        place = reply.headers["location"]
    place = place[place.index("/v2/") :]
    assert pair[1].ask("PUT", f"{place}{'&' if '?' in place else '?'}digest=sha256:{digest}", b"").status == 201
    for each in pair:
        found = each.ask("GET", f"{PLACE}/blobs/sha256:{digest}")
        assert (found.status, found.body) == (200, b"".join(chunks))


def test_what_one_publishes_the_other_one_serves_and_removes(pair: Pair) -> None:
    for n in range(4):
        one, other = pair[n % 2], pair[(n + 1) % 2]
        filename, body = make_wheel("shared", f"{n}.0")
        assert one.ask("PUT", f"/repositories/cloud/py/shared/{n}.0/{filename}", body).status == 201
        assert other.ask("GET", f"/repositories/cloud/py/shared/{n}.0/{filename}").body == body


def test_a_replica_goes_on_when_either_node_is_killed(nodes: Nodes, tmp_path: Path) -> None:
    with running(tmp_path, hosted("npm", "source")) as there:
        source = HttpClient(f"{there.url}/repositories/main/source", (USER, PASSWORD))

        def publish(version: str) -> bytes:
            data = make_tarball("demo", version)
            assert source.put("/demo", make_publish("demo", version, tarball=data)).status == 201
            return data

        def kept(number: int, count: int) -> bool:
            files = "/api/repository/cloud%2Freplica/tree/demo/-"
            reply = HttpClient(nodes.url(number), (USER, PASSWORD)).get(files)
            return reply.status == 200 and len(reply.json["items"]) == count

        published = {"1.0.0": publish("1.0.0")}
        route = {"url": f"{there.url}/repositories/main/source", "name": "there"}
        config = {"type": "Proxy", "proxy": {"routes": [route]}, "replicate": {"files": ["*"]}}
        made = {"name": "replica", "storage": "cloud", "format": "npm", "visibility": "public", "config": config}
        one = Connection(nodes.url(0))
        one.ask_json("POST", "/api/repository", made)
        one.close()
        wait_for(partial(kept, 1, 1))
        for killed, left in ((0, 1), (1, 0)):
            nodes.kill(killed)
            version = f"2.{killed}.0"
            published[version] = publish(version)
            wait_for(partial(kept, left, len(published)))
            nodes.start(killed)
    for number in range(2):  # the other server is away: what is read was copied
        reader = HttpClient(f"{nodes.url(number)}/repositories/cloud/replica")
        for version, data in published.items():
            assert reader.get(f"/demo/-/demo-{version}.tgz").body == data
