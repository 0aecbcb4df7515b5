"""A server that is killed between commits and deliveries: no event is lost, and what comes twice has one id."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.configurations import hosted
from tests.support.data_folder import wait_for
from tests.support.http_client import HttpClient
from tests.support.python_index import PASSWORD, USER
from tests.support.python_packages import make_wheel
from tests.support.receivers import Receiver
from tests.support.server_process import restarts
from tests.support.uploader import Upload, Uploader

pytestmark = pytest.mark.faults

REPOSITORY = hosted("python", py='config = { type = "Hosted", conda = { from_wheels = false } }')
ALLOWED = '[webhooks]\nallow_private = ["127.0.0.1"]\n'
UPLOADS, PROJECTS, KILLS = 60, 5, 3


def test_kills_lose_no_event(tmp_path: Path) -> None:
    rng = random.Random(seed := random.randrange(2**32))
    uploads = []
    for n in range(UPLOADS):
        project, version = f"p{n % PROJECTS}", f"1.{n}"
        filename, body = make_wheel(project, version)
        uploads.append(Upload((project, version), f"/repositories/main/py/{project}/{version}/{filename}", body))
    uploader = Uploader(uploads)
    receiver = Receiver()
    try:
        with restarts(tmp_path, ALLOWED + REPOSITORY) as start:
            server = start()
            api = HttpClient(f"{server.url}/api", (USER, PASSWORD))
            body = {"name": "x", "url": receiver.url, "events": ["package.published"]}
            hook = api.post_json("/system/webhooks", body).json
            for _ in range(KILLS):
                uploader.run(server.url, rng.randrange(3, UPLOADS // (KILLS + 1)), server.kill)
                server.kill()
                server = start()
            uploader.run(server.url, UPLOADS, lambda: None)
            api = HttpClient(f"{server.url}/api", (USER, PASSWORD))
            subjects = {f"main/py/{project}@{version}" for project, version in uploader.acknowledged}

            def arrived() -> bool:
                return subjects <= {each.json["subject"] for each in receiver.messages}

            wait_for(arrived, server)
            wait_for(lambda: not api.get(f"/system/webhooks/{hook['id']}").json["pending"], server)
    finally:
        receiver.close()
    assert len(subjects) == UPLOADS
    ids: dict[str, set[str]] = {}
    for each in receiver.messages:
        assert each.is_signed(hook["secret"])
        ids.setdefault(each.json["subject"], set()).add(each.id)
    assert all(len(found) == 1 for found in ids.values()), seed
    for project in range(PROJECTS):
        first: dict[str, int] = {}
        for each in receiver.messages:
            if each.json["data"]["package"] == f"p{project}":
                first.setdefault(each.id, each.json["seq"])
        assert list(first.values()) == sorted(first.values()), seed
