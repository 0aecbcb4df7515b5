"""A server that is killed loses at most the downloads that were not written yet, and one that stops loses none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.data_folder import wait_for
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_wheel
from tests.support.server_process import ServerProcess, restarts

pytestmark = pytest.mark.faults

REPOSITORY = hosted("python", py='config = { type = "Hosted", conda = { from_wheels = false } }')
WRITTEN, LOST, STOPPED = 3, 2, 4


def client(server: ServerProcess) -> HttpClient:
    return HttpClient(server.url, (USER, PASSWORD))


def fetched(server: ServerProcess) -> int:
    found = client(server).get("/api/recall?repository=main/py&package=demo&version=1.0").json
    assert sum(each["count"] for each in found["items"]) == found["count"]
    return int(found["count"])


def test_kills_lose_what_was_not_written_and_nothing_else(tmp_path: Path) -> None:
    filename, body = make_wheel("demo", "1.0")
    path = f"/repositories/main/py/demo/1.0/{filename}"
    with restarts(tmp_path, REPOSITORY) as start:
        server = start()
        assert client(server).ask("PUT", path, body).status == 201
        for _ in range(WRITTEN):
            assert client(server).get(path).status == 200
        wait_for(lambda: fetched(server) == WRITTEN, server)
        for _ in range(LOST):
            client(server).get(path)
        server.kill()
        server = start()
        after = fetched(server)
        assert WRITTEN <= after <= WRITTEN + LOST
        for _ in range(STOPPED):
            client(server).get(path)
        server.stop()
        server = start()
        assert fetched(server) == after + STOPPED
