"""Two nodes with data folders of their own, on one database and one folder of storages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pkgrepo.repositories.layout.marker import read_marker
from pkgrepo.storage.layout_folder import LayoutFolder
from tests.server.launch import test_workers
from tests.server.launch.test_workers import Pair, wait_for
from tests.support.issuer import Issuer, issuer_lines
from tests.support.nodes import CONFIGURATION, Nodes, balanced, two_nodes
from tests.support.postgresql import PostgresServer
from tests.support.python_packages import make_wheel
from tests.support.workers import Connection

pytestmark = pytest.mark.server

# What two workers do for their clients two nodes do as well.
test_what_one_publishes_the_other_one_serves = test_workers.test_what_one_worker_publishes_the_other_one_serves_at_once
test_a_repository_made_at_one = test_workers.test_a_repository_made_at_one_is_served_and_removed_at_the_other
test_identity_tokens_are_exchanged_once = test_workers.test_identity_tokens_are_exchanged_once_by_all
test_a_revoked_token_is_dead_everywhere_at_once = test_workers.test_a_revoked_token_is_dead_everywhere_at_once
test_an_upload_that_one_began_the_other_one_continues = (
    test_workers.test_an_upload_that_one_began_the_other_one_continues
)
issuer = test_workers.issuer
test_wrong_passwords_are_counted_together = test_workers.test_wrong_passwords_are_counted_together
test_the_audit_log_has_the_rows_of_both = test_workers.test_the_audit_log_has_the_rows_of_both


@pytest.fixture(scope="module")
def nodes(primary: PostgresServer, issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Nodes for tests that stop none of them."""
    lines = issuer_lines(issuer) + CONFIGURATION
    with two_nodes(tmp_path_factory.mktemp("nodes"), primary.address, lines) as nodes:
        yield nodes


@pytest.fixture
def pair(nodes: Nodes) -> Iterator[Pair]:
    """A connection to each node."""
    found = [Connection(nodes.url(number)) for number in range(2)]
    yield found
    for each in found:
        each.close()


@pytest.mark.one_process("each node is one worker")
def test_requests_go_to_the_nodes_in_turn(nodes: Nodes) -> None:
    with balanced(nodes) as url:
        seen = [Connection(url).worker for _ in range(4)]
    assert seen[0] == seen[2] != seen[1] == seen[3]


def test_the_readable_layout_shows_what_both_publish(pair: Pair, nodes: Nodes) -> None:
    for n, each in enumerate(pair):
        filename, body = make_wheel("shown", f"{n}.0")
        assert each.ask("PUT", f"/repositories/main/py/shown/{n}.0/{filename}", body).status == 201
        wait_for(lambda filename=filename: list((nodes.storages / "main").rglob(filename)))


def test_a_new_storage_is_used_by_both(pair: Pair) -> None:
    one, other = pair
    one.ask_json("POST", "/api/storage", {"name": "more", "type": "Local"})
    made = {"name": "py", "storage": "more", "format": "python", "config": {"type": "Hosted"}}
    one.ask_json("POST", "/api/repository", made)
    filename, body = make_wheel("there", "1.0")
    assert other.ask("PUT", f"/repositories/more/py/there/1.0/{filename}", body).status == 201
    assert one.ask("GET", f"/repositories/more/py/there/1.0/{filename}").status in (200, 302)


def test_a_node_with_another_key_is_refused(nodes: Nodes, tmp_path: Path) -> None:
    stranger = Nodes(tmp_path, nodes.database)
    process = stranger.begin(0, {"PKGREPO_DATA__STORAGES": str(nodes.storages)})
    assert process.wait()
    assert "credentials.key is not the key of the other nodes" in process.output


@pytest.mark.parametrize("workers", ["1", "2"])
def test_only_the_last_node_that_stops_marks_the_layout_as_complete(
    primary: PostgresServer, tmp_path: Path, workers: str
) -> None:
    with two_nodes(tmp_path, primary.address, environ={"PKGREPO_SERVER__WORKERS": workers}) as nodes:
        layout = LayoutFolder(nodes.storages / "main")

        def missing() -> list[int | None]:
            marker = read_marker(layout)
            assert marker is not None
            return [status.missing for status in marker.catalogs.values()]

        assert missing() == [None]
        nodes.stop_one(1)
        assert missing() == [None]
        nodes.start(1)
        nodes.stop_one(0)
        assert missing() == [None]
        nodes.stop_one(1)
        assert missing() == [0]
