"""Two nodes with a storage in a bucket: uploads and files at any of them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

import pytest

from tests.server.launch.test_workers import Pair
from tests.support.nodes import Nodes, two_nodes
from tests.support.postgresql import postgresql
from tests.support.python_packages import make_wheel
from tests.support.s3_servers import s3_server
from tests.support.workers import Connection

pytestmark = pytest.mark.server

CHUNK = 3 * 1024 * 1024 + 1  # less than a part, which is 5 MiB at least
PLACE = "/v2/cloud/images/app"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with (
        postgresql() as database,
        s3_server() as s3,
        two_nodes(tmp_path_factory.mktemp("nodes"), database) as nodes,
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
