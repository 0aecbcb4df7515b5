"""A server that is killed while a stage is approved: all of it is published, or none, and then it can be approved."""

import random
import threading
from contextlib import suppress
from http.client import HTTPException

import pytest

from tests.support.configurations import hosted
from tests.support.data_folder import DataFolder
from tests.support.http_client import HttpClient
from tests.support.npm_packages import make_publish
from tests.support.python_index import PASSWORD, USER

pytestmark = pytest.mark.faults

REPOSITORIES = hosted("npm", "js")
COUNT = 60  # packages of the stage
JSON = {"Content-Type": "application/json"}


def api_of(server):
    return HttpClient(f"{server.url}/api", (USER, PASSWORD))


def published(server):
    registry = HttpClient(f"{server.url}/repositories/main/js")
    return sum(registry.get(f"/p{n}").status == 200 for n in range(COUNT))


def test_an_approval_is_whole_or_did_not_happen(run, tmp_path):
    data = DataFolder(tmp_path / "data")
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    server = run()
    stage = api_of(server).post_json("/repository/main%2Fjs/stages", {}).json
    staged = HttpClient(f"{server.url}/repositories/main/js+stage-{stage['id']}", (USER, PASSWORD))
    for n in range(COUNT):
        assert staged.ask("PUT", f"/p{n}", make_publish(f"p{n}", "1.0.0"), JSON).status == 201
    assert published(server) == 0
    api, path = api_of(server), f"/stages/{stage['id']}/approve"

    def approve():
        with suppress(OSError, HTTPException):
            api.post_json(path, {})

    sending = threading.Thread(target=approve)
    sending.start()
    for _ in range(rng.randrange(300)):
        data.rows("SELECT state FROM stage")
    server.kill()
    sending.join()

    server = run()
    state = api_of(server).get(f"/stages/{stage['id']}").json["state"]
    assert published(server) == {"approved": COUNT, "open": 0}[state], seed
    if state == "open":
        assert api_of(server).post_json(path, {}).status == 200, seed
    assert published(server) == COUNT
    assert data.damaged() == [], seed
