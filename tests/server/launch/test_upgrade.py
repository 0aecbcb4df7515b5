"""A server goes on with the data of each release, in a file and in PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.postgresql import as_url
from tests.support.postgresql_catalogs import Databases
from tests.support.release_data import RELEASES, unpack
from tests.support.server_process import twistd_process

pytestmark = [pytest.mark.server, pytest.mark.sqlite("chooses its own"), pytest.mark.folder("has data of its own")]


def test_there_is_data_of_a_release() -> None:
    assert "0.1.0" in RELEASES


@pytest.mark.parametrize("release", RELEASES)
def test_a_server_serves_what_a_release_stored(tmp_path: Path, release: str) -> None:
    found = unpack(release, tmp_path)
    server = twistd_process(tmp_path)
    try:
        found.check(server.wait_ready())
    finally:
        server.stop()


@pytest.mark.parametrize("release", RELEASES)
def test_a_server_serves_what_a_release_stored_with_postgresql(
    tmp_path: Path, databases: Databases, release: str
) -> None:
    found = unpack(release, tmp_path)
    with databases.another(empty=True) as url:
        found.copy_to_postgresql(url)
        found.database.unlink()
        server = twistd_process(tmp_path, environ={"PKGREPO_DATABASE__URL": as_url(url)})
        try:
            found.check(server.wait_ready())
        finally:
            server.stop()
